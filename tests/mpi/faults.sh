#!/usr/bin/env bash
# Runs fault_victim under the launcher and checks how the job ends: soon, with an exit
# status, with the culprit's rank and host named by every survivor, with nothing left.
#
#   tests/mpi/faults.sh PHASE HOW ending|recovery RANKS LAUNCHER... PROGRAM
#
#   ending     the launcher ends the other workers, as it does by default
#   recovery   it leaves them alone, so they have to notice and end by themselves
#   HOW        as fault_victim, and: interrupt, which is Ctrl-C on the launcher; silence, a stop that the
#              watch notices before a deadline
set -euo pipefail

phase=$1 how=$2 launcher_does=$3 ranks=$4
shift 4
launcher=("${@:1:$#-1}")
program=${!#}
victim=$((ranks - 1))
limit_seconds=10

work=$(mktemp -d)
program_copy=$work/fault_victim  # a path of its own tells its processes from those of other tests
ln -s "$program" "$program_copy"
output=$work/output
trap 'rm -rf "$work"' EXIT

fail() {
  echo "faults: $phase, $how, launcher: $launcher_does: $*" >&2
  sed 's/^/  | /' "$output" >&2
  exit 1
}
says() { grep -Eq "$1" "$output"; }

# Files that Open MPI itself leaves after a kill go to a folder that is deleted.
launcher+=(--mca btl_vader_backing_directory "$work" --mca orte_tmpdir_base "$work")
command=("$program_copy" "$phase" "$how" "$victim")
if [[ $how == interrupt ]]; then command[2]=none; fi
if [[ $how == silence ]]; then command[2]=stop; fi
if [[ $launcher_does == recovery ]]; then
  # Then mpirun's own exit status is always 0, so that each worker's is kept in a file.
  launcher+=(--mca orte_enable_recovery 1)
  # shellcheck disable=SC2016
  command=(bash -c 'status=0; "${@:2}" || status=$?; echo "$status" >"$1/status.$OMPI_COMM_WORLD_RANK"' worker
    "$work" "${command[@]}")
fi

export COHORT_COLLECTIVE_TIMEOUT_SECONDS=30
if [[ $how == stop || $how == loop ]]; then export COHORT_COLLECTIVE_TIMEOUT_SECONDS=2; fi
if [[ $how == silence ]]; then export COHORT_HEARTBEAT_SECONDS=0.1 COHORT_SILENCE_SECONDS=0.5; fi
if [[ $phase == init ]]; then export COHORT_COLLECTIVE_TIMEOUT_SECONDS=4; fi

start=$(date +%s%N)
status=0
timeout --signal=KILL 40 "${launcher[@]}" "${command[@]}" >"$output" 2>&1 </dev/null &
job=$!
if [[ $how == interrupt ]]; then
  until says "all are running"; do
    kill -0 "$job" 2>/dev/null || fail "the job has ended before all are running"
    sleep 0.05
  done
  kill -INT "$(pgrep -P "$job")"
fi
wait "$job" || status=$?
# mpirun may end before the kernel has taken down those that it killed.
while took=$((($(date +%s%N) - start) / 1000000)) && left=$(pgrep -af "$program_copy"); do
  if ((took >= limit_seconds * 1000)); then
    pkill -KILL -f "$program_copy" || true
    fail "processes are left: $left"
  fi
  sleep 0.02
done

((took < limit_seconds * 1000)) || fail "the job took $took ms"
if [[ $how == child ]]; then
  ((status == 0)) || fail "the job's exit status is $status"
elif [[ $launcher_does == ending ]]; then
  ((status != 0)) || fail "the job's exit status is 0"
else
  # A file is missing where the launcher has killed the shell as well.
  ! grep -lx 0 "$work"/status.* >>"$output" || fail "a worker exits with 0"
  # By it cohort-run knows that a worker was lost, whichever end the launcher hears of first.
  wanted=1
  if [[ $phase != init && ($how == kill || $how == late || $how == silence) ]]; then wanted=75; fi
  for ((worker = 0; worker < victim; worker++)); do
    [[ ! -e $work/status.$worker || $(<"$work/status.$worker") == "$wanted" ]] ||
      fail "worker $worker exits with $(<"$work/status.$worker"), not with $wanted"
  done
fi

culprit="worker $victim \(host $(hostname), pid [0-9]+\)"
case $how in
  kill | late) reason="$culprit is gone: its process ended without leaving the session" ;;
  uncaught) reason="$culprit failed: the victim's own mistake" ;;
  caught) reason="$culprit failed: an exception ended its Session" ;;
  stop) reason="deadline.*member $victim \(worker $victim, host $(hostname)\)" ;;
  loop) reason="end of the session #[0-9]+: deadline of 2 s passed; missing: $culprit" ;;
  exit) reason="$culprit failed: the program called exit\(\) while its Session lived" ;;
  child)
    says "^the child's status is 0$" || fail "the child did not end well"
    ! says "^cohort" || fail "the end of the child is reported"
    exit 0
    ;;
  silence) reason="$culprit is out of reach: no sign of life for 0\.5 s" ;;
  interrupt)
    # Not all, if the machine is busy: mpirun sends SIGKILL as soon as the first has ended.
    says "^cohort: worker [0-9]+ \(.* ends: interrupted by SIGTERM$" || fail "nobody says that the job was interrupted"
    ! says "is gone|failed|ends because" || fail "the interruption is reported as a fault"
    exit 0
    ;;
esac

case $how in
  uncaught) says "^cohort: $reason$" || fail "the victim does not say why it failed" ;;
  exit) says "^cohort: $culprit ends: the program called exit\(\)" || fail "the victim does not say why it ended" ;;
  caught) says "^caught by worker $victim: the victim's own mistake$" || fail "the victim's message is lost" ;;
esac
# Before the Session exists, only the launcher notices; with recovery, nothing does.
if [[ $phase == init ]]; then
  if [[ $launcher_does == recovery ]]; then
    says "the workers have not come together within 4 s" || fail "nobody says what was waited for"
  fi
  exit 0
fi
# Who waits in a collective gets an exception that names the call as well.
if [[ ($phase == collective || $phase == group || $phase == private) && $how != stop ]]; then reason="all_reduce #[0-9]+: $reason"; fi
for ((worker = 0; worker < victim; worker++)); do
  says "worker $worker( |:).*$reason" || fail "worker $worker does not name the culprit"
done
