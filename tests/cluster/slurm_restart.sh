#!/usr/bin/env bash
# A training over two virtual hosts of Slurm loses one of them: `cohort-run --restarts` goes on in the same
# allocation with the workers of the other, from a snapshot in its memory.
#
#   slurm_restart.sh COHORT_RUN DIGITS
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} != inside ]]; then
  "$scripts/hosts.sh" check --slurm || exit
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/build/bin"
  cp -r "$(dirname "$1")" "$work/launch"
  "$scripts/hosts.sh" slurm --hosts 2 --share "$work" --share "$(dirname "$2")" \
    -- "$scripts/slurm_restart.sh" inside "$work" "$2"
  exit
fi
work=$2 digits=$3
fail() { echo "slurm_restart: $*: $(grep -av ' has ended$' "$work/err")" >&2; exit 1; }
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}
says() { grep -qaE "$1" "$work/err"; }

: >"$work/err"
COHORT_LOG_LEVEL=debug salloc --quiet --no-kill -N 2 --ntasks-per-node=2 \
  "$work/launch/cohort-run" --restarts 1 --min-workers 2 --no-binding \
  "$digits" --strategy multi_worker_mirrored --epochs 30 --checkpoint "$work/checkpoints" --every 100000 \
  --memory-every 5 --resume >"$work/out" 2>"$work/err" </dev/null &
job=$!
trap 'kill -TERM "$job" 2>/dev/null || true; wait' EXIT
within 60 says 'step 2[0-9] has ended' || fail "the training does not begin"
host=$(pgrep -f "^bash [^ ]*/host.sh n1 ") || fail "there is no host n1"
kill -KILL "$host"  # and all that runs there
within 90 says 'there is no answer from n1' || fail "the loss of a host is not noticed"
within 60 says "step [1-9][0-9]* is restored from '/dev/shm/cohort-snapshots" || fail "no snapshot is restored"
wait "$job" || fail "the job ends with status $?"
says 'started again with 2 workers, 1 of 1 times' || fail "it is not started again"
grep -q '2 replicas, test accuracy' "$work/out" || fail "the training does not end: $(<"$work/out")"
echo "slurm_restart: passed"
