#!/usr/bin/env bash
# The newest CMake that was tried configures the tree, and a project that uses an installed Cohort, without a warning. It
# comes from PyPI; without it the test is skipped. Nothing is compiled.
#
#   new_cmake.sh CMAKE SOURCE_DIR BUILD_DIR CONSUMER_DIR PYTHON
set -euo pipefail
cmake=$1 source=$2 build=$3 consumer=$4 python=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "new_cmake: $*" >&2; exit 1; }
# shellcheck source=tests/install/consume.sh
source "$(dirname "${BASH_SOURCE[0]}")/consume.sh"

if ! "$python" -m pip install --quiet --root-user-action=ignore --disable-pip-version-check --no-deps --retries 1 --timeout 10 \
  --target "$work/new" 'cmake==4.4.*' >"$work/pip.log" 2>&1; then
  echo "skipped: CMake cannot be had from PyPI: $(tail -n 1 "$work/pip.log")"
  exit 77
fi
new=$work/new/cmake/data/bin/cmake
"$new" --version

# configures FOLDER OPTION...: nothing is complained of.
configures() {
  "$new" -G Ninja -S "$1" -B "$work/build" "${@:2}" >"$work/log" 2>&1 || fail "$1 is not configured: $(tail -n 20 "$work/log")"
  ! grep -qi 'warning' "$work/log" || fail "$1: $(grep -i -A 8 'warning' "$work/log")"
  rm -rf "$work/build"
}
configures "$source" -DCOHORT_TORCH=OFF -DCOHORT_CUDA=OFF
install_to_prefix "$cmake" "$build"
configures "$consumer" -DCMAKE_PREFIX_PATH="$work/prefix"
