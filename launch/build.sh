#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json: the compiler's output goes to
# build/PRESET.log, and its relevant part is shown when a step fails. Meanwhile there is a
# line of progress on a terminal, and a line for each tenth of the work elsewhere.
#
#   launch/build.sh PRESET JOBS [CMAKE_OPTION ...] [-- TARGET ...]     without targets: everything
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=$1 jobs=$2
shift 2
options=() targets=()
while (($#)) && [[ $1 != -- ]]; do
  options+=("$1")
  shift
done
if (($#)); then targets=(--target "${@:2}"); fi
log=build/$preset.log

# A build by root leaves folders and files in which nobody else can write. Those of `cmake --install` do no harm.
if [[ -d build || -w . ]]; then
  mkdir -p build
  foreign=$(find build \( -type d -o -name '*.log' -o -name '.ninja_*' -o -name CMakeCache.txt \) ! -writable -print -quit) || true
else
  foreign=.
fi
if [[ -n $foreign ]]; then
  folder=$(realpath "${foreign%%/*}")
  echo "build: $(realpath "$foreign") belongs to $(stat -c %U "$foreign"), and $(id -un) cannot write there: as root, run" \
    "'chown -R $(id -un) $folder', or build in a clone of your own" >&2
  exit 1
fi
: >"$log"

# Passes Ninja's output on to the log and shows how far it is, by its [12/316].
show_progress() {
  local line finished='' all shown=0 ending
  [[ -t 1 ]] && ending=$'\r' || ending=$'\n'
  while IFS= read -r line || [[ -n $line ]]; do
    printf '%s\n' "$line" >>"$log"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    finished=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
    [[ -t 1 ]] || ((finished * 10 / all > shown)) || continue
    shown=$((finished * 10 / all))
    printf 'build: %d of %d steps, %d:%02d min%s' "$finished" "$all" $((SECONDS / 60)) $((SECONDS % 60)) "$ending"
  done
  if [[ -t 1 && -n $finished ]]; then echo; fi
}

step() {
  echo "build: $1 ($preset)"
  shift
  SECONDS=0
  "$@" 2>&1 </dev/null | show_progress && return
  # Ninja finishes the steps that run beside the failed one, so the failure is not always at the end.
  if grep -q '^FAILED:' "$log"; then
    sed -n '/^FAILED:/,$p' "$log" | head -n 60 >&2
  else
    tail -n 40 "$log" >&2
  fi
  echo "build: failed; everything is in $log" >&2
  exit 1
}

step "configuring" cmake --preset "$preset" "${options[@]}"
step "compiling with $jobs jobs" cmake --build --preset "$preset" --parallel "$jobs" "${targets[@]}"
