#!/usr/bin/env bash
# What all tools have in common: how they say what they are, and how they refuse what they do not know.
#
#   conventions.sh COHORT_RUN PROGRAM...     the folder of the first PROGRAM has cohort-info
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "conventions: $*" >&2; exit 1; }
PATH=$(dirname "$2"):$PATH

# capture COMMAND...: leaves $status, and what it says in out and err.
capture() {
  status=0
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
}

# answers COMMAND...: it succeeds, and only on standard output.
answers() {
  capture "$@"
  ((status == 0)) || fail "'$*' ends with $status: $(cat "$scratch/err")"
  [[ -s $scratch/out && ! -s $scratch/err ]] || fail "'$*' says: $(cat "$scratch/out" "$scratch/err")"
}

# has LINE_PATTERN: in the last answer.
has() { grep -qE -- "$1" "$scratch/out" || fail "'$name --help' has no line '$1'"; }

for program in "$@"; do
  name=$(basename "$program")

  answers "$program" --help
  [[ $(head -n 1 "$scratch/out") == "Usage: $name "* ]] || fail "'$name --help' begins with: $(head -n 1 "$scratch/out")"
  has '^  --version  +print the version$'
  has '^  -h, --help  +print this text$'
  has '^Exit status: .*; 2 for wrong usage|^[a-z].*; 2 for wrong usage'
  wide=$(awk 'length > 110' "$scratch/out")
  [[ -z $wide ]] || fail "'$name --help' is wider than 110 columns: $wide"
  cp "$scratch/out" "$scratch/help"
  answers "$program" -h
  cmp -s "$scratch/help" "$scratch/out" || fail "'$name -h' and '$name --help' differ"

  answers "$program" --version
  [[ $(<"$scratch/out") =~ ^"$name "[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "'$name --version' says: $(<"$scratch/out")"

  capture "$program" --frobnicate
  ((status == 2)) || fail "'$name --frobnicate' ends with $status"
  [[ ! -s $scratch/out && $(wc -l <"$scratch/err") == 1 ]] || fail "'$name --frobnicate' says: $(cat "$scratch/out" "$scratch/err")"
  [[ $(<"$scratch/err") == "$name: "*"see $name --help" ]] || fail "'$name --frobnicate' says: $(<"$scratch/err")"

  # None has colours: not in a pipe, as above, nor on a terminal, whatever NO_COLOR says.
  for setting in NO_COLOR=1 TERM=xterm-256color; do
    env "$setting" script -qec "'$program' --help; '$program' --frobnicate" /dev/null </dev/null >"$scratch/terminal" || true
    grep -q 'Usage: ' "$scratch/terminal" || fail "'$name --help' on a terminal says: $(cat "$scratch/terminal")"
    ! grep -q $'\033' "$scratch/terminal" "$scratch/help" || fail "'$name' has colours with $setting"
  done
done
