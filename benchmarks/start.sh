#!/usr/bin/env bash
# How long a program takes from the launcher's start to its first step of training: medians
# over several runs of the digits example, of worker 0, in milliseconds.
#
#   benchmarks/start.sh [--workers N] [--runs N] [--programs FOLDER]     default: 4, 9, build/bin
#
#   launcher   from the start of cohort-run until the program makes its Session
#   MPI        MPI_Init
#   session    the rest of the Session's constructor: what Cohort adds
#   data       the strategy, reading the images, and making the model
#   step       the first step, with what its collectives do once
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

refuse() { echo "benchmarks/start.sh: $*; see --help" >&2; exit 2; }

workers=4 runs=9 programs=build/bin
while (($#)); do
  case $1 in
    --workers) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || refuse "--workers needs a number"; workers=$2; shift 2 ;;
    --runs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || refuse "--runs needs a number"; runs=$2; shift 2 ;;
    --programs) programs=${2:-}; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
[[ -x $programs/digits ]] || refuse "no digits in '$programs'"

# timeline: the times of day at which the launcher starts and worker 0 says where it is. Its first lines come before
# it knows its number; then the last of all workers counts.
timeline() {
  date +%H:%M:%S.%3N
  COHORT_LOG_LEVEL=debug launch/cohort-run -n "$workers" "$programs/digits" --epochs 1 2>&1 >/dev/null </dev/null | awk '
    { time = substr($1, 2) }
    / cohort: MPI starts$/ { starts = time }
    / cohort: MPI has started$/ { started = time }
    / worker 0: session of / { print starts; print started; print time }
    / worker 0: (the data is loaded|the first step)/ { print time }'
}

median() { sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }

phases=(launcher MPI session data step)
for ((run = 0; run < runs; run++)); do
  timeline | awk -F '[:.]' -v phases="${#phases[@]}" '
    { now = (($1 * 60 + $2) * 60 + $3) * 1000 + $4 }
    NR == 1 { first = now }
    NR > 1 { printf "%d ", (now - before + 86400000) % 86400000 }
    { before = now }
    END { print (now - first + 86400000) % 86400000; if (NR != phases + 1) exit 1 }' ||
    { echo "benchmarks/start.sh: digits does not run as expected" >&2; exit 1; }
done | {
  table=$(cat)
  column=0
  for name in "${phases[@]}" total; do
    column=$((column + 1))
    printf '%-9s %5d ms\n' "$name" "$(cut -d ' ' -f "$column" <<<"$table" | median)"
  done
}
