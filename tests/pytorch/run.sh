#!/usr/bin/env bash
# Runs a file of the Python package's tests, if there is a Python with the package; otherwise it says what is missing.
#
#   run.sh FILE USUAL_PYTHON [CHOSEN_PYTHON]
set -euo pipefail
python=${3:-$2}
if ! [[ -x $python ]]; then
  echo "skipped: there is no $python; launch/pytorch.sh makes one with PyTorch and the package"
  exit 77
fi
if ! missing=$("$python" -c 'import cohort_torch, pytest' 2>&1); then
  # A Python that was chosen must be right.
  [[ -z ${3:-} ]] || { echo "$missing"; exit 1; }
  echo "skipped: $(tail -n 1 <<<"$missing")"
  exit 77
fi
export OMP_NUM_THREADS=1
# torchrun and torch.compile leave folders there.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
"$python" -m pytest -q -rs -p no:cacheprovider "$1"
