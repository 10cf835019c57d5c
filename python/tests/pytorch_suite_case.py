"""The class of PyTorch's tests, for processes that find it by its name."""

import os

import pytorch_suite

DistributedTests = pytorch_suite.case(os.environ["PYTORCH_SUITE"])
