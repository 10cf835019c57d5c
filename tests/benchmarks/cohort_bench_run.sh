#!/usr/bin/env bash
# Runs cohort-bench on a few small sizes and checks everything that it prints.
#
#   cohort_bench_run.sh RANKS JSON_VALUE COMMAND...
#
# COMMAND starts cohort-bench on RANKS ranks; JSON_VALUE is the program of json_value.cpp.
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
ranks=$1 json_value=$2
shift 2
program=("$@")
bench=("$@" all-reduce --iterations 10 --loops 3)

header=collective,library,algorithm,dtype,op,members,bytes,elements,in_place,inputs,median_us,min_us,p99_us,iteration_us,algbw_gbs,busbw_gbs,ratio_to_peer,wrong,choice

# column NAME FILE: that column of a CSV file.
column() {
  local names number=0
  IFS=, read -ra names <<<"$header"
  while [[ ${names[number]} != "$1" ]]; do number=$((number + 1)); done
  tail -n +2 "$2" | cut -d, -f $((number + 1))
}

# The values of a column, each once, on one line.
values() { column "$1" "$2" | sort -u | paste -sd' '; }

echo "csv: the header, then a row per size and library, nothing else"
succeeds "${bench[@]}" --sizes 4:256K --format csv
csv=$scratch/out
same "header" "$header" "$(head -n 1 "$csv")"
same "rows" 18 "$(tail -n +2 "$csv" | wc -l)"
same "rows with another number of columns" 0 "$(awk -F, 'NF != 19' "$csv" | wc -l)"
same "libraries" "cohort mpi" "$(values library "$csv")"
same "members" "$ranks" "$(values members "$csv")"
same "wrong elements" 0 "$(values wrong "$csv")"
same "rows without times" 0 "$(awk -F, 'NR > 1 && !($11 > 0 && $12 > 0 && $11 >= $12 && $13 > 0 && $14 >= $12)' "$csv" | wc -l)"
same "sizes" "4 16 64 256 1024 4096 16384 65536 262144" "$(column bytes "$csv" | sort -nu | paste -sd' ')"
same "bus bandwidths that are not 2(n-1)/n of the algorithm's" 0 "$(awk -F, -v n="$ranks" \
  'NR > 1 { d = $16 - $15 * 2 * (n - 1) / n; if (d > 2e-6 || d < -2e-6) print }' "$csv" | wc -l)"
same "ratios of a size that are not each other's inverse" 0 "$(awk -F, \
  'NR > 1 { if ($7 in r) { p = r[$7] * $17; if (p < 0.99 || p > 1.01) print } else r[$7] = $17 }' "$csv" | wc -l)"
grep -q "$ranks member" "$scratch/err" || fail "the environment is not on standard error: $(cat "$scratch/err")"

echo "json: in a file, beside the table"
succeeds "${bench[@]}" --sizes 4:64 --format json --output "$scratch/report.json"
grep -q 'algorithm' "$scratch/out" || fail "no table beside the file: $(cat "$scratch/out")"
same "members, nodes, results and wrong elements" "$ranks 1 6 0" "$("$json_value" \
  /environment/members /environment/nodes /results /results/0/wrong <"$scratch/report.json" | paste -sd' ')"
for fact in version date command_line hosts cpu_model cores_available kernel mpi_library clock settings binding; do
  value=$("$json_value" /environment/$fact <"$scratch/report.json")
  [[ -n $value && $value != 0 ]] || fail "the environment says nothing of $fact"
done
home=$scratch/home
mkdir "$home"
HOME=$home COHORT_REPORT=$home/failed.json succeeds "${bench[@]}" --sizes 4 --format json --output "$home/report.json"
same "command line without folders" \
  "cohort-bench all-reduce --iterations 10 --loops 3 --sizes 4 --format json --output ~/report.json" \
  "$("$json_value" /environment/command_line <"$home/report.json")"
for text in "$scratch/out" "$home/report.json"; do
  ! grep -q "$home" "$text" || fail "the home folder is in: $(cat "$text")"
done
[[ $("$json_value" /environment/date <"$scratch/report.json") =~ ^20[0-9-]{8}T[0-9:]{8}Z$ ]] || fail "the date is not ISO 8601 in UTC"

echo "a page, which is a baseline: without a test, and with one that the machine's noise cannot fail"
succeeds "${program[@]}" all-reduce --iterations 10 --loops 1 --rounds 9 --sizes 4:64 --report "$scratch/page.html"
same "heads of pages" 1 "$(grep -c '<!DOCTYPE html>' "$scratch/page.html")"
succeeds "${program[@]}" all-reduce --iterations 10 --loops 1 --rounds 9 --sizes 4:64 --baseline "$scratch/page.html" \
  --fail-below 0.0001 --format json --output "$scratch/compared.json"
grep -q '^passed: none of 3 sizes' "$scratch/out" || fail "no verdict: $(cat "$scratch/out")"
same "json: rounds, compared rows, slower" "9 3 false" "$("$json_value" /results/0/rounds_us /comparison/rows \
  /comparison/slower <"$scratch/compared.json" | paste -sd' ')"
capture "${program[@]}" all-reduce --iterations 10 --rounds 2 --sizes 4:64 --baseline "$scratch/page.html" --fail-below 0.9
same "status of too few rounds" 2 "$status"
grep -q 'too few to show anything of 3 sizes' "$scratch/err" || fail "it says: $(cat "$scratch/err")"
succeeds "${program[@]}" barrier --iterations 3 --report "$scratch/page.html"

echo "table: at most 110 columns"
succeeds "${bench[@]}" --sizes 16K
same "wide lines" 0 "$(grep -vc '^.\{0,110\}$' "$scratch/out")"

echo "every collective, with each placement that it has"
# collective NAME FACTOR OP PLACEMENTS...: rows of Cohort and MPI, right, with that bus-bandwidth factor.
collective() {
  local name=$1 factor=$2 op=$3 placement
  shift 3
  for placement; do
    succeeds "${program[@]}" "$name" --iterations 3 --loops 2 --sizes 4:80K --in-place "$placement" --format csv
    same "$name, in place $placement: libraries, operator and wrong elements" "cohort mpi $op 0" \
      "$(values library "$scratch/out") $(values op "$scratch/out") $(values wrong "$scratch/out")"
    same "$name: bus bandwidths that are not $factor of the algorithm's" 0 "$(awk -F, -v n="$ranks" \
      "NR > 1 { f = $factor; d = \$16 - \$15 * f; if (d > 2e-6 || d < -2e-6) print }" "$scratch/out" | wc -l)"
  done
}
collective all-reduce "2 * (n - 1) / n" sum yes no
collective reduce "(n > 1)" sum yes no
collective broadcast "(n > 1)" none yes
collective all-gather "(n - 1) / n" none yes no
collective all-gather-uneven "(n - 1) / n" none yes no
collective reduce-scatter "(n - 1) / n" sum yes no
collective all-to-all "(n - 1) / n" none no
collective gather "(n - 1) / n" none yes no
collective scatter "(n - 1) / n" none yes no
succeeds "${program[@]}" barrier --iterations 3 --format csv
same "barrier: bytes and calls that somebody left early" "0 0" "$(values bytes "$scratch/out") $(values wrong "$scratch/out")"

echo "what MPI only moves may be of any type"
succeeds "${program[@]}" all-to-all --iterations 3 --loops 1 --sizes 1001 --dtype bfloat16 --format csv
same "libraries and wrong elements" "cohort mpi 0" "$(values library "$scratch/out") $(values wrong "$scratch/out")"

echo "ordinary memory, with and without huge pages, and no peer"
for pages in on off; do
  succeeds "${bench[@]}" --sizes 4:3M --buffers private --huge-pages $pages --peer none --format json --output "$scratch/report.json"
  same "buffers, library and wrong elements" "private cohort 0" "$("$json_value" \
    /results/5/buffers /results/5/library /results/5/wrong <"$scratch/report.json" | paste -sd' ')"
  grep -q "huge pages $pages; no peer" "$scratch/out" || fail "the table does not tell of memory and peer: $(cat "$scratch/out")"
done

echo "large sizes tell what the memory allows"
succeeds "${program[@]}" all-reduce --sizes 64M --iterations 1 --loops 1 --peer none --format json
for fact in memory_limit_us memory_limit_share; do
  value=$("$json_value" /results/0/$fact <"$scratch/out")
  # Alone there is nothing to reduce, and no limit.
  if ((ranks == 1)); then
    same "$fact" null "$value"
  elif [[ $value == null || $value == 0 ]]; then
    fail "no $fact: $(cat "$scratch/out")"
  fi
done

if ((ranks == 1)); then
  echo "threads as members"
  for name in all-reduce all-to-all barrier; do
    sizes=(--sizes 4:80K)
    [[ $name != barrier ]] || sizes=()
    succeeds "${program[@]}" $name "${sizes[@]}" --members threads --threads 3 --iterations 3 --loops 2 --format csv
    same "$name: library, members and wrong elements" "cohort 3 0" \
      "$(values library "$scratch/out") $(values members "$scratch/out") $(values wrong "$scratch/out")"
  done
fi

echo "what measures one process refuses several"
if ((ranks > 1)); then
  alone=(checkpoint coordinator dispatch input lines simulate summary trainer)
  for name in "${alone[@]}"; do  # beside each other: mpirun takes seconds to end with an error
    ("${program[@]}" "$name" >"$scratch/$name" 2>&1 || touch "$scratch/$name.refused") &
  done
  wait
  for name in "${alone[@]}"; do
    [[ -e $scratch/$name.refused ]] || fail "$name measures several processes"
    grep -q "$name measures one process" "$scratch/$name" || fail "no reason given: $(cat "$scratch/$name")"
  done
fi

echo "sharded-optimizer: beside the replicated one"
printf 'name,elements\nweight,30000\nbias,10\nlarge,70001\n' >"$scratch/small.csv"
succeeds "${program[@]}" sharded-optimizer --model "$scratch/small.csv" --loops 2 --format csv
optimizers="momentum adam adam+decay adam+value adam+norms adam+global_norm adam+average adam_bf16 adam_bf16+masters"
same "optimizers" "$optimizers" "$(tail -n +2 "$scratch/out" | cut -d, -f1 | paste -sd' ')"
same "rows that are not complete" 0 "$(awk -F, 'NR > 1 && !(NF == 7 && $2 == ranks && $3 > 0 && $4 > 0 && $7 <= 1.05 * $6 / $2)' ranks="$ranks" "$scratch/out" | wc -l)"

echo "start: from MPI_Init to the first call"
succeeds "${program[@]}" start --communicators 2 --format csv
same "phases" "MPI_Init,rest of the Session,first make_communicator,first all_reduce,further make_communicator" \
  "$(tail -n +2 "$scratch/out" | cut -d, -f1 | paste -sd,)"
same "rows that are not complete" 0 "$(awk -F, 'NR > 1 && !(NF == 2 && $2 > 0)' "$scratch/out" | wc -l)"
succeeds "${program[@]}" start --communicators 2 --format json --output "$scratch/start.json"
same "json: communicators, rows" "2 5" "$("$json_value" /start/communicators /start/results <"$scratch/start.json" | paste -sd' ')"

echo "profile: the gradients of a model"
printf 'name,elements\nweight,3000\nbias,10\nlarge,70001\nlast,1\n' >"$scratch/tiny.csv"
profile=("${program[@]}" profile --model "$scratch/tiny.csv" --steps 2)
modes="cohort,per_tensor cohort,packed cohort,fused cohort,async mpi,per_tensor mpi,fused cohort,overlapped cohort,buckets"
for options in "" "--buffers private --compute-ms 2 --dtype float64"; do
  # shellcheck disable=SC2086  # several options
  succeeds "${profile[@]}" $options --format csv
  same "modes" "$modes" "$(tail -n +2 "$scratch/out" | cut -d, -f2,3 | paste -sd' ')"
  same "rows that are not complete and right" 0 "$(awk -F, 'NR > 1 && !(NF == 14 && $7 > 0 && $14 == 0)' "$scratch/out" | wc -l)"
  same "hidden shares outside of 0 to 1" 0 "$(awk -F, '($3 == "overlapped" || $3 == "buckets") && !($11 >= 0 && $11 <= 1)' "$scratch/out" | wc -l)"
done
succeeds "${profile[@]}" --dtype bfloat16 --format json --output "$scratch/profile.json"
same "bfloat16: model, tensors, elements, rows" "tiny 4 73012 6" "$("$json_value" /profile/model /profile/tensors \
  /profile/elements /profile/results <"$scratch/profile.json" | paste -sd' ')"
grep -q 'cohort: overlapped' "$scratch/out" || fail "no table beside the file: $(cat "$scratch/out")"

echo "every kind of reduction, also in odd sizes"
for case in "float64 prod" "int8 sum" "uint64 prod" "int16 min" "bool max"; do
  read -r dtype op <<<"$case"
  succeeds "${bench[@]}" --sizes 1001:5000 --dtype "$dtype" --op "$op" --format csv
  same "$case: rows and wrong elements" "4 0" "$(tail -n +2 "$scratch/out" | wc -l) $(values wrong "$scratch/out")"
done

echo "what MPI lacks: Cohort alone, without a ratio, and a note"
for case in "float16 sum" "bfloat16 prod" "float32 mean"; do
  read -r dtype op <<<"$case"
  succeeds "${bench[@]}" --sizes 2:2K --dtype "$dtype" --op "$op" --format csv
  same "$case: libraries, ratios and wrong elements" "cohort  0" \
    "$(values library "$scratch/out") $(values ratio_to_peer "$scratch/out") $(values wrong "$scratch/out")"
  grep -q "MPI has no" "$scratch/err" || fail "$case: no note that the peer is left out: $(cat "$scratch/err")"
done

echo "kept inputs, and no check"
succeeds "${bench[@]}" --sizes 4K --inputs kept --format csv
same "inputs and wrong elements" "kept 0" "$(values inputs "$scratch/out") $(values wrong "$scratch/out")"
succeeds "${bench[@]}" --sizes 4K --no-check --format csv
same "wrong elements" "" "$(values wrong "$scratch/out")"
