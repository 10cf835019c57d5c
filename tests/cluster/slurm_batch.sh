# shellcheck shell=bash
# Sourced by tests on the login node: batch jobs that are waited for. `work` is a folder that all
# hosts see.
: "${work:?}"

# Open MPI 4.1 crashes now and then in MPI_Init where Slurm's PMIx starts it, programs without Cohort,
# too: a first message comes before what takes it is there. Then the job or step is started again. srun,
# which kills the step, may cut off the report of the signal before it comes to the address.
readonly most_starts=6
export COHORT_COLLECTIVE_TIMEOUT_SECONDS=30  # for the workers that then wait for the crashed one
crashed_in_mpi_init() {
  grep -Fqs "*** Process received signal ***" "$@" &&
    ! grep -Fqv "Failing at address: (nil)" < <(grep -Fs "Failing at address: " "$@")
}

# step OPTION... PROGRAM: one step of MPI; prints what it said.
step() {
  local start said
  for ((start = 0; start < most_starts; start++)); do
    if said=$(timeout --kill-after=5 60 srun --quiet --mpi=pmix --kill-on-bad-exit=1 "$@" 2>"$work/step.errors"); then
      echo "$said"
      return
    fi
    crashed_in_mpi_init "$work/step.errors" || break
  done
  cat "$work/step.errors" >&2
  return 1
}

# batch ARGUMENT...: submits a job, or an array of jobs, and returns when all have ended; the status
# is 0 when all were good, 1 when one was not, 2 when they were not taken or go on for too long. What
# they said is in $work/job.*.
batch() {
  local start states state end
  for ((start = 0; start < most_starts; start++)); do
    rm -f "$work"/job.*
    batch_job=$(sbatch --parsable --output="$work/job.%a" --no-requeue "$@") || return 2
    end=$((SECONDS + 90))
    until states=$(scontrol show job "$batch_job" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p') &&
      [[ -n $states && ! $states =~ PENDING|RUNNING|COMPLETING|CONFIGURING ]]; do
      if crashed_in_mpi_init "$work"/job.*; then scancel "$batch_job"; fi
      ((SECONDS < end)) || { echo "batch: job $batch_job goes on for too long: $states" >&2; return 2; }
      sleep 0.1
    done
    crashed_in_mpi_init "$work"/job.* || break
  done
  for state in $states; do
    [[ $state == COMPLETED ]] || return 1
  done
}

said_by_job() { cat "$work"/job.*; }
exit_code_of_job() { scontrol show job "$batch_job" | sed -n 's/.* ExitCode=\([0-9:]*\).*/\1/p' | head -n 1; }
