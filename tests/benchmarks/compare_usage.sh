#!/usr/bin/env bash
# The help and the mistakes of compare.sh, and a comparison without any peer, for peers may have
# to be downloaded.
#
#   compare_usage.sh COMPARE_SH COHORT_BENCH PEER_SWEEP JSON_VALUE
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
compare=$1 cohort_bench=$2 peer_sweep=$3 json_value=$4

# refuses ADVICE ARGUMENT...: status 2, no output, and one line that contains ADVICE.
refuses() {
  local advice=$1
  shift
  capture "$compare" "$@"
  same "$*: status" 2 "$status"
  same "$*: output" "" "$(cat "$scratch/out")"
  same "$*: lines" 1 "$(wc -l <"$scratch/err")"
  grep -q "^compare.sh: .*$advice" "$scratch/err" || fail "$*: expected '$advice' in: $(cat "$scratch/err")"
}

echo "help"
succeeds "$compare" --help
for option in --collective --sizes --dtype --in-place --ranks --rounds --only-peers --peers --extra --cohort-bench --output --report; do
  grep -q -- "^  $option " "$scratch/out" || fail "the help does not explain $option"
done

echo "mistakes"
refuses "unknown option" --frobnicate yes
refuses "unknown argument" all-reduce
refuses "needs a value" --sizes
refuses "choose one of all-reduce" --collective all_reduce
refuses "write MIN:MAX" --sizes 4:abc
refuses "the smallest size is above the largest" --sizes 1M:4
refuses "choose one of float32" --dtype float31
refuses "choose one of yes no" --in-place maybe
refuses "always works in place" --collective broadcast --in-place no
refuses "cannot work in place" --collective all-to-all --in-place yes
refuses "whole number" --rounds 0
refuses "whole number" --ranks two
refuses "choose one of debian-openmpi" --only-peers lam
refuses "write NAME=COMMAND" --extra command
refuses "no such program" --cohort-bench "$scratch/missing"

echo "a comparison with a program of one's own"
results=$scratch/results
own="'$peer_sweep' all-reduce --sizes 64:1K --label own"
succeeds "$compare" --only-peers debian-mpich --peers "$scratch/peers" --output "$results" --cohort-bench "$cohort_bench" \
  --sizes 64:1K --ranks 1 --rounds 2 --extra own="$own" --extra broken=false --report "$scratch/page.html"
grep -q "broken failed in round 2" "$scratch/err" || fail "nothing is said of a program that fails: $(cat "$scratch/err")"
grep -q "cohort-heap us *ratio .*own us" "$scratch/out" || fail "no table: $(cat "$scratch/out")"
same "sizes" "64 256 1024" "$(tail -n +2 "$results/summary.csv" | cut -d, -f1 | paste -sd' ')"
for runner in cohort-heap cohort-private own; do
  same "$runner: measurements, all right" 6 "$(grep -c "^$runner,.*,right$" "$results/measurements.csv")"
  [[ $(head -n 1 "$results/times.csv") =~ $runner ]] || fail "times.csv has no column $runner"
done

same "report.json: rows of Cohort, and of the program of one's own" "6 3" \
  "$(grep -c '"library": "cohort"' "$results/report.json") $(grep -c '"library": "own"' "$results/report.json")"
same "report.json: rounds, command" "2 compare.sh" "$("$json_value" /results/0/rounds_us /environment/command_line \
  <"$results/report.json" | paste -sd' ' | cut -d' ' -f1-2)"
grep -qF '"library":"own"' "$scratch/page.html" || fail "the page has no row of the program of one's own"

echo "a peer that cannot be installed"
mkdir "$scratch/no_pip"
printf '#!/bin/sh\necho "No module named pip" >&2\nexit 1\n' >"$scratch/no_pip/python3"
chmod +x "$scratch/no_pip/python3"
capture env PATH="$scratch/no_pip:$PATH" "$compare" --only-peers mpich --peers "$scratch/peers" --output "$results" \
  --cohort-bench "$cohort_bench" --sizes 64 --ranks 1 --rounds 1
grep -q "mpich.*python3 with pip is needed.*apt-get install python3-pip" "$scratch/err" || fail "it says: $(cat "$scratch/err")"

echo "wrong results fail, and are named"
liar="printf 'D,x,float32,d,1,1,64,1.0,1.0,1.0,WRONG\n'"
capture "$compare" --only-peers debian-mpich --peers "$scratch/peers" --output "$results" --cohort-bench "$cohort_bench" \
  --sizes 64 --ranks 1 --rounds 1 --extra liar="$liar"
same "status" 1 "$status"
grep -q "wrong results: liar" "$scratch/err" || fail "the liar is not named: $(cat "$scratch/err")"
