#!/usr/bin/env bash
# PyPI's tensorboard reads what Cohort writes: scalars, histograms, texts, tensors, hyperparameters, and none of
# the steps before a restart. The packages come into PACKAGES; where they cannot be had, the test is skipped.
#
#   event_files.sh WRITE_SUMMARIES PACKAGES
set -euo pipefail
write=$1 packages=$2
skipped=77

export PYTHONPATH=$packages PYTHONDONTWRITEBYTECODE=1
if ! python3 -c 'import tensorboard, google.protobuf, numpy, packaging' 2>/dev/null; then
  rm -rf "$packages"
  # Not its web server, and none of what that needs.
  if ! python3 -m pip install --quiet --root-user-action=ignore --disable-pip-version-check --no-deps --retries 1 --timeout 10 \
      --target "$packages" 'tensorboard==2.20.0' 'protobuf==6.31.1' 'numpy==2.2.6' 'packaging==25.0' \
      'absl-py==2.3.0' 'setuptools==80.9.0' </dev/null; then
    rm -rf "$packages"
    echo "skipped: python3 with pip (apt-get install python3-pip) and PyPI are needed for the package tensorboard"
    exit $skipped
  fi
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$write" "$scratch"
python3 "$(dirname "${BASH_SOURCE[0]}")/event_files.py" "$scratch/logs"
