#!/usr/bin/env bash
# Runs what cohort-bench measures in one process, in a small size, and checks everything that it prints.
#
#   cohort_bench_alone.sh COMMAND...     COMMAND starts cohort-bench in one process
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
program=("$@")

echo "dispatch: what the strategy layer costs"
succeeds "${program[@]}" dispatch --loops 1 --format csv
same "rows of one device and of two" "20 21" \
  "$(awk -F, '$2 == 1 && $3 > 0' "$scratch/out" | wc -l) $(awk -F, '$2 == 2 && $3 > 0' "$scratch/out" | wc -l)"
same "allocations of empty runs, reads and steps" "0.00" \
  "$(awk -F, '/empty function|Variable|step/ { print $4 }' "$scratch/out" | sort -u)"

echo "trainer: what fit adds to a step"
succeeds "${program[@]}" trainer --loops 1 --format csv
same "heading and cases" "case,overhead_us 5" "$(head -1 "$scratch/out") $(tail -n +2 "$scratch/out" | grep -c .)"

echo "lines: counts on a machine that is only described"
succeeds "${program[@]}" lines --topology 'pack:2 l3:2 core:4 pu:1' --format csv
same "heading" collective,engine,members,bytes,chain,chain_far,read_per_n,cross_socket_per_n,predicted_us \
  "$(head -1 "$scratch/out")"
same "a barrier of 16" "flat,15,8 levels,8,2" \
  "$(awk -F, -v OFS=, '$1 == "barrier" { print $2, $5, $6 }' "$scratch/out" | paste -sd' ')"
! "${program[@]}" lines --topology nowhere.xml >"$scratch/out" 2>&1 || fail "lines takes a file that is not there"

echo "simulate: times between many nodes and jobs with faults"
succeeds "${program[@]}" simulate --nodes 4 --lanes 2 --latency-ns 1000 --format csv --plot "$scratch/plot.svg"
python3 - "$scratch/plot.svg" <<'PYTHON' || fail "the plot has not two lines of two points for each call"
import sys, xml.etree.ElementTree as xml
lines = [line for line in xml.parse(sys.argv[1]).iter("{http://www.w3.org/2000/svg}polyline")]
assert len(lines) == 24 and all(len(line.get("points").split()) == 2 for line in lines), len(lines)
PYTHON
! "${program[@]}" simulate --nodes 2 --plot "$scratch/missing/plot.svg" >"$scratch/out" 2>&1 || fail "a plot goes nowhere"
grep -q -- '--plot .*cannot be written' "$scratch/out" || fail "does not say where the plot cannot be written"
succeeds "${program[@]}" simulate --nodes 4 --lanes 2 --latency-ns 1000 --format csv
same "heading" collective,nodes,lanes,bytes,algorithm,simulated_us,formula_us "$(head -1 "$scratch/out")"
same "rounds of a barrier" "2,1 4,2" \
  "$(awk -F, '$1 == "barrier" { printf "%d,%.0f\n", $2, $6 }' "$scratch/out" | paste -sd' ')"
succeeds "${program[@]}" simulate --faults 20

echo "summary: what logs cost"
mkdir "$scratch/logs"
succeeds "${program[@]}" summary --loops 1 --folder "$scratch/logs" --format csv
same "heading and cases" "case,us 4" "$(head -1 "$scratch/out") $(awk -F, 'NR > 1 && $2 > 0' "$scratch/out" | wc -l)"
same "files left behind" "" "$(ls "$scratch/logs")"

echo "input: what the pipeline delivers"
mkdir "$scratch/files"
succeeds "${program[@]}" input --loops 1 --file-mib 1 --batch 16 --compute-us 20 --folder "$scratch/files" --format csv
same "rows of sources alone, on one replica and on two" "10 5 5 4" \
  "$(awk -F, '$2 == "" && $5 > 0' "$scratch/out" | wc -l) $(awk -F, '$2 == 1 && $4 > 0' "$scratch/out" | wc -l) $(
    awk -F, '$2 == 2 && $7 <= 1' "$scratch/out" | wc -l) $(grep -c '^read(' "$scratch/out")"
same "files left behind" "" "$(ls "$scratch/files")"

echo "coordinator and parameters: with tasks of their own"
succeeds "${program[@]}" coordinator --loops 1 --format csv
same "cases with rates, and with round trips" "9 7" \
  "$(awk -F, 'NR > 1 && $4 > 0' "$scratch/out" | wc -l) $(awk -F, 'NR > 1 && $5 > 0' "$scratch/out" | wc -l)"
succeeds "${program[@]}" parameters --loops 1 --sizes 4:64K --table-mib 1 --format csv
same "pulls, pushes and rows of three numbers of servers" "24 24 3" \
  "$(for name in pull push rows; do awk -F, -v n=$name '$1 == n && $4 > 0 && $5 > 0' "$scratch/out" | wc -l; done |
    paste -sd' ')"

echo "checkpoint: beside cp"
mkdir "$scratch/checkpoints"
succeeds "${program[@]}" checkpoint --loops 1 --mib 2 --small-values 20 --folder "$scratch/checkpoints" --format csv
same "modes" "save save_async restore verify save restore verify save restore verify" \
  "$(tail -n +2 "$scratch/out" | cut -d, -f1 | paste -sd' ')"
same "values" "1 1 1 1 1 1 1 20 20 20" "$(tail -n +2 "$scratch/out" | cut -d, -f5 | paste -sd' ')"
same "rows that are not complete" 0 "$(awk -F, 'NR > 1 && !(NF == 9 && $3 > 0 && $4 > 0)' "$scratch/out" | wc -l)"
same "files left behind" "" "$(ls "$scratch/checkpoints")"
