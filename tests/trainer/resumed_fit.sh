#!/usr/bin/env bash
# A fit that is killed at random batches and started again ends with the same parameters, slots and history,
# bit for bit, and has trained on the same examples, step by step, as one that nobody disturbed; and it goes
# on at the step after its newest checkpoint, not from the beginning.
#
#   tests/trainer/resumed_fit.sh [--kills N] [--seed N] -- LAUNCHER... resumable_fit
#
#   --kills N   how many trainings, each killed once or twice at random steps; default: 20
#   --seed N    of the random choices; default: from the clock, and printed
set -euo pipefail
shopt -s nullglob

kills=20 seed=${EPOCHREALTIME/[.,]/}
while [[ $1 != -- ]]; do
  declare "${1#--}=$2"
  shift 2
done
shift
command=("$@")
RANDOM=$((seed % 32768))
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "resumed_fit: $* (seed $seed)" >&2; cat "$scratch/err" >&2; exit 1; }

readonly steps=64  # of 4 epochs of 16
# What each rank saw in each step, in the order of the steps; the last time counts.
examples() {
  local file
  for file in "$1".examples.*; do
    echo "${file##*.}"
    awk -F: '{ seen[$1] = $2 } END { for (step = 1; step in seen; ++step) print step, seen[step] }' "$file"
  done
}
train() { "${command[@]}" "$@" 2>"$scratch/err"; }

# Trains, adds what the ranks saw to FOLDER.all.examples.RANK, and tells in `first` and `last` between which
# steps it was; 0 0 without any. A rank may be killed before it has written its last step, but not all are.
first=0 last=0
train_on() {
  local file status=0
  train "$@" || status=$?
  read -r first last < <(cat /dev/null "$1".examples.* |
    awk -F: 'NR == 1 || $1 < low { low = $1 } $1 > high { high = $1 } END { print low + 0, high + 0 }')
  for file in "$1".examples.*; do
    cat "$file" >>"$1.all.examples.${file##*.}"
    rm "$file"
  done
  return "$status"
}

# The training that has ended went from the step after the newest checkpoint, `saved`, to this one.
went_to() {
  local begins=$((saved < steps ? saved + 1 : 0))
  ((first == begins && last == (begins ? $1 : 0))) ||
    fail "it made the steps $first to $last, not $begins to $1, saved every $every"
}
# A kill comes before its step is saved.
killed_at() {
  went_to "$1"
  saved=$((($1 - 1) / every * every))
}

train "$scratch/calm" 1000 >"$scratch/calm.out" || fail "the undisturbed training fails"
examples "$scratch/calm" >"$scratch/calm.list"
(($(grep -c . "$scratch/calm.list") % (steps + 1) == 0)) || fail "the undisturbed training has other steps"

for ((number = 1; number <= kills; ++number)); do
  folder=$scratch/run$number every=$((RANDOM % 7 + 1))
  dies=$((RANDOM % (steps - 1) + 1))
  saved=0
  ! train_on "$folder" "$every" "$dies" >/dev/null || fail "it does not die after $dies steps"
  killed_at "$dies"
  again=$((RANDOM % 16 + 1))
  if train_on "$folder" "$every" "$again" >/dev/null; then
    ((saved + again > steps)) || fail "it does not die after $again steps more"
    went_to "$steps"
    saved=$((steps / every * every))
  else
    killed_at "$((saved + again))"
  fi
  train_on "$folder" "$every" >"$folder.out" || fail "it does not go on"
  went_to "$steps"
  cmp "$scratch/calm.out" "$folder.out" || fail "other bits, killed after $dies and $again steps, saved every $every"
  examples "$folder.all" | cmp "$scratch/calm.list" - || fail "other examples, killed after $dies and $again steps, saved every $every"
  rm -rf "$folder"
done
echo "resumed_fit: $kills trainings, each killed after a random step and again, seed $seed: the same bits and examples"
