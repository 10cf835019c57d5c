#!/usr/bin/env bash
# Jobs that fail under Slurm, two workers on each of two hosts: soon all workers have ended, the job, too, the
# output says what happened, and nothing is left on the hosts.
#
#   slurm_faults.sh FAULT_VICTIM COHORT_RUN
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} != inside ]]; then
  "$scripts/hosts.sh" check --slurm || exit
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  "$scripts/hosts.sh" slurm --share "$work" --share "$(dirname "$1")" --share "$(dirname "$2")" \
    -- "$scripts/slurm_faults.sh" inside "$work" "$@"
  exit
fi
work=$2 program=$3 cohort_run=$4
# shellcheck source=tests/cluster/slurm_batch.sh
source "$scripts/slurm_batch.sh"
# Workers without a sign of life are noticed after 5 s, and those that hang are ended 3 s later. Where
# Slurm ends all by itself, only a slow machine takes long.
readonly limit_of_workers=10 limit_of_killed_workers=20 limit_of_job=30

fail() {
  echo "slurm_faults: $case: $*" >&2
  cat "$work/output" >&2
  exit 1
}
says() { grep -Eq "$1" "$work/output"; }

# The head's /proc shows the processes of all hosts.
workers() { pgrep -x fault_victim || true; }
worker() { { workers | sed 's|.*|/proc/&/environ|' | xargs grep -lszx "SLURM_PROCID=$1" || true; } | cut -d / -f 3; }
process_1_of() { pgrep -f "^bash [^ ]*/host.sh $1 "; }
# But for Open MPI's own segments.
left_on() { nsenter --target "$1" --mount ls -A /dev/shm | grep -v '^vader_segment\.' || true; }
none_work() { [[ -z $(workers) ]]; }
is_idle() { [[ $(sinfo -h -N -t idle -o %N | wc -l) == 2 ]]; }
# Read to the end: a pipe that is closed early would look like an answer.
has_ended() { [[ $(scontrol show job "$job") != *JobState=@(PENDING|RUNNING)* ]]; }
is_timed_out() { [[ $(scontrol show job "$job") == *JobState=TIMEOUT* ]]; }

# within SECONDS CONDITION...
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# start CASE LAUNCHER [OPTION...]: submits with these options, returns when all workers run.
start() {
  local start launcher=$2
  case=$1
  shift 2
  for ((start = 0; start < most_starts; start++)); do
    within 60 is_idle || fail "the hosts are not idle: $(sinfo -N)"
    : >"$work/output"
    # Slurm itself shall not end the job because of a lost host.
    job=$(sbatch --parsable --no-kill --no-requeue --output="$work/output" -N 2 --ntasks-per-node=2 "$@" \
      --wrap "exec '$cohort_run' --launcher $launcher '$program' collective none none")
    within 30 says "all are running|Failing at address: .nil." || fail "the workers do not start"
    crashed_in_mpi_init "$work/output" || return 0
    scancel "$job"
  done
  fail "MPI_Init crashes each time"
}

# ends MESSAGE LIMIT: the rest of the case, once the fault is there; workers have LIMIT seconds to end.
ends() {
  local since=${EPOCHREALTIME/./} of_workers host process
  within "$2" none_work || fail "workers are left after $2 s: $(workers | xargs ps)"
  of_workers=$(((${EPOCHREALTIME/./} - since) / 1000))
  within "$limit_of_job" has_ended || fail "the job goes on after $limit_of_job s"
  [[ $(scontrol show job "$job") != *JobState=COMPLETED* ]] || fail "the job counts as a good one"
  says "$1" || fail "nobody says '$1'"
  for host in n0 n1; do
    process=$(process_1_of "$host") || continue  # a dead one
    [[ -z $(left_on "$process") ]] || fail "left in the shared memory of $host: $(left_on "$process")"
  done
  echo "slurm_faults: $case: workers ended after $of_workers ms, the job after" \
    "$(((${EPOCHREALTIME/./} - since) / 1000)) ms"
}

for launcher in srun mpirun; do
  start "scancel, $launcher" "$launcher"
  scancel "$job"
  ends "interrupted by SIGTERM|CANCELLED" "$limit_of_killed_workers"

  start "cut link, $launcher" "$launcher"
  ip link set n1 down
  ends "worker 2 \(host n1, pid [0-9]+\) is out of reach" "$limit_of_workers"
  ip link set n1 up
done

# Limits are whole minutes, which the controller checks every 30 s. To save the rest of the minute, its end is
# moved to now; Slurm then ends the job as at any limit.
for launcher in srun mpirun; do
  start "time limit, $launcher" "$launcher" --time=1
  scontrol update job="$job" EndTime=now
  within 40 says "DUE TO TIME LIMIT" || fail "the limit does not end the job"
  ends "^cohort: worker [01] \(.* ends: interrupted by SIGTERM" "$limit_of_workers"
  # mpirun kills the slow, and what its daemon on the other host hands on is lost, for Slurm ends that, too.
  if [[ $launcher == srun ]]; then
    for worker in 0 1 2 3; do
      says "^cohort: worker $worker \(.* ends: interrupted by SIGTERM" || fail "worker $worker does not say what ends it"
    done
  fi
  within "$limit_of_job" is_timed_out || fail "the job does not count as out of time: $(scontrol show job "$job")"
  [[ $(scontrol show job "$job") != *ExitCode=0:0* ]] || fail "the job's status is that of a good one"
done

start "killed worker" srun
kill -KILL "$(worker 3)"
ends "worker 3 \(host n1, pid [0-9]+\) is gone" "$limit_of_killed_workers"

start "dead host" srun
ip link set n1 down
kill -KILL "$(process_1_of n1)"
ends "worker [23] \(host n1, pid [0-9]+\) is out of reach" "$limit_of_workers"
