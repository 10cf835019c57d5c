#!/usr/bin/env bash
# A job that Slurm interrupts twice, on a virtual cluster of two hosts: warned before its time limit, and then
# because it sees itself that its time is nearly over. Each time it saves its state and is queued again, and it
# ends with the same bits as one that nobody interrupted.
#
#   slurm_preemption.sh LAUNCH_FOLDER DIGITS
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} != inside ]]; then
  "$scripts/hosts.sh" check --slurm || exit
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  "$scripts/hosts.sh" slurm --share "$work" --share "$1" --share "$(dirname "$2")" \
    -- "$scripts/slurm_preemption.sh" inside "$work" "$@"
  exit
fi
work=$2 launch=$3 digits=$4
# shellcheck source=tests/cluster/slurm_batch.sh
source "$scripts/slurm_batch.sh"
cd "$work"
rm -rf checkpoints ./*job.*

attempt=${preemption_attempt:-1}
# The crash that slurm_batch.sh tells of may come at each of the job's three starts: then all is done once more.
start_over() {
  ((attempt < most_starts)) || fail "Open MPI crashes again and again"
  scancel "$job"
  while [[ -n $(squeue --noheader --jobs="$job" 2>/dev/null) ]]; do sleep 0.1; done
  preemption_attempt=$((attempt + 1)) exec "$scripts/slurm_preemption.sh" inside "$work" "$launch" "$digits"
}
fail() {
  echo "slurm_preemption: $*" >&2
  cat "$work"/*job.* >&2
  exit 1
}
wait_for() {
  for ((i = 0; i < 1200; i++)); do
    if grep -qE "$1" "$work/job.0" 2>/dev/null; then return; fi
    if crashed_in_mpi_init job.0; then start_over; fi
    sleep 0.1
  done
  fail "waited in vain for '$1'; the job: $(scontrol show job "$job")"
}

# The first run goes on until the signal comes, whenever that is. The second one is out of time. The third one has as
# much as it needs for a few epochs more.
training=("$digits" --strategy multi_worker_mirrored --every 1000000)
cat >run.sh <<'END'
epochs=1000000
case ${SLURM_RESTART_COUNT:-0} in
  0) unset SLURM_JOB_END_TIME ;;
  1) SLURM_JOB_END_TIME=$(date +%s) && export SLURM_JOB_END_TIME ;;  # it comes a step further
  *)
    unset SLURM_JOB_END_TIME
    epochs=$(($(sed -n 's/^epoch *\([0-9]*\)\/.*/\1/p' job.0 | tail -n 1) + 5)) ;;
esac
exec "$@" --epochs "$epochs"
END
job=$(sbatch --parsable --output="$work/job.0" --export=ALL,RESUMABLE=yes "$launch/train.sbatch" \
  bash run.sh "${training[@]}" --json "$work/resumed.json" --checkpoint checkpoints --resume)
wait_for "^epoch +3/"
scancel --batch --signal=USR1 "$job"
wait_for "run 1, on"
grep -qE "is to end: it got SIGTERM" job.0 || fail "no worker says that it was told to end"
grep -qE "^digits: worker .* the state after [0-9]+ steps is saved as 'checkpoints/step-[0-9]+'" job.0 ||
  fail "the first run has not saved its state"
wait_for "run 2, on"
grep -qE "is to end: its time is over in -?[0-9]+ s" job.0 || fail "the second run has not looked at its time"
wait_for "^multi_worker_mirrored: 4 replicas"
if grep -q "^cohort report:" job.0; then fail "a job that ends in good order is reported as failed"; fi

# The third run says how many epochs it was asked for.
epochs=$(sed -n 's/^epoch .*\/\([0-9]*\)  loss.*/\1/p' job.0 | tail -n 1)
mv job.0 interrupted_job.0
batch "$launch/train.sbatch" "${training[@]}" --epochs "$epochs" --json "$work/undisturbed.json" ||
  fail "the undisturbed job fails"

# The resumed run has the epochs since its last start, with three figures each.
figures_of() { grep -E '"(number|loss|accuracy)"' "$1"; }
figures_of undisturbed.json >undisturbed.figures
figures_of resumed.json >resumed.figures
count=$(wc -l <resumed.figures)
((count > 0 && count < 3 * epochs)) || fail "the last run has $count figures of $((3 * epochs))"
diff <(tail -n "$count" undisturbed.figures) resumed.figures || fail "the losses differ from those of the undisturbed job"
diff <(grep test_accuracy undisturbed.json) <(grep test_accuracy resumed.json) || fail "the models differ"
echo "slurm_preemption: passed: the last $((count / 3)) of $epochs epochs are the same to the last bit"
