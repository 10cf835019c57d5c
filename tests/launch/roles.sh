#!/usr/bin/env bash
# The tasks of `cohort-run --roles` on one machine: what each is given, how they end and are started again, and
# that nothing of a job is left.
#
#   roles.sh COHORT_RUN COHORT_SUPERVISE TASK_PROBE
set -euo pipefail
scratch=$(mktemp -d)
supervisor=""
trap '[[ -z $supervisor ]] || kill -KILL "$supervisor"; rm -rf "$scratch"' EXIT
fail() { echo "roles: $*" >&2; exit 1; }
contains() { [[ $2 == *"$1"* ]] || fail "no '$1' in: $2"; }

# As in a checkout, wherever the build is.
mkdir -p "$scratch/build/bin" "$scratch/ready"
cp -r "$(dirname "$1")" "$scratch/launch"
ln -s "$2" "$scratch/build/bin/cohort-supervise"
cohort_run=$scratch/launch/cohort-run
export probe=$3 ready=$scratch/ready
for name in $(compgen -e | grep -E '^(COHORT_|OMPI_COMM_|PMIX_|PMI_|SLURM_)'); do unset "$name"; done

# A task is a shell that knows its place, says so in a file, and does what the case says. A `ps` keeps `kept`.
cat >"$scratch/task" <<'END'
#!/usr/bin/env bash
said=$("$probe" kept) || exit 70
declare $said
eval "${prepare:-}"
echo "pid=$$ $said" >"$ready/.$$"
mv "$ready/.$$" "$ready/$job.$index.$restarts"
# Until the first of these tasks has ended, and the supervisor knows.
until_gone() { while kill -0 "$(sed 's/pid=\([0-9]*\).*/\1/' "$ready/$1.0.0")" 2>/dev/null; do sleep 0.02; done; }
until_told() { until [[ -e $ready/go ]]; do sleep 0.02; done; }
eval "$what"
END
chmod +x "$scratch/task"

within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.02
  done
}
has_ended() { ! kill -0 "$1" 2>/dev/null; }
is_ready() { [[ -e $ready/$1 ]]; }
# of TASK FIELD: what the task of that start, as in worker.1.0, was given.
of() { sed "s/.*\b$2=\([^ ]*\).*/\1/" "$ready/$1"; }

# start WHAT ROLES [OPTION...]: a job whose tasks do WHAT; returns when each has been started, and has done
# what the variable `prepare` says.
start() {
  local entry id
  rm -rf "$ready"
  mkdir "$ready"
  what=$1 env --default-signal=INT,QUIT "$cohort_run" --roles "${@:2}" "$scratch/task" >"$scratch/out" 2>"$scratch/err" </dev/null &
  supervisor=$!
  for entry in ${2//,/ }; do
    for ((id = 0; id < ${entry#*=}; id++)); do
      within 20 is_ready "${entry%=*}.$id.0" || fail "${entry%=*} $id does not start: $(<"$scratch/err")"
    done
  done
}
go() { : >"$ready/go"; }
# ends STATUS: the rest of the case; nothing is left.
ends() {
  local status=0
  within 20 has_ended "$supervisor" || fail "the job goes on: $(<"$scratch/err")"
  wait "$supervisor" 2>/dev/null || status=$?
  supervisor=""
  ((status == $1)) || fail "the status is $status: $(<"$scratch/err")"
  ! pgrep -f "$scratch" >/dev/null || fail "left: $(pgrep -af "$scratch")"
}
says() { contains "$1" "$(<"$scratch/err")"; }

echo "the place of each task"
start until_told chief=1,worker=2,ps=2
[[ $(ls "$ready") == $'chief.0.0\nps.0.0\nps.1.0\nworker.0.0\nworker.1.0' ]] || fail "tasks: $(ls "$ready")"
for field in network local; do
  [[ $(sed "s/.*\b$field=\([^ ]*\).*/\1/" "$ready"/* | sort -u | wc -l) == 5 ]] || fail "$field: $(cat "$ready"/*)"
done
[[ $(sed "s/.*\bsecret=\([^ ]*\).*/\1/" "$ready"/* | sort -u | wc -l) == 1 ]] || fail "secrets: $(cat "$ready"/*)"
contains "tasks=5" "$(<"$ready/ps.1.0")"
contains "standby=false" "$(<"$ready/ps.1.0")"
contains "line=-1" "$(<"$ready/ps.1.0")"

echo "the secret is in no variable and no argument"
for task in "$supervisor" "$(of worker.1.0 pid)"; do
  secret=$(sed 's/.*"secret":"\([0-9a-f]*\)".*/\1/' "/proc/$(of worker.1.0 pid)/fd/$(of worker.1.0 card)")
  ((${#secret} == 64)) || fail "there is no secret: '$secret'"
  ! grep -aq "$secret" "/proc/$task/environ" "/proc/$task/cmdline" || fail "everyone can read the secret"
done
go
ends 0

echo "a killed task is started again, with the same address and memory"
start until_told chief=1,worker=1,ps=1 --restarts 1
exec {connection}<>"/dev/tcp/${network:=127.0.0.1}/$(of ps.0.0 network | sed 's/.*://')"
echo hello >&"$connection"
kill -KILL "$(of ps.0.0 pid)" "$(of worker.0.0 pid)"
within 20 is_ready ps.0.1 || fail "the ps is not started again: $(<"$scratch/err")"
within 20 is_ready worker.0.1 || fail "the worker is not started again: $(<"$scratch/err")"
exec {connection}>&-
says "worker 0 (host $(uname -n), pid $(of worker.0.0 pid)) was ended by SIGKILL; it is started again, 1 of 1 times"
for field in network local secret; do
  [[ $(of ps.0.1 $field) == "$(of ps.0.0 $field)" ]] || fail "another $field: $(cat "$ready"/ps.*)"
done
contains "heard=hello" "$(<"$ready/ps.0.1")"
contains "memory=kept" "$(<"$ready/ps.0.1")"
contains "memory=" "$(<"$ready/ps.0.0")"

echo "a lost worker is the chief's affair"
kill -KILL "$(of worker.0.1 pid)"
within 20 grep -q "it is not started again, for --restarts is 1" "$scratch/err" || fail "it says: $(<"$scratch/err")"
go
ends 0

echo "what a killed task has started ends with it"
# shellcheck disable=SC2016  # expanded by the tasks
start 'if [[ $job == worker ]]; then sleep 1000 & echo $! >"$ready/child"; wait; else until_told; fi' worker=1,chief=1
within 20 is_ready child || fail "there is no child"
kill -KILL "$(of worker.0.0 pid)"
within 20 has_ended "$(<"$ready/child")" || fail "the child of a killed task is left"
go
ends 0

echo "a chief that is lost"
start until_told chief=1,worker=2,ps=1
kill -KILL "$(of chief.0.0 pid)"
ends 137
says "chief 0 has failed, so all other tasks are ended"
start until_told worker=2,ps=1
kill -KILL "$(of worker.0.0 pid)"
ends 137
says "worker 0 has failed"

echo "exit statuses"
# shellcheck disable=SC2016
for case in 'chief) exit 3 ;; *) sleep 1000|3' 'worker) exit 4|4' '*)|0' \
  'chief) until_gone worker; exit 3 ;; worker) exit 4|3' 'ps) exit 5 ;; *) until_gone ps|5'; do
  start "until_told; case \$job in ${case%|*} ;; esac" chief=1,worker=1,ps=1
  go
  ends "${case#*|}"
done

echo "a worker that goes on after the chief"
# shellcheck disable=SC2016
start '[[ $job == chief ]] || until_told' chief=1,worker=1
within 20 grep -q "chief 0 has ended; the job goes on until worker 0 has, too" "$scratch/err" || fail "nobody is named"
go
ends 0

echo "parameter servers that do not end by themselves"
# shellcheck disable=SC2016
start 'if [[ $job == ps ]]; then if [[ $index == 1 ]]; then trap "" TERM; fi; while true; do sleep 0.1; done; fi' worker=1,ps=2
ends 0

has_told_two() { [[ -e $ready/told && $(wc -l <"$ready/told") == 2 ]]; }
echo "signals reach all but the parameter servers"
for signal in INT TERM HUP QUIT USR1 USR2; do
  # shellcheck disable=SC2016
  prepare='trap "echo $job >>\"$ready/told\"; exit 0" '$signal start until_told chief=1,worker=1,ps=1
  kill "-$signal" "$supervisor"
  within 20 has_told_two || fail "SIG$signal reaches $(cat "$ready/told")"
  go
  ends 0
  [[ $(sort "$ready/told" | xargs) == "chief worker" ]] || fail "SIG$signal reaches $(<"$ready/told")"
done
start until_told chief=1,worker=1,ps=1 --restarts 3
kill -TERM "$supervisor"
ends 143
! grep -q "started again" "$scratch/err" || fail "tasks are started again after SIGTERM: $(<"$scratch/err")"

echo "a killed supervisor"
start until_told chief=1,worker=2,ps=1
kill -KILL "$supervisor"
ends 137

echo "standard input is the chief's"
[[ $(echo fed | "$cohort_run" --roles worker=3,ps=1 cat) == fed ]] || fail "it is not passed on, or several times"

echo "mistakes"
refuses() {
  local status=0
  "${@:3}" >"$scratch/out" 2>"$scratch/err" || status=$?
  ((status == $1)) || fail "'${*:3}' ends with $status"
  [[ $(wc -l <"$scratch/err") == 1 && ! -s $scratch/out ]] || fail "'${*:3}' says: $(cat "$scratch"/{out,err})"
  says "$2"
}
# ROLES MESSAGE_OF_COHORT_RUN MESSAGE_OF_COHORT_SUPERVISE
while IFS='|' read -r list early late; do
  refuses 2 "$early" "$cohort_run" --roles "$list" true
  refuses 2 "$late" "$2" --roles "$list" true
done <<'END'
boss=1|there is no job 'boss'|a job 'boss'
worker=1,worker=2|'worker' is listed twice|'worker' is listed twice
worker=0|'worker=0' needs a number from 1|a number of tasks from 1 is missing
worker|'worker' needs a number from 1|a job and its number of tasks are missing
worker=two|'worker=two' needs a number from 1|a number of tasks from 1 is missing
chief=2|there can be one chief|2 tasks of the job 'chief'
ps=2|neither a chief nor a worker|neither a chief nor a worker
worker=1,|is no list as in|a job and its number of tasks are missing
worker=99999|at most|at most
END
refuses 2 "--restarts needs a number" "$cohort_run" --roles worker=1 --restarts x true
refuses 2 "--copies is 1 or 2" "$cohort_run" --roles worker=1 --copies 3 true
refuses 2 "--copies is for --roles" "$cohort_run" --copies 1 true
refuses 2 "-n is for workers" "$cohort_run" --roles worker=1 -n 2 true
refuses 2 "write --hosts without numbers" "$cohort_run" --roles worker=1 --hosts n0:2 true
refuses 2 "no launcher is needed" "$cohort_run" --roles worker=1 --launcher-options x true
refuses 127 "there is no program ./digit" "$cohort_run" --roles worker=1 ./digit
refuses 2 "Permission denied" "$2" --roles worker=1 "$scratch/launch"
refuses 2 "--roles is missing" "$2" true
refuses 2 "--restarts '-1' is no whole number" "$2" --roles worker=1 --restarts -1 true
refuses 2 "--copies '0' is neither 1 nor 2" "$2" --roles worker=1 --copies 0 true
refuses 2 "--copies needs a value" "$2" --roles worker=1 --copies
refuses 2 "there is no option --role" "$2" --role worker=1 true
refuses 1 "cohort-run --roles" "$probe"
mv "$scratch/build" "$scratch/elsewhere"
refuses 1 "there is no cohort-supervise" env PATH=/usr/bin:/bin "$cohort_run" --roles worker=1 true
PATH=$scratch/elsewhere/bin:$PATH "$cohort_run" --roles worker=1 true || fail "it is not found in PATH"
echo "roles: passed"
