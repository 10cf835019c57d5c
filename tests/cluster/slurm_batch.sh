# shellcheck shell=bash
# Sourced by tests on the login node: batch jobs that are waited for. `work` is a folder that all
# hosts see.
: "${work:?}"

# batch ARGUMENT...: submits a job, or an array of jobs, and returns when all have ended; the status
# is 0 when all were good. What they said is in $work/job.*.
batch() {
  local state states
  rm -f "$work"/job.*
  batch_job=$(sbatch --parsable --output="$work/job.%a" --no-requeue "$@")
  until states=$(scontrol show job "$batch_job" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p') &&
    [[ -n $states && ! $states =~ PENDING|RUNNING|COMPLETING|CONFIGURING ]]; do
    sleep 0.1
  done
  for state in $states; do
    [[ $state == COMPLETED ]] || return 1
  done
}

said_by_job() { cat "$work"/job.*; }
exit_code_of_job() { scontrol show job "$batch_job" | sed -n 's/.* ExitCode=\([0-9:]*\).*/\1/p' | head -n 1; }
