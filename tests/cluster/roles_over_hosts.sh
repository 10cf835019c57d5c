#!/usr/bin/env bash
# The tasks of `cohort-run --roles` over two virtual hosts: where they run, how the job ends, and what becomes
# of it when a task, a supervisor or a host is lost. Parameter servers keep no variables here, but say to their
# supervisors what servers say.
#
#   roles_over_hosts.sh LAUNCHER COHORT_RUN COHORT_SUPERVISE TASK_PROBE
#   roles_over_hosts.sh counts COHORT_RUN COHORT_SUPERVISE COUNTS
#
#   LAUNCHER   hosts: mpirun over hosts that are listed; mpirun, srun: in an allocation of Slurm;
#              het: in a heterogeneous one
#   counts     as hosts, but over three, with servers that keep variables, one of which loses its host
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} != inside ]]; then
  "$scripts/hosts.sh" check --slurm || exit
  tree=$(mktemp -d)
  trap 'wait; rm -rf "$tree"' EXIT
  # As in a checkout, wherever the build is.
  mkdir -p "$tree/build/bin"
  cp -r "$(dirname "$2")" "$tree/launch"
  ln -s "$3" "$tree/build/bin/cohort-supervise"
  ln -s "$4" "$tree/probe"  # a name that can stand in patterns
  # Parts of the cases beside each other, each on a cluster of its own: they wait most of the time.
  hosts=2
  case $1 in
    counts) parts=(counts_through_process counts_through_host) hosts=3 ;;
    het) parts=(places) ;;  # the rest is as with srun
    mpirun) parts=(places lost_processes cut_link) ;;
    *) parts=(places lost_processes cut_link dead_host) ;;
  esac
  clusters=()
  for part in "${parts[@]}"; do
    mkdir -p "$tree/$part/ready"
    "$scripts/hosts.sh" slurm --hosts "$hosts" --share "$tree" --share "$(dirname "$3")" \
      -- "$scripts/roles_over_hosts.sh" inside "$1" "$part" "$tree" &
    clusters+=($!)
  done
  for cluster in "${clusters[@]}"; do wait "$cluster"; done
  exit
fi
export launcher=$2 part=$3 tree=$4 probe=$4/probe work=$4/$3 ready=$4/$3/ready
readonly roles=chief=1,worker=3,ps=2

# Says where it is, and does what the case says; ends when it is told to, whatever that is.
cat >"$work/task" <<'END'
#!/usr/bin/env bash
said=$("$probe") || exit 70
# What the launcher tells its ranks is not for tasks.
[[ -z $(compgen -e | grep -E '^(OMPI_COMM_|PMIX_|PMI_|SLURM_PROCID|SLURM_STEP_)') ]] || exit 71
declare $said
[[ $standby == false ]] || job=standby
echo "pid=$$ host=$(uname -n) $said" >"$ready/.$job.$index"
mv "$ready/.$job.$index" "$ready/$job.$index.$restarts"
# Words to and from its supervisor are of one byte each.
may_go_alone() { printf '\001' >&"$line" && read -rN 1 -u "$line" word && [[ $word == $'\002' ]]; }
if [[ $job == ps && $line != -1 ]]; then
  may_go_alone || exit 72
  printf '\003' >&"$line"
  : >"$ready/ps.$index.copied"
elif [[ $job == standby ]]; then
  # A read with a time limit may take a word and drop it.
  trap 'exit 0' USR1
  (until [[ -e $ready/go ]]; do kill -0 $$ || exit; sleep 0.05; done 2>/dev/null; kill -USR1 $$) &
  read -rN 1 -u "$line" word
  [[ $word == $'\004' ]] && may_go_alone || exit 73
  : >"$ready/ps.$index.took_over"
fi
until [[ -e $ready/go ]]; do sleep 0.05; done
[[ $job == chief ]] || exit 0
exit "$(<"$ready/go")"
END
# A host outlives mpirun, and would hold its output open.
cat >"$work/agent" <<'END'
#!/usr/bin/env bash
exec /run/scripts/agent.sh "$@" >>"$work/hosts" 2>&1
END
chmod +x "$work/task" "$work/agent"

fail() { echo "roles_over_hosts: $launcher: $case: $*, $(cat "$work"/{out,err})" >&2; exit 1; }
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}
has_ended() { ! kill -0 "$1" 2>/dev/null; }
are_ready() { [[ $(echo "$ready"/* | sed "s|$ready/||g") == "chief.0.0 ps.0.0 ps.1.0$standby worker.0.0 worker.1.0 worker.2.0" ]]; }
is_ready() { [[ -e $ready/$1 ]]; }
says() { grep -q "$1" "$work/err"; }
# The head's /proc shows the processes of all hosts; its own numbers for them.
processes() { pgrep -f "$1" || true; }
supervisors() { pgrep --runstates R,S,D,T,t -x cohort-supervis || true; }  # as much of the name as the system keeps
process_1_of() { pgrep -f "^bash [^ ]*/host.sh $1 " || true; }
# Slurm's daemon has a host of that name, and each mpirun brings its own.
is_on() {
  local hosts
  hosts=$(process_1_of "$2" | sed 's|.*|/proc/&/ns/uts|' | xargs readlink)
  [[ " ${hosts//$'\n'/ } " == *" $(readlink "/proc/$1/ns/uts") "* ]]
}
supervisor_on() {
  local each
  for each in $(supervisors); do
    if is_on "$each" "$1"; then echo "$each"; fi
  done
}
tasks() { processes "^bash $work/task"; }
# task JOB INDEX [STANDBY]: its process; with `true`, that of its standby. What
# these have started themselves is younger.
task() {
  local each
  for each in $(tasks); do
    if has_card_of "$each" "$1" "$2" "${3:-false}"; then echo "$each"; return; fi
  done
}
has_card_of() {
  local card
  card=$(tr '\0' '\n' <"/proc/$1/environ" | sed -n 's/^COHORT_TASK_FD=//p')
  grep -q "\"standby\":$4,\"task\":{\"index\":$3,\"type\":\"$2\"}" "/proc/$1/fd/$card" 2>/dev/null
}

# start CASE [OPTION...]: returns when all tasks run.
start() {
  case=$1
  standby=" ps.1.copied standby.1.0"
  [[ $* != *"--copies 1"* ]] || standby=""
  rm -f "$ready"/*
  launch --roles "$roles" "${@:2}" "$work/task" >"$work/out" 2>"$work/err" &
  job=$!
  within 40 are_ready || fail "the tasks do not start: $(ls "$ready")"
}
launch() {
  case $launcher in
    srun) salloc -Q -N 2 --ntasks-per-node=1 --no-kill "$tree/launch/cohort-run" "$@" ;;
    mpirun) salloc -Q -N 2 --ntasks-per-node=1 --no-kill "$tree/launch/cohort-run" --launcher mpirun "$@" ;;
    het) salloc -Q -N 1 -n 1 : -N 1 -n 2 "$tree/launch/cohort-run" "$@" ;;
    hosts | counts)
      [[ $launcher == hosts ]] || list=n0,n1,n2
      env OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$work/agent" OMPI_MCA_plm_rsh_no_tree_spawn=1 \
        "$tree/launch/cohort-run" --hosts "${list:-n0,n1}" "$@" ;;
  esac
}
# go STATUS_OF_CHIEF; ends STATUS: soon, and nothing is left.
go() { echo "$1" >"$ready/.go"; mv "$ready/.go" "$ready/go"; }
ends() {
  local status=0
  within 60 has_ended "$job" || fail "it goes on"
  wait "$job" || status=$?
  # shellcheck disable=SC2053  # a pattern
  [[ $status == $1 ]] || fail "the status is $status"
  within 10 none_left || fail "left: $( (supervisors; tasks) | xargs ps)"
}
none_left() { [[ -z $(supervisors)$(tasks) ]]; }

has_calls() { [[ -e $ready/calls && $(<"$ready/calls") -ge $1 ]]; }
# count_through CASE SAID_BEFORE COMMAND...: the command has ps 1 lost, and its standby goes on.
count_through() {
  case=$1
  launch --roles chief=1,worker=2,ps=2 "$probe" "$ready" >"$work/out" 2>"$work/err" &
  job=$!
  within 40 has_calls 100 || fail "nothing is counted"
  "${@:3}"
  local calls
  calls=$(<"$ready/calls")
  within 9 has_calls $((calls + 100)) || fail "nothing is counted after call $calls"
  says "$2ps 1 goes on at host n2, where its standby has all of its variables" || fail "nobody says why"
  go 0
  ends 0
  grep "calls are counted" "$work/out" || fail "the counts are unknown"
}
kill_server() {
  local each
  for each in $(processes "^$probe "); do
    if has_card_of "$each" ps 1 false; then kill -KILL "$each"; fi
  done
}
counts_through_process() {
  count_through "a server's process" "" kill_server
  says "ps 1 (host n1, .*) was ended by SIGKILL; it is not started again" || fail "its end goes unnoticed"
}
counts_through_host() {
  count_through "a server's host" "supervisor 1 .*: worker 0 is lost with it; " ip link set n1 down
}

places() {
  local place
  start places
  for place in chief.0:n0 worker.0:n1 worker.1:n0 worker.2:n1 ps.0:n0 ps.1:n1 standby.1:n0; do
    grep -q "host=${place#*:} " "$ready/${place%:*}.0" || fail "$place: $(<"$ready/${place%:*}.0")"
  done
  grep -q "network=10.99.0.2:" "$ready/worker.0.0" || fail "worker 0 is out of reach: $(<"$ready/worker.0.0")"
  go 0
  ends 0
  says "the job has ended with status 0" || fail "it does not say how it ended"
}

readonly losses='worker 0, worker 2 are lost with it'
readonly goes_on="$losses; ps 1 goes on at host n0, where its standby has all of its variables"

lost_processes() {
  # mpirun leaves the others alone, and yet sleeps twice for so many seconds at the end of such a job.
  export OMPI_MCA_odls_base_sigkill_timeout=0

  start "killed worker" --restarts 1
  kill -KILL "$(task worker 1)"
  within 10 is_ready worker.1.1 || fail "it is not started again"
  [[ $(sed 's/.*\(network=[^ ]*\).*/\1/' "$ready"/worker.1.* | sort -u | wc -l) == 1 ]] || fail "it listens elsewhere"
  go 3
  ends 3

  start "killed chief"
  kill -KILL "$(task chief 0)"
  ends 137
  says "chief 0 has failed, so all other tasks are ended" || fail "nobody says why"

  start "killed supervisor" --restarts 1
  kill -KILL "$(supervisor_on n1)"
  within 10 says "supervisor 1 .* has ended or closed the connection: $goes_on" || fail "nobody notices"
  within 10 is_ready ps.1.took_over || fail "its standby is not told"
  kill -KILL "$(task ps 1 true)"
  within 10 is_ready ps.1.1 || fail "the ps is not started again"
  grep -q "host=n0 .* standby=false .* line=-1" "$ready/ps.1.1" || fail "it is started as $(<"$ready/ps.1.1")"
  kill -KILL "$(task ps 1)"
  within 10 says "ps 1 (host n0, .*) was ended by SIGKILL; it is not started again" || fail "its end goes unnoticed"
  go 0
  ends 0

  if [[ $launcher == hosts ]]; then lost_servers; fi

  start "killed first supervisor"
  kill -KILL "$(supervisor_on n0)"
  ends "[1-9]*"
  # srun ends the step, too, and may lose what the others have just said.
  [[ $launcher == srun ]] || says "it has led the job, so all tasks here are ended" || fail "nobody says why"
}

lost_servers() {
  start "killed server"
  kill -KILL "$(task ps 1)"
  within 10 says "ps 1 goes on at host n0, where its standby has all of its variables" || fail "nobody notices"
  within 10 is_ready ps.1.took_over || fail "its standby is not told"
  kill -KILL "$(task ps 1 true)"
  within 10 says "ps 1 (host n0, .*) was ended by SIGKILL; it is not started again" || fail "its end goes unnoticed"
  go 0
  ends 0

  start "killed standby"
  kill -KILL "$(task ps 1 true)"
  within 10 says "the standby of ps 1 (host n0, .*; it is not started again, .*; ps 1 goes on without it" || fail "nobody notices"
  rm "$ready/ps.1.0"
  kill -KILL "$(supervisor_on n1)"
  within 10 is_ready ps.1.0 || fail "nobody takes over"
  grep -q "host=n0 .* standby=false .* line=-1" "$ready/ps.1.0" || fail "it is started as $(<"$ready/ps.1.0")"
  says "ps 1 is started, for its standby has ended" || fail "nobody says so"
  go 0
  ends 0
}

cut_link() {
  start "cut link"
  ip link set n1 down
  within 15 says "supervisor 1 .*: $goes_on" || fail "nobody notices"
  go 0
  ends 0
}

dead_host() {
  start "dead host" --copies 1
  # Slurm's is the oldest, and that of this mpirun the newest.
  kill -KILL "$(process_1_of n1 | if [[ $launcher == srun ]]; then head -n 1; else tail -n 1; fi)"
  within 15 says "supervisor 1 .*: worker 0, worker 2, ps 1 are lost with it$" || fail "nobody notices"
  go 0
  ends 0
}

"$part"
