#!/usr/bin/env bash
# Collectives work, and cohort-info says what is in force, where memory is limited.
#
#   limited_memory.sh LIMIT TEST_PROGRAM COHORT_INFO LAUNCHER...
#
#   LIMIT   addresses, file-size, no-heap or no-huge-pages
set -euo pipefail

limit=$1 program=$2 info=$3
shift 3
launcher=("$@")

fail() {
  echo "limited_memory: $limit: $*" >&2
  exit 1
}

# Each worker sets its limit itself: the launcher and MPI's daemons have needs of their own.
case $limit in
  addresses) set_limit='ulimit -v 6291456' says='node heap +1536 MiB' ;;
  file-size) set_limit='ulimit -f 131072' says='node heap +128 MiB' ;;
  no-heap) set_limit='export COHORT_NODE_HEAP=false' says='node heap +off' ;;
  no-huge-pages) set_limit='export COHORT_HUGE_PAGES=false' says='huge pages +off' ;;
  *) fail "no such limit" ;;
esac

# shellcheck disable=SC2016
limited() { "${launcher[@]}" bash -c "$set_limit"'; exec "$0"' "$1" </dev/null; }

limited "$program" || fail "collectives fail"
facts=$(limited "$info") || fail "cohort-info fails"
grep -Eq "^  $says" <<<"$facts" || fail "no '$says' in: $facts"
