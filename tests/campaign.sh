#!/usr/bin/env bash
# Kills workers of a training at random moments, some during saves, and lets cohort-run start the job again:
# the weights at the end are bit for bit those of a training that nobody disturbed.
#
#   tests/campaign.sh [--kills N] [--workers N] [--epochs N] [--seed N] [--build DIR]
#
#   --kills N     how many times workers are killed, in as many trainings as it takes; default: 200
#   --workers N   of each training; default: 4
#   --epochs N    of each training, of 23 steps; default: 40
#   --seed N      of the random choices; default: from the clock, and printed
#   --build DIR   the build folder; default: build
#
# Prints a line for each training. Without a difference its status is 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

refuse() { echo "tests/campaign.sh: $*; see --help" >&2; exit 2; }
kills=200 workers=4 epochs=40 seed=${EPOCHREALTIME/[.,]/} build=build
while (($#)); do
  case $1 in
    --kills | --workers | --epochs | --seed)
      [[ ${2:-} =~ ^[1-9][0-9]{0,17}$ ]] || refuse "$1 needs a number from 1"
      declare "${1#--}=$2"; shift 2 ;;
    --build) build=${2:-}; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
[[ -x $build/bin/digits ]] || refuse "there is no $build/bin/digits; build it first"
RANDOM=$((seed % 32768))

readonly steps_of_epoch=23
last=$((epochs * steps_of_epoch))
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
fail() { echo "campaign: $*" >&2; tail -n 40 "$scratch/err" >&2; exit 1; }

# command_of FOLDER EVERY MEMORY_EVERY RESTARTS: the command of a training.
command_of() {
  command=(launch/cohort-run -n "$workers" --restarts "$4" "$build/bin/digits" --strategy multi_worker_mirrored
    --epochs "$epochs" --checkpoint "$1" --every "$2" --memory-every "$3" --resume --json "$1.json")
}

# The workers that train in $1: processes of the program itself, no launchers.
workers_in() {
  local pid
  for pid in $(pgrep -x digits); do
    if [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") == *" $1 "* ]]; then echo "$pid"; fi
  done
}

# A time from 0 to $1 ms, for sleep.
up_to() { printf '0.%03d' $((RANDOM % $1)); }

# How many epochs each process trains depends on the kills, and the times do, too.
figures() { sed -E 's/"seconds": *[0-9.e+-]+//g' "$1" | grep -oE '"test_accuracy": *[0-9.]+'; }

same_weights() {
  local file
  for file in "$scratch/calm/step-$last"/values-*.safetensors; do
    cmp -s "$file" "$1/step-$last/${file##*/}" || return 1
  done
}

command_of "$scratch/calm" "$last" 0 0
"${command[@]}" >/dev/null 2>"$scratch/err" </dev/null &
job=$!
wait "$job" || fail "the undisturbed training fails"
job=""

done_kills=0 number=0
while ((done_kills < kills)); do
  number=$((number + 1))
  folder=$scratch/run$number
  divisors=(1 2 4 5 10 20 23 46)
  every=${divisors[RANDOM % ${#divisors[@]}]}
  # Without snapshots, disk alone must do.
  memory_every=$(((number + RANDOM / 8192) % 4))
  ((last % every == 0)) || every=$steps_of_epoch
  command_of "$folder" "$every" "$memory_every" "$kills"
  "${command[@]}" >/dev/null 2>"$scratch/err" </dev/null &
  job=$!
  killed=0
  while kill -0 "$job" 2>/dev/null && ((done_kills < kills)); do
    mapfile -t pids < <(workers_in "$folder")
    # Some kills come while the workers start.
    if ((${#pids[@]} < workers && RANDOM % 4)); then sleep 0.05; continue; fi
    sleep "$(up_to 900)"
    mapfile -t pids < <(workers_in "$folder")
    ((${#pids[@]})) || continue
    # Of all workers, or of one.
    if ((RANDOM % 4)); then pids=("${pids[RANDOM % ${#pids[@]}]}"); fi
    if kill -KILL "${pids[@]}" 2>/dev/null; then
      done_kills=$((done_kills + 1))
      killed=$((killed + 1))
    fi
  done
  wait "$job" && status=0 || status=$?
  job=""
  ((status == 0)) || fail "training $number (seed $seed) ends with status $status"
  same_weights "$folder" || fail "training $number (seed $seed): other weights than without kills"
  [[ $(figures "$folder.json") == "$(figures "$scratch/calm.json")" ]] || fail "training $number (seed $seed): another test accuracy"
  echo "campaign: training $number with $killed kills, a checkpoint every $every steps, a snapshot every $memory_every: the same weights"
  rm -rf "$folder"
done
[[ -z $(workers_in "$scratch") ]] || fail "workers are left"
echo "campaign: $done_kills kills in $number trainings, seed $seed: passed"
