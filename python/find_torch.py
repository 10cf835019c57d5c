"""Prints PyTorch's folder, its version and its C++ ABI, for CMake, without loading PyTorch's libraries."""

import importlib.util
import pathlib
import re
import sys

spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None:
    sys.exit(f"{sys.executable} has no module torch; install it first: pip install torch")
folder = pathlib.Path(spec.origin).parent
version = re.search(r"__version__ = ['\"](\d+\.\d+\.\d+)", (folder / "version.py").read_text())
# PyPI's wheels have the C++11 ABI from 2.7 on, which is the oldest version that is served.
print(folder, version.group(1) if version else "0", "1", sep=";")
