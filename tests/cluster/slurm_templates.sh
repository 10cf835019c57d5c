#!/usr/bin/env bash
# Submits the job scripts of launch/ on a virtual cluster of two hosts, as users do.
#
#   slurm_templates.sh LAUNCH_FOLDER PROGRAMS_FOLDER
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} != inside ]]; then
  "$scripts/hosts.sh" check --slurm || exit
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # The checkout as the scripts expect it, wherever the build is, and an installation.
  mkdir -p "$work/checkout/build" "$work/prefix/share/cohort" "$work/my jobs"
  cp -r "$1" "$work/checkout/launch"
  ln -s "$2" "$work/checkout/build/bin"
  cp -r "$1" "$work/prefix/share/cohort/launch"
  ln -s "$2" "$work/prefix/bin"
  "$scripts/hosts.sh" slurm --share "$work" --share "$2" -- "$scripts/slurm_templates.sh" inside "$work"
  exit
fi
work=$2
# shellcheck source=tests/cluster/slurm_batch.sh
source "$scripts/slurm_batch.sh"
# shellcheck source=tests/cluster/same_losses.sh
source "$scripts/same_losses.sh"
cd "$work/checkout"

fail() {
  echo "slurm_templates: $*" >&2
  said_by_job >&2
  exit 1
}
says() { grep -Eqs "$1" "$work"/job.*; }

batch launch/train.sbatch || fail "train.sbatch fails"
says "^multi_worker_mirrored: 4 replicas, test accuracy 0\.9" || fail "no digits were learnt"

digits=(build/bin/digits --strategy multi_worker_mirrored --epochs 5)
batch launch/train.sbatch "${digits[@]}" --json "$work/slurm.json" || fail "train.sbatch with a program fails"
says "on n\[0-1\]: build/bin/digits" || fail "the job does not say what it runs, and where"
mpirun -n 4 --oversubscribe "${digits[@]}" --json "$work/mpirun.json" >"$work/mpirun.log" 2>&1 </dev/null || fail "mpirun: $(<"$work/mpirun.log")"
same_losses 5 "$work/mpirun.json" "$work/slurm.json" || fail "the losses differ from those under mpirun"

status=0
batch launch/train.sbatch bash -c 'exit 1' || status=$?
((status == 1)) || fail "a failed program makes a good job, or none: $status"

# The warning before the time limit, brought about by hand: the program ends, the job is queued again.
# shellcheck disable=SC2016  # expanded by the tasks
resumable='if [[ -n ${SLURM_RESTART_COUNT:-} ]]; then echo resumed; exit; fi
  trap "echo saved; exit" TERM; echo "runs $SLURM_PROCID"; while true; do sleep 0.1; done'
rm -f "$work"/job.*
job=$(sbatch --parsable --output="$work/job.0" --ntasks-per-node=1 --export=ALL,RESUMABLE=yes launch/train.sbatch bash -c "$resumable")
wait_for() {
  for ((i = 0; i < 600; i++)); do
    if [[ $(grep -cE "$1" "$work/job.0" 2>/dev/null) -ge $2 ]]; then return; fi
    sleep 0.1
  done
  fail "waited in vain for '$1'; the job: $(scontrol show job "$job")"
}
wait_for "^runs" 2
scancel --batch --signal=USR1 "$job"
wait_for "^saved" 2
wait_for "^resumed" 2

# From another folder, and a copy of one's own.
cd "$work/my jobs"
batch ../checkout/launch/train.sbatch digits --strategy multi_worker_mirrored --epochs 1 || fail "train.sbatch fails from another folder"
says "^multi_worker_mirrored: 4 replicas" || fail "no digits were learnt from another folder"
cp ../checkout/launch/train.sbatch mine.sbatch
# shellcheck disable=SC2016  # expanded by the tasks
PATH=$work/checkout/launch:$PATH batch --nodes=1 ./mine.sbatch bash -c 'echo "rank $SLURM_PROCID"' || fail "a copy fails"
says "^rank 1" || fail "a copy has not run"
batch --ntasks-per-node=1 "$work/prefix/share/cohort/launch/benchmark.sbatch" all-reduce --sizes 4 --dtype float32 ||
  fail "the installed benchmark.sbatch fails"
says "^ +4 +1 +float32 cohort" || fail "no table from the installed benchmark.sbatch"
cd "$work/checkout"

batch launch/benchmark.sbatch all-reduce --sizes 4:1K --dtype float32 || fail "benchmark.sbatch fails"
says "^Tuning of 2 workers on 2 nodes" || fail "no tuning"
says "^ +1K +256 +float32 cohort" || fail "no table"

batch --gpus-per-node=2 --ntasks-per-node=2 --cpus-per-task=1 launch/gpu.sbatch build/bin/places || fail "gpu.sbatch fails"
says "^rank 3 of 4: n1" || fail "not one task per GPU"
echo "slurm_templates: passed"
