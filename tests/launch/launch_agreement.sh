#!/usr/bin/env bash
# Programs whose launcher and MPI disagree do not run; workers may differ in variables of their own.
#
#   launch_agreement.sh PROGRAM LAUNCHER...     LAUNCHER starts 1 rank
set -euo pipefail
program=$1
shift
launcher=("$@")

# refuses MESSAGE COMMAND...
refuses() {
  local message=$1 said
  shift
  said=$("$@" 2>&1 </dev/null) && { echo "launch_agreement: '$*' runs: $said" >&2; exit 1; }
  [[ $(grep -Ec "$message" <<<"$said") == 1 ]] || { echo "launch_agreement: '$*' says: $said" >&2; exit 1; }
}

host=$(hostname)
refuses "^cohort: host $host, pid [0-9]+: an mpirun or srun with PMI started this process as rank 1 of 4 \(PMI_SIZE\)" \
  env PMI_RANK=1 PMI_SIZE=4 "$program"
refuses "worker 1 \(host $host, pid [0-9]+\): OMPI_COMM_WORLD_SIZE says that there are 9 workers, but MPI has 2" \
  "${launcher[@]}" "$program" : -n 1 env OMPI_COMM_WORLD_SIZE=9 "$program"
refuses "worker 1 \(host $host, pid [0-9]+\) has 2, while the other has 1" \
  "${launcher[@]}" "$program" : -n 1 env COHORT_CPU_DEVICES=2 "$program"
# A wrong setting is said once, with the worker and how many others have it, whether it is everybody's or one's.
refuses "worker 0 \(host $host, pid [0-9]+\) and 2 others: invalid COHORT_CPU_DEVICES=two: expected a whole number" \
  "${launcher[@]}" env COHORT_CPU_DEVICES=two "$program" : -n 2 env COHORT_CPU_DEVICES=two "$program"
refuses "worker 1 \(host $host, pid [0-9]+\): unknown setting COHORT_CPU_DEVICE: did you mean COHORT_CPU_DEVICES" \
  "${launcher[@]}" "$program" : -n 1 env COHORT_CPU_DEVICE=2 "$program" : -n 1 "$program"
refuses "OMPI_COMM_WORLD_RANK is 'first'; it must be a whole number, at least 0" \
  "${launcher[@]}" env OMPI_COMM_WORLD_RANK=first "$program"

# What each process may set for itself.
said=$("${launcher[@]}" env COHORT_BIND_CORES=false "$program" : -n 2 "$program" 2>&1 </dev/null) ||
  { echo "launch_agreement: one worker without a binding fails: $said" >&2; exit 1; }
grep -q "^rank 2 of 3:" <<<"$said" || { echo "launch_agreement: 3 workers say: $said" >&2; exit 1; }

# Said once; the program runs.
said=$("${launcher[@]}" env CUDA_VISIBLE_DEVICES=3 "$program" : -n 2 env CUDA_VISIBLE_DEVICES=0,1 "$program" 2>&1 </dev/null) ||
  { echo "launch_agreement: workers with other GPUs fail: $said" >&2; exit 1; }
[[ $(grep -Ec "worker 0 \(host $host, pid [0-9]+\) has 1 GPU, while the other 2 have 2 GPUs" <<<"$said") == 1 ]] ||
  { echo "launch_agreement: workers with other GPUs say: $said" >&2; exit 1; }
echo "launch_agreement: passed"
