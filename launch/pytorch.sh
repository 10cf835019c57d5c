#!/usr/bin/env bash
# Makes a Python with PyTorch and the package cohort-torch, in build/pytorch, for tests and benchmarks. PyTorch comes
# from PyPI (3 GB with the libraries of GPUs that it brings); what is there already stays.
#
#   launch/pytorch.sh [VERSION]      of PyTorch, for example 2.15.0; default: the newest
set -euo pipefail
[[ ${1:-} != -* ]] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$root/build/pytorch/bin/python
[[ -x $python ]] || python3 -m venv "$root/build/pytorch"
"$python" -m pip install --quiet "torch${1:+==$1}" numpy pytest
"$python" -m pip install --quiet --force-reinstall --no-deps "$root/python"
"$python" -c 'import cohort_torch, torch; print("build/pytorch: PyTorch", torch.__version__, "with cohort_torch")'
