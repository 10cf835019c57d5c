#!/usr/bin/env bash
# The help and the mistakes of against.sh, its table and its verdict over programs that only print, and how it builds
# an older commit, of a small repository whose programs are scripts. One comparison is of cohort-bench with itself.
#
#   against_usage.sh AGAINST_SH COHORT_BENCH
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
original=$1 cohort_bench=$2
[[ -n $(type -t git) ]] || { echo "skipped: git is not installed"; exit 77; }

# A tree of its own, so that nothing is written beside the script under test.
tree="$scratch/a tree"
mkdir -p "$tree/benchmarks" "$tree/launch"
cp -r "$(dirname "$original")"/against{,.sh} "$tree/benchmarks"
cp "$(dirname "$original")/../launch/mpirun-env.sh" "$tree/launch"
against=$tree/benchmarks/against.sh

# refuses ADVICE ARGUMENT...: status 2, no output, and one line that contains ADVICE.
refuses() {
  local advice=$1
  shift
  capture "$against" "$@"
  same "$*: status" 2 "$status"
  same "$*: output" "" "$(cat "$scratch/out")"
  same "$*: lines" 1 "$(wc -l <"$scratch/err")"
  grep -q "^against.sh: .*$advice" "$scratch/err" || fail "$*: expected '$advice' in: $(cat "$scratch/err")"
}

# program NAME MICROSECONDS...: prints a report of one size per time; 16 bytes take the first, 64 the second ...
program() {
  local path="$scratch/$1" bytes=4
  shift
  {
    echo '#!/bin/sh'
    # An older program has fewer columns, in another order.
    echo 'echo bytes,library,median_us,wrong'
    for time; do
      bytes=$((bytes * 4))
      echo "echo $bytes,cohort,$time,0"
      echo "echo $bytes,mpi,1,0"
    done
  } >"$path"
  chmod +x "$path"
}

echo "help"
succeeds "$against" --help
for option in --ranks --rounds --fail-below --cohort-bench; do
  grep -q -- "^  $option " "$scratch/out" || fail "the help does not explain $option"
done

echo "mistakes"
program any 1
refuses "which commit"
refuses "has no history" HEAD
git() { command git -C "$tree" -c user.name=test -c user.email=test@example.invalid "$@"; }
commit() { git add -A && git commit -qm "$1"; }
git init -q
echo /build/ >"$tree/.gitignore"
commit "Without a benchmark"
refuses "unknown option" --frobnicate yes HEAD
refuses "whole number" --rounds 0 HEAD
refuses "whole number" --ranks two HEAD
refuses "write a number" --fail-below slow HEAD
refuses "no such program" --cohort-bench "$scratch/missing" HEAD
refuses "no commit nowhere" nowhere
refuses "no commit HEAD-dirty" HEAD-dirty
refuses "belongs before the commit" "$scratch/any" all-reduce --rounds 3
refuses "leave it out" "$scratch/any" all-reduce --format json
refuses "measures no times" "$scratch/any" simulate
refuses "only rates" "$scratch/any" input

echo "the table and the verdict"
program old 10 200 3
program new 5 200 4
alone=("$against" --ranks 1 --rounds 2 --cohort-bench "$scratch/new")
succeeds "${alone[@]}" "$scratch/old" all-reduce
same "rows" "16 10.0 5.000 us 2.000 2.000 2.000;64 200 200 us 1.000 1.000 1.000;256 3.000 4.000 us 0.750 0.750 0.750" \
  "$(tail -n 3 "$scratch/out" | tr -s ' ' | paste -sd';')"
same "who had a turn, in which order" "old new new old" \
  "$(grep ',256,' "$tree/build/against/measurements.csv" | cut -d, -f1 | paste -sd' ')"
capture "$against" --ranks 1 --rounds 8 --cohort-bench "$scratch/new" --fail-below 0.8 "$scratch/old"
same "status of too few rounds" 2 "$status"
grep -q "4 tests need at least 9 rounds" "$scratch/err" || fail "it says: $(cat "$scratch/err")"
alone=("$against" --ranks 1 --rounds 9 --cohort-bench "$scratch/new")
succeeds "${alone[@]}" --fail-below 0.7 "$scratch/old"
capture "${alone[@]}" --fail-below 0.8 "$scratch/old"
same "status" 1 "$status"
same "rows that are too slow" "  256: 0.750" "$(grep '^  ' "$scratch/err")"
same "chances" "1.0000 1.0000 0.0078 1.0000" "$(tail -n 4 "$scratch/out" | awk '{ print $NF }' | paste -sd' ')"

echo "no false alarms, and a slowdown of 10 % is found"
# Pairs as they were measured on two virtual cores: times spread by 3 %, and the machine becomes 2.3 times as slow or as
# fast between two turns in one of ten.
verdicts() {
  local trial
  for ((trial = 1; trial <= 60; ++trial)); do
    awk -v OFS=, -v seed="$trial" -v slower="$1" '
      function uniform() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
      function noise(    sum, i) { for (i = 0; i < 12; i++) sum += uniform(); return exp(0.03 * (sum - 6)) }
      function turn(which) {
        if (uniform() < 0.1) slow = !slow
        for (row = 1; row <= 5; row++) print which, round, row, "us", row * (slow ? 2.3 : 1) * noise() * (which == "new" ? slower : 1)
      }
      BEGIN {
        seed = seed * 7919; for (i = 0; i < 9; i++) uniform()
        print "which,round,row,unit,time"
        for (round = 1; round <= 31; round++) { turn(round % 2 ? "old" : "new"); turn(round % 2 ? "new" : "old") }
      }' | awk -f "$tree/benchmarks/against/table.awk" -v fail_below=0.95 >"$scratch/out" 2>/dev/null && echo same || echo slower
  done | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd' '
}
same "verdicts on unchanged programs" "60 same" "$(verdicts 1)"
found=$(verdicts 1.1)
((${found%% *} >= 57)) && [[ $found == *slower ]] || fail "a slowdown of 10 % in 60 comparisons: $found"

echo "a row that only one of them has, and none in common"
program old 10
succeeds "${alone[@]}" "$scratch/old"
same "row" "256 - 4.000 us - - -" "$(tail -n 1 "$scratch/out" | tr -s ' ')"
printf '#!/bin/sh\necho operation,devices,ns\necho run,1,5\n' >"$scratch/other"
chmod +x "$scratch/other"
capture "${alone[@]}" "$scratch/other"
same "status" 1 "$status"
grep -q 'no row in common' "$scratch/err" || fail "it says: $(cat "$scratch/err")"

echo "a program that fails"
printf '#!/bin/sh\necho "cohort-bench: unrecognised option %s" >&2\nexit 2\n' "'--new'" >"$scratch/other"
capture "${alone[@]}" "$scratch/other" all-reduce --new
same "status" 1 "$status"
grep -q "unrecognised option '--new'" "$scratch/err" || fail "its reason is not shown: $(cat "$scratch/err")"
grep -q "the old program failed in round 1" "$scratch/err" || fail "it says: $(cat "$scratch/err")"

echo "an older commit is built once, and keeps its flags"
echo 'add_executable(cohort-bench main.cpp)' >"$tree/benchmarks/CMakeLists.txt"
cp "$scratch/old" "$tree/cohort-bench"
cat >"$tree/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(test NONE)
set(program ${CMAKE_BINARY_DIR}/bin/cohort-bench)
add_custom_command(OUTPUT ${program} DEPENDS ${CMAKE_SOURCE_DIR}/cohort-bench
  COMMAND ${CMAKE_COMMAND} -E echo built
  COMMAND ${CMAKE_COMMAND} -E make_directory bin
  COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/cohort-bench ${program})
add_custom_target(cohort-bench DEPENDS ${program})
CMAKE
cat >"$tree/CMakePresets.json" <<'JSON'
{"version": 3, "configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build"}]}
JSON
commit "With one"
cp "$scratch/new" "$tree/cohort-bench"  # this tree's, which is not committed yet
refuses "has no cohort-bench" HEAD~1
for turn in first second; do
  succeeds "$against" --ranks 1 --rounds 1 HEAD all-reduce
  same "row" "16 10.0 5.000 us 2.000 2.000 2.000" "$(tail -n 3 "$scratch/out" | head -n 1 | tr -s ' ')"
  grep -q '^old: [0-9a-f]* of 2[0-9-]*, "With one"$' "$scratch/out" || fail "the commit is not named: $(cat "$scratch/out")"
  same "built in the $turn turn" "$([[ $turn == first ]] && echo 2 || echo 0)" "$(grep -c '^built' "$tree/build/against/log.txt")"
done
same "files that git sees" " M cohort-bench" "$(git status --porcelain)"
echo 'message(FATAL_ERROR "does not configure")' >>"$tree/CMakeLists.txt"
commit "Broken"
capture "$against" --cohort-bench "$scratch/new" HEAD
same "status" 1 "$status"
grep -q "cannot be built" "$scratch/err" || fail "it says: $(cat "$scratch/err")"

echo "cohort-bench beside itself"
succeeds "$against" --rounds 1 --cohort-bench "$cohort_bench" "$cohort_bench" all-reduce --sizes 64:1K --loops 2 --iterations 10
same "rows" "64 256 1K" "$(tail -n 3 "$scratch/out" | cut -d' ' -f1 | paste -sd' ')"
grep -q '2 ranks, 1 round$' "$scratch/out" || fail "no heading: $(cat "$scratch/out")"
succeeds "$against" --rounds 1 --ranks 1 --cohort-bench "$cohort_bench" "$cohort_bench" dispatch --loops 1
grep -q '^run of an empty function 1 device ' "$scratch/out" || fail "no row: $(cat "$scratch/out")"
