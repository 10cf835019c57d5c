#!/usr/bin/env bash
# Each way in which Slurm starts a program, on a virtual cluster of 2 hosts and of 4: ranks,
# hosts and tasks are where they should be.
#
#   slurm_jobs.sh PLACES COHORT_RUN JOB_END
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} != inside ]]; then
  "$scripts/hosts.sh" check --slurm || exit
  work=$(mktemp -d)
  trap 'wait; rm -rf "$work"' EXIT
  clusters=()
  for hosts in 2 4; do
    mkdir "$work/$hosts"
    "$scripts/hosts.sh" slurm --hosts "$hosts" --share "$work" --share "$(dirname "$1")" --share "$(dirname "$2")" \
      -- "$scripts/slurm_jobs.sh" inside "$hosts" "$work/$hosts" "$@" &
    clusters+=($!)
  done
  for cluster in "${clusters[@]}"; do wait "$cluster"; done
  echo "slurm_jobs: passed"
  exit
fi
hosts=$2 work=$3 places=$4 cohort_run=$5 job_end=$6
# shellcheck source=tests/cluster/slurm_batch.sh
source "$scripts/slurm_batch.sh"

export COHORT_LOG_LEVEL=error  # whatever cores there are
fail() { echo "slurm_jobs: $hosts hosts: $*" >&2; exit 1; }

# expected RANKS_OF_HOST...: what places says, where Slurm's variables are the task's own.
expected() {
  local host=0 node=0 rank=0 local_rank size=0 ranks
  for ranks; do size=$((size + ranks)); done
  for ranks; do
    for ((local_rank = 0; local_rank < ranks; local_rank++, rank++)); do
      echo "rank $rank of $size: n$host, node $node, local rank $local_rank, task worker:$rank at" \
        "n$host:$((8888 + local_rank)), by variables n$host:$((8888 + local_rank))"
    done
    if ((ranks > 0)); then node=$((node + 1)); fi
    host=$((host + 1))
  done
}
# The same under mpirun, where the variables are of its daemons.
expected_by_mpi() { expected "$@" | sed 's/, by variables .*//'; }

# same WHAT EXPECTED ACTUAL
same() { [[ $2 == "$3" ]] || fail "$1: expected
$2
got
$3"; }

good_batch() {
  batch "$@" || fail "the job '$*' fails: $(said_by_job)
$(scontrol show job "$batch_job")"
}

each() { for ((host = 0; host < hosts; host++)); do echo "$1"; done; }
mapfile -t two_each < <(each 2)
mapfile -t one_each < <(each 1)

same "srun" "$(expected "${two_each[@]}")" "$(step -N "$hosts" --ntasks-per-node=2 "$places")"
same "srun, one per host" "$(expected "${one_each[@]}")" "$(step -N "$hosts" --ntasks-per-node=1 "$places")"
# Free hosts of 4 CPUs: Slurm fills one after the other.
uneven=(3)
for ((host = 1; host < hosts; host++)); do uneven+=(1); done
same "srun, uneven" "$(expected "${uneven[@]}")" "$(step -N "$hosts" -n $((hosts + 2)) "$places")"

good_batch -N "$hosts" --ntasks-per-node=2 --wrap "mpirun '$places'"
same "mpirun in sbatch" "$(expected_by_mpi "${two_each[@]}")" "$(said_by_job | sed 's/, by variables .*//')"
good_batch -N "$hosts" --ntasks-per-node=2 --wrap "'$cohort_run' '$places'"
same "cohort-run in sbatch" "$(expected "${two_each[@]}")" "$(said_by_job)"
good_batch -N "$hosts" --ntasks-per-node=2 --wrap "'$cohort_run' --launcher mpirun '$places'"
same "cohort-run with mpirun in sbatch" "$(expected_by_mpi "${two_each[@]}")" "$(said_by_job | sed 's/, by variables .*//')"

# Three jobs beside each other or one after the other, each a job of its own.
good_batch -N 1 --ntasks-per-node=2 --array=0-2 --wrap "srun --mpi=pmix --kill-on-bad-exit=1 '$places' && echo task \$SLURM_ARRAY_TASK_ID"
same "array" "task 0 task 1 task 2" "$(grep -h ^task "$work"/job.* | sort | xargs)"
same "array, ranks" 3 "$(cat "$work"/job.* | grep -c "^rank 1 of 2: n[0-9], node 0, local rank 1")"

# Debian's Slurm sets no SLURM_JOB_END_TIME: the first rank asks for it, wherever the clock is.
for start in "" "srun --mpi=none -n 2" "mpirun -n 2" "env TZ=Asia/Tokyo SLURM_TIME_FORMAT=relative"; do
  good_batch -N 1 --ntasks-per-node=2 --time=7 --wrap "$start '$job_end'"
  begun=$(scontrol show job "$batch_job" | grep -o ' StartTime=[^ ]*' | cut -d = -f 2)
  same "end of the job, by '$start'" "$(($(date +%s --date="$begun") + 7 * 60))" "$(said_by_job | grep -v none | sort -u)"
done
same "no end without a job" none "$("$job_end")"

batch -N 1 -n 1 --wrap "'$cohort_run' bash -c 'exit 3'" && fail "a failed job counts as a good one"
same "exit status of a job" "3:0" "$(exit_code_of_job)"
alone=$(srun --quiet --mpi=none -N "$hosts" --ntasks-per-node=1 "$places" 2>&1) && fail "tasks without MPI run: $alone"
# Open MPI itself ends them.
[[ $alone == *"direct launched using \"srun\""* ]] || fail "tasks without MPI say: $alone"
echo "slurm_jobs: $hosts hosts: as expected"
