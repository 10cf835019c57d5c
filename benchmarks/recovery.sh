#!/usr/bin/env bash
# How long a training of digits stands still when a worker is killed: from SIGKILL to the next training step
# of the job that cohort-run starts again, and how many steps were lost.
#
#   benchmarks/recovery.sh [--workers N] [--runs N] [--memory-every N]
#
# Prints a line for each run, and the medians.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

refuse() { echo "recovery.sh: $*; see --help" >&2; exit 2; }
workers=4 runs=7 memory_every=5
while (($#)); do
  case $1 in
    --workers | --runs | --memory-every)
      [[ ${2:-} =~ ^[1-9][0-9]{0,5}$ ]] || refuse "$1 needs a number from 1"
      name=${1#--}
      declare "${name//-/_}=$2"; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
[[ -x build/bin/digits ]] || refuse "there is no build/bin/digits; build it first"

scratch=$(mktemp -d)
job=""
clean_up() {
  if [[ -n $job ]]; then
    kill -TERM "$job" 2>/dev/null || true
    wait "$job" 2>/dev/null || true
  fi
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

# The workers of the job, which have its folder as an argument.
workers_of_job() {
  local pid
  for pid in $(pgrep -x digits); do
    if [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") == *" $1 "* ]]; then echo "$pid"; fi
  done
}
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

for ((run = 1; run <= runs; run++)); do
  log=$scratch/log$run
  : >"$log"
  # With a checkpoint on disk that is never due: what is restored comes from memory. COHORT_LOG_LEVEL=debug has
  # digits say when a step ends.
  COHORT_LOG_LEVEL=debug launch/cohort-run -n "$workers" --restarts 1 build/bin/digits \
    --strategy multi_worker_mirrored --epochs 100000 --checkpoint "$scratch/run$run" --every 1000000 \
    --memory-every "$memory_every" --resume >/dev/null 2>"$log" </dev/null &
  job=$!
  until grep -qa "step [0-9]*[1-9]5 has ended" "$log"; do
    kill -0 "$job" 2>/dev/null || { cat "$log" >&2; exit 1; }
    sleep 0.1
  done
  mapfile -t pids < <(workers_of_job "$scratch/run$run")
  killed_at=${EPOCHREALTIME/[.,]/}
  kill -KILL "${pids[RANDOM % ${#pids[@]}]}"
  until grep -qa "is restored from" "$log"; do sleep 0.01; done
  until grep -qa "step [0-9]* has ended" <<<"$(sed '1,/is restored from/d' "$log")"; do sleep 0.01; done
  ms=$(((${EPOCHREALTIME/[.,]/} - killed_at) / 1000))
  kill -TERM "$job"
  wait "$job" || true
  job=""
  last=$(sed '/is restored from/,$d' "$log" | grep -ao "step [0-9]* has ended" | tail -n 1 | tr -dc 0-9)
  restored=$(grep -ao "step [0-9]* is restored" "$log" | tail -n 1 | tr -dc 0-9)
  echo "run $run: $ms ms, $((last - restored)) steps lost (killed after step $last)"
  echo "$ms" >>"$scratch/ms"
done
echo "median of $runs: $(median <"$scratch/ms") ms with $workers workers"
