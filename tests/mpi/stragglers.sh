#!/usr/bin/env bash
# Runs straggler_victim under the launcher, in which one worker is slow or none, and checks whom the job names.
#
#   tests/mpi/stragglers.sh HOW RANKS NODES LAUNCHER... PROGRAM
set -euo pipefail

how=$1 ranks=$2 nodes=$3
shift 3
victim=$((ranks - 1))
# Those of the other node report it, whom the chief has told.
if [[ $how == throws ]] && ((nodes > 1)); then victim=0; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "stragglers: $how, $ranks ranks on $nodes nodes: $*" >&2
  sed 's/^/  | /' "$work/output" >&2
  exit 1
}

unset COHORT_LOG_LEVEL
if ((nodes > 1)); then export COHORT_WORKERS_PER_NODE=$(((ranks + nodes - 1) / nodes)); fi
timeout --signal=KILL 60 "${@:1:$#-1}" --mca btl_vader_backing_directory "$work" --mca orte_tmpdir_base "$work" \
  "${!#}" "$how" "$victim" 100 20 >"$work/output" 2>&1 </dev/null || [[ $how == throws ]] || fail "ends with status $?"
named=$(grep -c 'was last in' "$work/output" || true)
if [[ $how == clean ]]; then
  ((named == 0)) || fail "somebody is named"
  exit
fi
cause='computing, not input or communication'
if [[ $how == input ]]; then cause='reading input, not computing or communication'; fi
if [[ $how == throws ]]; then
  line="cohort report: slow before: worker $victim \(host $(hostname), pid [0-9]+\) was last in [0-9]+ % of calls, by "
  grep -qE "$line.*$cause" "$work/output" || fail "no report says who was slow"
  exit
fi
line="in the whole run, worker $victim \(host $(hostname), pid [0-9]+\) was last in [0-9]+ % of calls, by [0-9.]+ ms on average: $cause; "
grep -qE "$line" "$work/output" || fail "the slow worker is not named with its cause"
((named == $(grep -cE "worker $victim .*was last in" "$work/output"))) || fail "another worker is named, too"
