#!/usr/bin/env bash
# What cohort-run starts, and how it ends: with launchers that only say what they were given,
# and with the real mpirun.
#
#   cohort_run.sh COHORT_RUN COHORT_INFO
set -euo pipefail
cohort_run=$1 cohort_info=$2

scratch=$(mktemp -d)
trap 'wait; rm -rf "$scratch"' EXIT
fail() { echo "cohort_run: $*" >&2; exit 1; }
contains() { [[ $2 == *"$1"* ]] || fail "no '$1' in: $2"; }
lacks() { [[ $2 != *"$1"* ]] || fail "'$1' is in: $2"; }

# A launcher does what LAUNCHER_DOES says.
mkdir "$scratch/bin"
cat >"$scratch/bin/mpirun" <<'END'
#!/usr/bin/env bash
case $1 in
  --version) echo "mpirun (Open MPI) 4.1.4"; exit ;;
  --mpi=list) echo "MPI plugin types are... none pmix pmix_v4"; exit ;;
esac
eval "$LAUNCHER_DOES"
END
chmod +x "$scratch/bin/mpirun"
ln -s mpirun "$scratch/bin/srun"
ln -s /bin/true "$scratch/bin/digits"
cat >"$scratch/bin/scontrol" <<'END'
#!/bin/sh
echo "TaskPlugin = task/affinity,task/cgroup"
echo "   Command=$SUBMITTED"
END
chmod +x "$scratch/bin/scontrol"
# What the caller's own launcher, or the caller, has set is no part of the test.
for name in $(compgen -e | grep -E '^(COHORT_|NCCL_|OMP_|OMPI_COMM_|PMIX_|PMI_|SLURM_)|^TF_CONFIG$'); do unset "$name"; done
pretend=(env "--default-signal=INT,QUIT" "PATH=$scratch/bin:$PATH")
cores=$("${pretend[@]}" "$cohort_run" --dry-run true | sed 's/.* -n \([0-9]*\) .*/\1/')

does() { LAUNCHER_DOES=$1 "${pretend[@]}" "$cohort_run" digits; }
# start WHAT_IT_DOES [OPTION...]: a launcher in the background; returns when it has written to standard output.
start() {
  : >"$scratch/out"
  LAUNCHER_DOES=$1 "${pretend[@]}" "$cohort_run" "${@:2}" digits >"$scratch/out" 2>"$scratch/err" &
  job=$!
  until [[ -s $scratch/out ]]; do
    kill -0 "$job" 2>/dev/null || fail "it does not run: $(<"$scratch/err")"
    sleep 0.05
  done
}
end_of_job() { status=0; wait "$job" || status=$?; }

# beside CASE...: a case that waits for seconds, in a folder of its own, while others run. The end waits for it.
cases=()
beside() {
  in_own_folder "$scratch/case.${#cases[@]}" "$@" &
  cases+=($!)
}
in_own_folder() {
  local scratch=$1
  mkdir "$scratch"
  "${@:2}"
}

# One that ends by itself after the loss of a worker.
ends_by_itself() {
  status=0
  does 'echo "worker 2 (host n1, pid 5) is gone: its process ended" >&2; sleep 1; exit 5' >/dev/null 2>"$scratch/err" || status=$?
  ((status == 5)) || fail "status 5 becomes $status"
  lacks "still waits" "$(<"$scratch/err")"
}
beside ends_by_itself

# is_ended SECONDS WHAT_IT_DOES: cohort-run ends the launcher, which ignores a SIGTERM, within so many.
is_ended() {
  SECONDS=0
  start "trap '' TERM; $2"
  end_of_job
  ((status != 0 && SECONDS < $1)) || fail "status $status after $SECONDS s"
  contains "still waits" "$(<"$scratch/err")"
  ! kill -0 "$(<"$scratch/out")" 2>/dev/null || fail "it is left"
}
# One that waits for a lost worker for ever.
# shellcheck disable=SC2016  # expanded by the launcher
beside is_ended 20 'echo $$; echo "worker 2 (host n1, pid 5) is out of reach: no sign of life" >&2; while true; do sleep 1; done'
# One that waits for itself once all workers have ended.
# shellcheck disable=SC2016
beside is_ended 30 'exec {pause}<> <(:); sleep 0.5 & echo $$; wait; while true; do read -r -t 100 -u "$pause" || true; done'

# In an allocation mpirun gets one SIGTERM, whether Slurm sends it, too, or not.
# shellcheck disable=SC2016  # expanded by the launcher
counts_signals='trap "told=\$((told + 1))" TERM; told=0; echo $$
  until ((told)); do sleep 0.1; done; sleep 1; exit $((40 + told))'
gets_one_sigterm() {
  local slurm_signals=$1
  SLURM_JOB_ID=7 start "$counts_signals" --launcher mpirun
  if [[ $slurm_signals == yes ]]; then kill -TERM "$(<"$scratch/out")"; fi
  kill -TERM "$job"
  end_of_job
  ((status == 41)) || fail "Slurm signals: $slurm_signals: status $status"
}
beside gets_one_sigterm no
beside gets_one_sigterm yes

# Read by cohort-run when it starts: it signals itself just before the first command that looks like BEFORE.
readonly traps=$scratch/traps
cat >"$traps" <<'END'
raise_once() {
  [[ $BASH_COMMAND == $BEFORE ]] || return 0
  trap - DEBUG
  kill "-$RAISED" $$
}
if [[ $0 == */cohort-run ]]; then trap raise_once DEBUG; fi
END
# signals_itself SIGNAL BEFORE [OPTION...]: the launcher ends by itself, but with status 30.
signals_itself() {
  status=0
  LAUNCHER_DOES='echo $$; for ((i = 0; i < 300; i++)); do sleep 0.1; done; exit 30' \
    RAISED=$1 BEFORE=$2 BASH_ENV=$traps \
    "${pretend[@]}" "$cohort_run" "${@:3}" digits >"$scratch/out" 2>"$scratch/err" || status=$?
  ((status > 128)) || fail "SIG$1 before '$2' is lost: status $status"
}
# A signal when cohort-run is about to wait for its launcher.
SLURM_JOB_ID=7 beside signals_itself TERM "wait *" --launcher mpirun
hears_just_before_it_waits() {
  signals_itself USR1 "wait *"
  contains "still waits" "$(<"$scratch/err")"
}
beside hears_just_before_it_waits

echo "outside an allocation: mpirun, with variables that reach other hosts"
command=$(COHORT_LOG_LEVEL=info NCCL_DEBUG=INFO "${pretend[@]}" "$cohort_run" --dry-run -n 1 digits "two words")
contains " mpirun -n 1 --bind-to core --map-by slot:PE=$cores " "$command"
contains " -x COHORT_LOG_LEVEL " "$command"
contains " -x NCCL_DEBUG " "$command"
contains " OMP_NUM_THREADS=$cores " "$command"
contains " digits two\\ words" "$command"
contains " OMPI_MCA_pml=ob1 " "$command"
lacks "OMPI_MCA_pml" "$(OMPI_MCA_pml=cm "${pretend[@]}" "$cohort_run" --dry-run -n 1 digits)"
lacks "OMPI_MCA_pml" "$("${pretend[@]}" "$cohort_run" --dry-run --hosts n0,n1 digits)"
lacks " NCCL_DEBUG=" "$command"
contains " OMP_NUM_THREADS=1 " "$("${pretend[@]}" "$cohort_run" --dry-run -n $((cores + 1)) digits)"
contains " --bind-to none " "$("${pretend[@]}" "$cohort_run" --dry-run -n $((cores + 1)) digits)"
contains " --bind-to none " "$("${pretend[@]}" "$cohort_run" --dry-run -n 1 --no-binding digits)"
contains " --host n0:$((cores + 1))\\,n1:1 --bind-to none " \
  "$("${pretend[@]}" "$cohort_run" --dry-run --hosts "n0:$((cores + 1)),n1:1" digits)"

contains " --mca btl tcp\\,self --display-map digits" \
  "$("${pretend[@]}" "$cohort_run" --dry-run --launcher-options "--mca btl tcp,self" --launcher-options --display-map digits)"

# More than the list has places for.
contains " --bind-to none " "$("${pretend[@]}" "$cohort_run" --dry-run -n $((2 * cores + 1)) --hosts n0,n1 digits)"
contains " OMP_NUM_THREADS=$cores " "$("${pretend[@]}" "$cohort_run" --dry-run -n 2 --hosts n0,n1 digits)"

echo "in an allocation: srun"
in_allocation() { "${pretend[@]}" SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_TASKS_PER_NODE='2(x2)' SLURM_CPUS_PER_TASK=3 "$@"; }
command=$(in_allocation "$cohort_run" --dry-run digits)
contains " srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=3 --ntasks=4 --cpu-bind=cores digits" "$command"
contains " OMP_NUM_THREADS=3 " "$command"
contains " mpirun -n 4 " "$(in_allocation "$cohort_run" --dry-run --launcher mpirun digits)"
lacks "OMPI_MCA_pml" "$(in_allocation "$cohort_run" --dry-run --launcher mpirun digits)"
# The fullest node counts, wherever it is in the list.
command=$(in_allocation env "SLURM_TASKS_PER_NODE=1(x2),$((cores + 1))" "$cohort_run" --dry-run --launcher mpirun digits)
contains " OMP_NUM_THREADS=1 " "$command"
contains " --bind-to none " "$command"

echo "mistakes: one line and status 2"
refuses() {
  local advice=$1 status=0
  shift
  "${pretend[@]}" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
  ((status == 2)) || fail "'$*' ends with $status"
  [[ $(wc -l <"$scratch/err") == 1 ]] || fail "'$*' says: $(<"$scratch/err")"
  contains "$advice" "$(<"$scratch/err")"
}
refuses "no program is given" "$cohort_run"
refuses "-n needs a number" "$cohort_run" -n two digits
refuses "unknown option --frobnicate: srun's and mpirun's own are given by --launcher-options" "$cohort_run" --frobnicate digits
refuses "unknown option -np: write -n N" "$cohort_run" -np 2 digits
refuses "--launcher-options needs" "$cohort_run" --launcher-options
for list in n0:0 n0:x n0: :2 "," "n0," "n0,,n1" "n0 :2" "n0, n1"; do
  refuses "needs a list" "$cohort_run" --hosts "$list" digits
done
refuses "needs an allocation" "$cohort_run" --launcher srun digits
refuses "for mpirun" env SLURM_JOB_ID=7 "$cohort_run" --hosts n0 digits
refuses "PMI_RANK is set" env PMI_RANK=0 "$cohort_run" digits

status=0
"${pretend[@]}" "$cohort_run" ./digit 2>"$scratch/err" || status=$?
[[ "$status $(<"$scratch/err")" == "127 cohort-run: there is no program ./digit" ]] || fail "a missing program: $status, $(<"$scratch/err")"

echo "the launcher's exit status, output and input"
status=0
echo "fed" | does 'cat; echo told >&2; exit 7' >"$scratch/out" 2>"$scratch/err" || status=$?
((status == 7)) || fail "status 7 becomes $status"
[[ $(<"$scratch/out") == fed && $(<"$scratch/err") == told ]] || fail "it printed $(cat "$scratch"/{out,err})"

echo "signals"
for signal in INT TERM HUP QUIT USR2; do
  start "trap 'exit 42' $signal; echo ready; while true; do sleep 0.1; done"
  kill "-$signal" "$job"
  end_of_job
  ((status == 42)) || fail "SIG$signal does not arrive: status $status"
done

echo "signals in bad moments"
# Before there is a launcher.
for signal in INT TERM; do
  signals_itself "$signal" "trap *USR1"
  ((status == 128 + $(kill -l "$signal"))) || fail "SIG$signal before the launcher's start: status $status"
  [[ ! -s $scratch/out ]] || fail "a launcher is started after SIG$signal"
done
# While it starts.
signals_itself TERM "job=*"
start 'echo $$; exec sleep 60'
kill -KILL "$job"
end_of_job
launcher=$(<"$scratch/out")
for ((i = 0; i < 100; i++)); do
  kill -0 "$launcher" 2>/dev/null || break
  sleep 0.05
done
((i < 100)) || fail "the launcher outlives cohort-run"

echo "train.sbatch: the status of a program that ends before it is waited for"
mkdir "$scratch/launch"
ln -s /bin/bash "$scratch/launch/cohort-run"
echo 'kill() { return 1; }' >"$scratch/has_ended"  # what the shell then says
status=0
"${pretend[@]}" BASH_ENV="$scratch/has_ended" SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n0 SLURM_SUBMIT_DIR="$scratch/bin" \
  SUBMITTED="../launch/train.sbatch -c exit 3" bash "$(dirname "$cohort_run")/train.sbatch" -c 'exit 3' >/dev/null 2>"$scratch/err" || status=$?
((status == 3)) || fail "status 3 becomes $status: $(<"$scratch/err")"

# The name of a folder, and an argument, may look like that of a script.
mkdir "$scratch/my.sbatches"
mv "$scratch/launch/cohort-run" "$scratch/my.sbatches"
status=0
"${pretend[@]}" BASH_ENV="$scratch/has_ended" SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n0 SLURM_SUBMIT_DIR="$scratch/bin" \
  SUBMITTED="$scratch/my.sbatches/train.sbatch -c exit 3 other.sbatch" \
  bash "$(dirname "$cohort_run")/train.sbatch" -c 'exit 3' >/dev/null 2>"$scratch/err" || status=$?
((status == 3)) || fail "in my.sbatches, status 3 becomes $status: $(<"$scratch/err")"

echo "the version"
said=$(PATH=$(dirname "$cohort_info"):$PATH bash "$cohort_run" --version)
[[ $said =~ ^cohort-run\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "--version says '$said'"

echo "the real mpirun"
status=0
# shellcheck disable=SC2016  # expanded by the workers
said=$("$cohort_run" -n 3 bash -c 'echo "$OMPI_COMM_WORLD_RANK has $OMP_NUM_THREADS"; exit 0' </dev/null 2>"$scratch/err") || status=$?
((status == 0)) || fail "mpirun ends with $status: $(<"$scratch/err")"
[[ $(sort <<<"$said" | cut -d ' ' -f 1,2 | xargs) == "0 has 1 has 2 has" ]] || fail "the workers say: $said"
"$cohort_run" -n 2 bash -c 'exit 9' </dev/null 2>/dev/null || status=$?
((status == 9)) || fail "status 9 becomes $status under mpirun"
env --default-signal=INT,QUIT "$cohort_run" -n 2 bash -c 'echo runs; exec sleep 60' </dev/null >"$scratch/out" 2>/dev/null &
job=$!
until [[ $(wc -l <"$scratch/out") == 2 ]]; do
  kill -0 "$job" 2>/dev/null || fail "mpirun does not run"
  sleep 0.05
done
kill -INT "$job"
end_of_job
((status != 0)) || fail "an interrupt ends it with status 0"

echo "the cases that wait"
for case in "${cases[@]}"; do wait "$case" || fail "one of them fails"; done
echo "cohort_run: passed"
