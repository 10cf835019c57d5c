#!/usr/bin/env bash
# Runs straggler_victim under the launcher with COHORT_RUN_NUMBERS and COHORT_PROMETHEUS, and checks table and
# file: they have each call of each worker, also of a loop that is faster than the reader; the busy worker
# computes for the largest share of its time; the file has each series once. Without the settings, nothing is
# printed.
#
#   tests/mpi/run_numbers.sh RANKS NODES LAUNCHER... PROGRAM
set -euo pipefail

ranks=$1 nodes=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export COHORT_LOG_LEVEL=error
if ((nodes > 1)); then export COHORT_WORKERS_PER_NODE=$(((ranks + nodes - 1) / nodes)); fi
run() {
  local how=$1 steps=$2
  shift 2
  timeout --signal=KILL 60 "${@:1:$#-1}" --mca btl_vader_backing_directory "$work" --mca orte_tmpdir_base "$work" \
    "${!#}" "$how" 0 "$steps" 20 </dev/null
}
COHORT_RUN_NUMBERS=true COHORT_PROMETHEUS=$work/job.prom run busy 40 "$@" 2>"$work/table"
python3 - "$work" "$ranks" "$nodes" <<'PYTHON'
import re, sys
work, ranks, nodes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
table = open(f"{work}/table").read()
plural = lambda count, what: f"{count} {what}{'' if count == 1 else 's'}"
assert f"cohort numbers: {plural(ranks, 'worker')} on {plural(nodes, 'node')}, " in table, table
shares = {int(rank): [float(share) for share in rest.split("%")[:3]]
          for rank, rest in re.findall(r"^  (\d+) \(host [^)]*\) +(.*)$", table, re.M)}
assert sorted(shares) == list(range(ranks)), table
assert all(abs(sum(of_worker) - 100) < 0.2 for of_worker in shares.values()), table
assert all(shares[0][0] > shares[rank][0] for rank in range(1, ranks)), table
assert re.search(r"^  all_reduce +40 +160 KiB ", table, re.M), table
assert "estimated" not in table and "nothing is known" not in table, table

values, families = {}, {}
for line in open(f"{work}/job.prom"):
    if line.startswith("#"):
        word, name = line.split()[1:3]
        families.setdefault(name, []).append(word)
        continue
    series, value = line.rsplit(" ", 1)
    assert series not in values and families[series.split("{")[0]] == ["HELP", "TYPE"], line
    values[series] = float(value)
assert len(values) == 43, values
assert values["cohort_workers"] == ranks
assert values['cohort_collective_calls_total{kind="all_reduce"}'] == 40 * ranks, values
assert values['cohort_collective_bytes_total{kind="all_reduce"}'] == 40 * ranks * 4096, values
assert sum(value for series, value in values.items() if "calls_total" in series) == 40 * ranks, values
waited = values['cohort_worker_communication_seconds_total{over_workers="max"}']
assert (waited > 0) == (ranks > 1), values
PYTHON
rest=$(find "$work" -name 'job.prom?*')
[[ -z $rest ]] || { echo "run_numbers: left: $rest" >&2; exit 1; }
# Most of these calls are not seen, and yet counted.
COHORT_RUN_NUMBERS=true run fast 5000 "$@" 2>"$work/table"
grep -Eq '^  all_reduce +5000 ' "$work/table" || { cat "$work/table"; exit 1; }
run busy 1 "$@" 2>"$work/quiet"
if grep 'cohort numbers' "$work/quiet"; then exit 1; fi
