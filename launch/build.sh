#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json, quietly: the compiler's output goes to
# build/PRESET.log, and its relevant part is shown when a step fails.
#
#   launch/build.sh PRESET JOBS [CMAKE_OPTION ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=$1 jobs=$2
shift 2
log=build/$preset.log
mkdir -p build
: >"$log"

step() {
  echo "build: $1 ($preset)"
  shift
  "$@" >>"$log" 2>&1 </dev/null && return
  # Ninja finishes the steps that run beside the failed one, so the failure is not always at the end.
  if grep -q '^FAILED:' "$log"; then
    sed -n '/^FAILED:/,$p' "$log" | head -n 60 >&2
  else
    tail -n 40 "$log" >&2
  fi
  echo "build: failed; everything is in $log" >&2
  exit 1
}

step "configuring" cmake --preset "$preset" "$@"
step "compiling with $jobs jobs" cmake --build --preset "$preset" --parallel "$jobs"
