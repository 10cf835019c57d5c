#!/usr/bin/env bash
# When cohort-run --restarts starts a job again, with whom, and what is left at its end: with launchers that
# only say what they were given, and with the real mpirun.
#
#   restarts.sh COHORT_RUN
set -euo pipefail
cohort_run=$1

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "restarts: $*" >&2; exit 1; }
contains() { [[ $2 == *"$1"* ]] || fail "no '$1' in: $2"; }
lacks() { [[ $2 != *"$1"* ]] || fail "'$1' is in: $2"; }
for name in $(compgen -e | grep -E '^(COHORT_|NCCL_|OMP_|OMPI_COMM_|PMIX_|PMI_|SLURM_)|^TF_CONFIG$'); do unset "$name"; done

# A launcher notes its arguments and does what LAUNCHER_DOES says. A host of $scratch/lost does not answer.
mkdir "$scratch/bin"
cat >"$scratch/bin/mpirun" <<'END'
#!/usr/bin/env bash
case $1 in
  --version) echo "mpirun (Open MPI) 4.1.4"; exit ;;
  --mpi=list) echo "MPI plugin types are... none pmix pmix_v4"; exit ;;
esac
if [[ $1 == --host && $3 == -n && $5 != --* ]] || [[ $1 == --overlap ]]; then
  for host in $(cat "$SCRATCH/lost" 2>/dev/null); do
    if [[ " $* " == *[\ =]"$host "* ]]; then exit 1; fi
  done
  exec "${@:5}"
fi
echo "$COHORT_SNAPSHOT_FOLDER ${0##*/} $*" >>"$SCRATCH/started"
tries=$(wc -l <"$SCRATCH/started")
eval "$LAUNCHER_DOES"
END
chmod +x "$scratch/bin/mpirun"
ln -s mpirun "$scratch/bin/srun"
ln -s /bin/true "$scratch/bin/digits"
cat >"$scratch/bin/scontrol" <<'END'
#!/bin/sh
if [ "$1" = show ] && [ "$2" = hostnames ]; then echo "$3" | tr , '\n'; else echo "TaskPlugin = task/none"; fi
END
chmod +x "$scratch/bin/scontrol"
pretend=(env "--default-signal=INT,QUIT" "PATH=$scratch/bin:$PATH" "SCRATCH=$scratch")

# run WHAT_IT_DOES OPTION...: sets `status`, `tries` and `said`.
run() {
  rm -f "$scratch/started"
  status=0
  LAUNCHER_DOES=$1 "${pretend[@]}" "$cohort_run" "${@:2}" digits >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
  tries=$(wc -l <"$scratch/started") said=$(<"$scratch/err")
}
expect() { ((status == $1 && tries == $2)) || fail "status $status after $tries tries, not $1 after $2: $said"; }
# The job's folder of snapshots is the same in all tries, and gone at the end.
expect_no_snapshots() {
  local folder
  folder=$(cut -d ' ' -f 1 "$scratch/started" | sort -u)
  [[ $folder == /dev/shm/cohort-snapshots.* ]] || fail "the folder of snapshots is '$folder'"
  [[ ! -e $folder ]] || fail "$folder is left"
}

echo "a job that a signal ended is started again"
# shellcheck disable=SC2016  # expanded by the launcher
run 'mkdir -p $COHORT_SNAPSHOT_FOLDER/host; ((tries < 3)) && exit 137; exit 0' -n 2 --restarts 4
expect 0 3
contains "cohort-run: a worker was ended by SIGKILL; the job is started again with 2 workers, 2 of 4 times" "$said"
expect_no_snapshots

echo "so is one whose workers ended because another was lost"
run '((tries < 2)) && exit 75; exit 0' -n 2 --restarts 4
expect 0 2
contains "cohort-run: a worker was lost; the job is started again with 2 workers, 1 of 4 times" "$said"

echo "but not for ever"
run 'exit 139' -n 2 --restarts 2
expect 139 3
contains "a worker was ended by SIGSEGV; the job has been started again 2 times, and --restarts permits no more" "$said"

echo "a job that ended by itself is not"
run 'exit 2' -n 2 --restarts 2
expect 2 1
contains "the job ended with status 2 by itself" "$said"
run 'exit 0' -n 2 --restarts 2
expect 0 1
[[ -z $said ]] || fail "a job without failures says: $said"

echo "nor is one that was interrupted"
for signal in INT TERM HUP QUIT; do
  rm -f "$scratch/started"
  LAUNCHER_DOES="trap 'exit 140' $signal; echo ready; while true; do sleep 0.1; done" \
    "${pretend[@]}" "$cohort_run" -n 2 --restarts 2 digits >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  until [[ -s $scratch/out ]]; do
    kill -0 "$job" 2>/dev/null || fail "it does not run: $(<"$scratch/err")"
    sleep 0.05
  done
  kill "-$signal" "$job"
  status=0
  wait "$job" || status=$?
  tries=$(wc -l <"$scratch/started") said=$(<"$scratch/err")
  : >"$scratch/out"
  expect 140 1
  expect_no_snapshots
done

echo "lost hosts are left out"
# shellcheck disable=SC2016  # expanded by the launcher
dies='((tries < 2)) && { echo n1 >"$SCRATCH/lost"; exit 205; }; exit 0'
run "$dies" --hosts n0:2,n1:2 --restarts 2 --min-workers 2
expect 0 2
contains "there is no answer from n1" "$said"
contains "started again with 2 workers" "$said"
contains " -n 2 --host n0:2 " "$(tail -n 1 "$scratch/started")"
expect_no_snapshots
rm "$scratch/lost"
# Workers there that have ended by themselves, because the others were out of reach.
run "${dies/205/1}" --hosts n0:2,n1:2 --restarts 2 --min-workers 2
expect 0 2
contains "mpirun ended with status 1; the job is started again" "$said"
rm "$scratch/lost"
run "$dies" --hosts n0:2,n1:2 --restarts 2
expect 205 1
contains "there would be 2 workers in place of 4, and --min-workers is 4" "$said"
rm "$scratch/lost"

echo "in an allocation, too"
export SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_JOB_NODELIST=n0,n1
run "${dies/205/143}" --restarts 2 --min-workers 1
expect 0 2
contains " --ntasks=2 --overlap --exclude=n1 " "$(tail -n 1 "$scratch/started")"
unset SLURM_JOB_ID SLURM_NTASKS SLURM_JOB_NODELIST
rm "$scratch/lost"

echo "a cohort-run that is killed leaves nothing"
rm -f "$scratch/started"
LAUNCHER_DOES='echo $$; exec sleep 60' "${pretend[@]}" "$cohort_run" -n 2 --restarts 2 digits >"$scratch/out" 2>"$scratch/err" </dev/null &
job=$!
until [[ -s $scratch/out ]]; do
  kill -0 "$job" 2>/dev/null || fail "it does not run: $(<"$scratch/err")"
  sleep 0.05
done
kill -KILL "$job"
wait "$job" 2>/dev/null || true
folder=$(cut -d ' ' -f 1 "$scratch/started")
for ((i = 0; i < 200; i++)); do
  [[ -e $folder ]] || break
  sleep 0.05
done
[[ ! -e $folder ]] || fail "$folder outlives cohort-run"
! kill -0 "$(<"$scratch/out")" 2>/dev/null || fail "the launcher outlives cohort-run"

echo "mistakes"
status=0
said=$("${pretend[@]}" "$cohort_run" -n 2 --min-workers 1 digits 2>&1) || status=$?
((status == 2)) || fail "--min-workers without --restarts: status $status"
contains "--min-workers needs --restarts" "$said"

echo "the real mpirun"
status=0
# shellcheck disable=SC2016  # expanded by the workers
said=$("$cohort_run" -n 2 --restarts 1 bash -c '
  if [[ $OMPI_COMM_WORLD_RANK == 1 && ! -e $0/again ]]; then touch "$0"/again; kill -KILL $$; fi
  if [[ -e $0/again ]]; then echo "$OMPI_COMM_WORLD_RANK ends"; else sleep 60; fi' "$scratch" </dev/null 2>"$scratch/err") || status=$?
((status == 0)) || fail "status $status: $(<"$scratch/err")"
contains "1 ends" "$said"
contains "a worker was ended by SIGKILL; the job is started again with 2 workers, 1 of 1 times" "$(<"$scratch/err")"
echo "restarts: passed"
