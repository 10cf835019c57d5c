#!/usr/bin/env bash
# Jobs that fail under Slurm, two workers on each of two hosts: soon all workers have ended, the job, too, the
# output says what happened, and nothing is left on the hosts. In most cases a job of srun and one of mpirun fail
# alike, beside each other.
#
#   slurm_faults.sh FAULT_VICTIM COHORT_RUN
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} != inside ]]; then
  "$scripts/hosts.sh" check --slurm || exit
  work=$(mktemp -d)
  trap 'wait; rm -rf "$work"' EXIT
  # on_cluster PART FAULT_VICTIM COHORT_RUN: a cluster of its own for a part of the cases.
  on_cluster() {
    mkdir "$work/$1"
    "$scripts/hosts.sh" slurm --share "$work" --share "$(dirname "$2")" --share "$(dirname "$3")" \
      -- "$scripts/slurm_faults.sh" inside "$1" "$work/$1" "${@:2}"
  }
  # It waits most of the time, while the others run.
  on_cluster ended_jobs "$@" &
  beside=$!
  on_cluster cut_link "$@"
  on_cluster dead_host "$@"
  wait "$beside"
  exit
fi
part=$2 work=$3 program=$4 cohort_run=$5
# shellcheck source=tests/cluster/slurm_batch.sh
source "$scripts/slurm_batch.sh"
# Workers without a sign of life are noticed after 5 s, and those that hang are ended 3 s later. Where
# Slurm ends all by itself, only a slow machine takes long.
readonly limit_of_workers=10 limit_of_killed_workers=20 limit_of_job=30

fail() {
  echo "slurm_faults: $case: $*" >&2
  tail -n 1000 "$work"/output.* >&2
  exit 1
}

# The jobs of a case by their launchers, which stand for them in what follows.
declare -A jobs
output() { echo "$work/output.$1"; }
says() { grep -Eq "$2" "$(output "$1")"; }
state() { scontrol show job "${jobs[$1]}"; }
# Read to the end: a pipe that is closed early would look like an answer.
has_ended() { [[ $(state "$1") != *JobState=@(PENDING|RUNNING)* ]]; }
is_timed_out() { [[ $(state "$1") == *JobState=TIMEOUT* ]]; }

# The head's /proc shows the processes of all hosts. One that has ended counts no more, although the launcher on
# a host that is cut off may not have taken its status yet.
workers() { pgrep --runstates R,S,D,T,t -x fault_victim || true; }
worker() { { workers | sed 's|.*|/proc/&/environ|' | xargs grep -lszx "SLURM_PROCID=$1" || true; } | cut -d / -f 3; }
process_1_of() { pgrep -f "^bash [^ ]*/host.sh $1 "; }
# But for Open MPI's own segments.
left_on() { nsenter --target "$1" --mount ls -A /dev/shm | grep -v '^vader_segment\.' || true; }
none_work() { [[ -z $(workers) ]]; }
is_idle() { [[ $(sinfo -h -N -t idle -o %N | wc -l) == 2 ]]; }

# within SECONDS CONDITION...
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# submit LAUNCHER [OPTION...]: Slurm itself shall not end the job because of a lost host.
submit() {
  : >"$(output "$1")"
  jobs[$1]=$(sbatch --parsable --no-kill --no-requeue --output="$(output "$1")" -N 2 --ntasks-per-node=2 "${@:2}" \
    --wrap "exec '$cohort_run' --launcher $1 '$program' collective none none")
}
# start CASE LAUNCHERS [OPTION...]: submits a job for each, beside each other; returns when all workers run.
start() {
  local launcher starts=1
  case=$1
  within 60 is_idle || fail "the hosts are not idle: $(sinfo -N)"
  jobs=()
  for launcher in $2; do submit "$launcher" "${@:3}"; done
  for launcher in $2; do
    until
      within 30 says "$launcher" "all are running|Process received signal" || fail "the workers of $launcher do not start"
      ! crashed_in_mpi_init "$(output "$launcher")"
    do
      ((starts++ < most_starts)) || fail "MPI_Init crashes each time"
      scancel "${jobs[$launcher]}"
      within 30 has_ended "$launcher" || fail "a crashed job goes on"
      submit "$launcher" "${@:3}"
    done
  done
}

# ends MESSAGE LIMIT: the rest of the case, once the fault is there; workers have LIMIT seconds to end.
ends() {
  local since=${EPOCHREALTIME/./} of_workers launcher host process
  within "$2" none_work || fail "workers are left after $2 s: $(workers | xargs ps)"
  of_workers=$(((${EPOCHREALTIME/./} - since) / 1000))
  for launcher in "${!jobs[@]}"; do
    within "$limit_of_job" has_ended "$launcher" || fail "the job of $launcher goes on after $limit_of_job s"
    [[ $(state "$launcher") != *JobState=COMPLETED* ]] || fail "the job of $launcher counts as a good one"
    says "$launcher" "$1" || fail "nobody says '$1' under $launcher"
  done
  for host in n0 n1; do
    process=$(process_1_of "$host") || continue  # a dead one
    [[ -z $(left_on "$process") ]] || fail "left in the shared memory of $host: $(left_on "$process")"
  done
  echo "slurm_faults: $case, ${!jobs[*]}: workers ended after $of_workers ms, the jobs after" \
    "$(((${EPOCHREALTIME/./} - since) / 1000)) ms"
}

cut_link() {
  start "cut link" "srun mpirun"
  ip link set n1 down
  ends "worker 2 \(host n1, pid [0-9]+\) is out of reach" "$limit_of_workers"
}

dead_host() {
  start "dead host" srun
  ip link set n1 down
  kill -KILL "$(process_1_of n1)"
  ends "worker [23] \(host n1, pid [0-9]+\) is out of reach" "$limit_of_workers"
}

ended_jobs() {
  local launcher worker
  start scancel "srun mpirun"
  scancel "${jobs[@]}"
  ends "interrupted by SIGTERM|CANCELLED" "$limit_of_killed_workers"

  start "killed worker" srun
  kill -KILL "$(worker 3)"
  ends "worker 3 \(host n1, pid [0-9]+\) is gone" "$limit_of_killed_workers"

  # Limits are whole minutes, which the controller checks every 30 s from its start on. To save the rest of the
  # minute, their end is moved to now; Slurm then ends the jobs as at any limit. They take all cores, and so do not
  # start long before.
  within 60 is_about_to_check || fail "the controller is not there"
  start "time limit" "srun mpirun" --time=1
  for launcher in srun mpirun; do
    # The controller refuses a time that has passed when it hears of it, if by a moment.
    within 10 scontrol --quiet update job="${jobs[$launcher]}" EndTime=now || fail "the end is not moved"
  done
  for launcher in srun mpirun; do
    within 40 says "$launcher" "DUE TO TIME LIMIT" || fail "the limit does not end the job of $launcher"
  done
  ends "^cohort: worker [01] \(.* ends: interrupted by SIGTERM" "$limit_of_workers"
  # mpirun kills the slow, and what its daemon on the other host hands on is lost, for Slurm ends that, too.
  for worker in 0 1 2 3; do
    says srun "^cohort: worker $worker \(.* ends: interrupted by SIGTERM" || fail "worker $worker does not say what ends it"
  done
  for launcher in srun mpirun; do
    within "$limit_of_job" is_timed_out "$launcher" || fail "the job of $launcher does not count as out of time: $(state "$launcher")"
    [[ $(state "$launcher") != *ExitCode=0:0* ]] || fail "the status of $launcher's job is that of a good one"
  done
}
is_about_to_check() { (($(ps -o etimes= -C slurmctld) % 30 >= 20)); }

"$part"
