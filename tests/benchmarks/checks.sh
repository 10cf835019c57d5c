# shellcheck shell=bash
# Sourced by the scripts of this folder: a scratch folder, and checks that say what they
# expected and what they got.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# same WHAT EXPECTED ACTUAL
same() { [[ $2 == "$3" ]] || fail "$1: expected '$2', got '$3'"; }

# capture COMMAND...: runs it and leaves $status, $scratch/out and $scratch/err.
capture() {
  status=0
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
}

# succeeds COMMAND...: as capture, and shows everything when the command fails. CSV has rows of one length.
succeeds() {
  capture "$@"
  ((status == 0)) || fail "'$*' ends with $status: $(cat "$scratch/out" "$scratch/err")"
  [[ "$* " != *"--format csv "* || $* == *--output* ]] ||
    same "rows of '$*' that are not as long as the heading" "" \
      "$(awk -F, 'NR == 1 { columns = NF } NF != columns' "$scratch/out")"
}
