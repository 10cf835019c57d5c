"""Prints PyTorch's folder, its version and its pybind11's ABI, for CMake, without loading PyTorch's libraries."""

import importlib.util
import pathlib
import re
import sys

spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None:
    sys.exit(f"{sys.executable} has no module torch; install it first: pip install torch")
folder = pathlib.Path(spec.origin).parent
version = re.search(r"__version__ = ['\"](\d+\.\d+\.\d+)", (folder / "version.py").read_text())
# Before version 3, pybind11 knows types of modules by other compilers only under this word.
abi = re.search(
    rb"__pybind11_internals_v\d+_gcc_libstdcpp(_cxxabi\d+)__", (folder / "lib" / "libtorch_python.so").read_bytes()
)
print(folder, version.group(1) if version else "0", abi.group(1).decode() if abi else "", sep=";")
