#!/usr/bin/env bash
# What cohort-checkpoint prints, and its exit codes.
#
#   tool.sh COHORT-CHECKPOINT MAKE_CHECKPOINT
set -euo pipefail
tool=$1 make=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() { echo "tool.sh: $*" >&2; exit 1; }

# expect CODE PATTERN COMMAND...: the exit code, and a line that matches on either output.
expect() {
  local code=$1 pattern=$2 status=0
  shift 2
  "$tool" "$@" >out 2>&1 || status=$?
  ((status == code)) || fail "'$*' ended with $status instead of $code: $(cat out)"
  grep -qE -- "$pattern" out || fail "'$*' says nothing of '$pattern': $(cat out)"
}

"$make" checkpoints 5
"$make" checkpoints 10

expect 0 'usage: cohort-checkpoint list FOLDER' --help
expect 2 'usage:'
expect 2 'usage:' burn checkpoints
expect 2 'usage:' list
expect 0 '^ +5 +16 +1 +[0-9]+  checkpoints/step-5$' list checkpoints
expect 0 '^ +10 +16 ' list checkpoints
expect 1 "no checkpoints in 'nowhere'" list nowhere
expect 0 'step 10, written by 1 worker, [0-9]+ bytes in 2 files' show checkpoints/step-10
expect 0 '^  bfloat16 +bfloat16\[2, 3\] +values-00000-of-00001.safetensors$' show checkpoints/step-10
expect 1 'cannot open' show nowhere
expect 0 '^checkpoints/step-10: sound$' verify checkpoints/step-10
expect 0 '^checkpoints/step-5: sound$' verify checkpoints

# The last byte belongs to one of the smallest elements.
file=checkpoints/step-5/values-00000-of-00001.safetensors
printf '\xee' | dd of=$file bs=1 seek=$(($(stat -c %s $file) - 1)) conv=notrunc status=none
expect 1 '^checkpoints/step-5: damaged$' verify checkpoints
expect 1 "value 'uint8' is damaged" verify checkpoints/step-5
expect 0 sound verify checkpoints/step-10
rm checkpoints/step-5/manifest.json
expect 1 '^ +5 +- .*manifest.json' list checkpoints
