#!/usr/bin/env bash
# Cohort's tensors in NumPy or PyTorch and back. NumPy is taken from PyPI, into PACKAGES; PyTorch is Debian's
# python3-torch. Where the library cannot be had, the test is skipped.
#
#   exchange.sh LIBRARY numpy|torch PACKAGES
set -euo pipefail
library=$1 other=$2 packages=$3
skipped=77
script=$(dirname "${BASH_SOURCE[0]}")/exchange.py

if [[ $other == torch ]]; then
  python=/usr/bin/python3  # Debian's, whatever else is installed
  if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skipped: apt-get install python3-torch"
    exit $skipped
  fi
else
  python=python3
  export PYTHONPATH=$packages
  if ! "$python" -c 'import numpy' 2>/dev/null; then
    rm -rf "$packages"
    if ! "$python" -m pip install --quiet --root-user-action=ignore --disable-pip-version-check --no-deps --retries 1 --timeout 10 \
        --target "$packages" 'numpy==2.2.6' </dev/null; then
      echo "skipped: python3 with pip (apt-get install python3-pip) and PyPI are needed for the package numpy"
      exit $skipped
    fi
  fi
fi
exec "$python" "$script" "$library" "$other"
