#!/usr/bin/env bash
# Counts the instructions of calls under callgrind, which do not depend on the processor or on what else runs, and fails
# where a call takes more than it may. A bound is raised only with a reason in docs/design.md.
#
#   check.sh COUNTED_CALLS
set -euo pipefail

program=$1
if [[ -z $(type -t valgrind) ]]; then
  echo "instructions: there is no valgrind to count them with" >&2
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# count CALL NUMBER: instructions of all of them together.
count() {
  valgrind --tool=callgrind --collect-atstart=no --toggle-collect=counted --callgrind-out-file="$scratch/out" \
    "$program" "$1" "$2" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; return 1; }
  sed -n 's/^summary: //p' "$scratch/out" | grep '[1-9]' || { echo "instructions: callgrind has counted none in $1" >&2; return 1; }
}

# What malloc takes depends on where memory happens to lie, least where it only takes from its lists.
export GLIBC_TUNABLES=glibc.malloc.mxfast=0:glibc.malloc.tcache_count=2000

failed=0
# check CALL MOST: the instructions of one more of them, which is without what is done once.
check() {
  local few more each
  few=$(count "$1" 100)
  more=$(count "$1" 300)
  each=$(((more - few) / 200))
  echo "instructions: $1: $each of at most $2"
  ((each <= $2)) || failed=1
}

check all_reduce 525
check long_all_reduce 6700
check gradient_buckets 8800
check fit 14500
exit "$failed"
