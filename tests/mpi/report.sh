#!/usr/bin/env bash
# Runs report_victim under the launcher, in which one worker goes wrong, and checks what the job says of it:
# five lines from each node that name rank, host and call, the same in the file of COHORT_REPORT, which
# Python reads, and the same from cohort-info.
#
#   tests/mpi/report.sh HOW RANKS NODES COHORT_INFO LAUNCHER... PROGRAM
set -euo pipefail

how=$1 ranks=$2 nodes=$3 info=$4
shift 4
launcher=("${@:1:$#-1}")
program=${!#}
victim=$((ranks - 1))
per_node=$(((ranks + nodes - 1) / nodes))
host=$(hostname)

work=$(mktemp -d)
output=$work/output
trap 'rm -rf "$work"' EXIT

fail() {
  echo "report: $how, $ranks ranks on $nodes nodes: $*" >&2
  sed 's/^/  | /' "$output" >&2
  exit 1
}

# ranks_of FIRST LAST: as the lines name them.
ranks_of() {
  if (($1 == $2)); then
    echo "rank $1 \(worker $1, host $host\)"
  else
    echo "ranks $1-$2 \(host $host\)"
  fi
}

mkdir "$work/arrivals"
export COHORT_REPORT=$work/report.json COHORT_LOG_LEVEL=error COHORT_COLLECTIVE_TIMEOUT_SECONDS=20
if ((nodes > 1)); then export COHORT_WORKERS_PER_NODE=$per_node; fi
launcher+=(--mca btl_vader_backing_directory "$work" --mca orte_tmpdir_base "$work")
timeout --signal=KILL 40 "${launcher[@]}" "$program" "$how" "$victim" "$work/arrivals" >"$output" 2>&1 </dev/null || true

# The communicator, the call that the others wait in, and what all have finished before it.
name=1 waited='all_reduce #2 \(float32\[7\], sum\)'
latest='all_reduce #1' finished="$latest \(float32\[50000\], max\), [0-9.]+ u?s ago"
case $how in
  late) name='1\.0\.4' ;;
  start) waited='all_reduce #0 \(float64\[100\], sum\)' finished='no collective' ;;
  split) waited='split #2' ;;
esac

# check FILE FIRST LAST: the report of the node of these ranks.
check() {
  local file=$1 first=$2 last=$3 others
  [[ -e $file ]] || fail "there is no $(basename "$file")"
  python3 - "$file" "$work/lines" "$first" "$last" "$how" "$victim" "$host" <<'PYTHON' || fail "the report is not as it should be"
import json, sys
path, lines, first, last, how, victim, host = sys.argv[1:]
first, last, victim = int(first), int(last), int(victim)
report = json.load(open(path))

def check_finished(calls):
    assert calls[0]["call"] == "all_reduce" and calls[0]["dtype"] == "float64" and calls[0]["bytes"] == 800, calls[0]
    assert calls[1]["op"] == "max" and calls[1]["elements"] == 50000 and calls[1]["state"] == "ended", calls[1]
    assert calls[1]["arrived_seconds_ago"] >= calls[1]["started_seconds_ago"] >= calls[1]["ended_seconds_ago"], calls[1]

assert report["cohort_report"] == 1 and report["host"] == host, report
assert len(report["lines"]) == 5, report["lines"]
open(lines, "w").write("\n".join(report["lines"]) + "\n")
for member in report["members"]:
    rank = member["rank"]
    assert member["worker"] == rank and member["host"] == host, member
    assert member["recorded"] == (first <= rank <= last), member
    if not member["recorded"]:
        continue
    calls = {c["number"]: c for c in member["calls"] if "number" in c}
    if how == "start":
        assert list(calls) == ([] if rank == victim else [0]), calls
    else:
        check_finished(calls)
    states = {h: ["gone"] for h in ("kill", "start", "split", "close")} | {"stop": ["stopped"]}
    states = states.get(how if rank == victim else "", ["running"])
    if rank == victim and how in ("throw", "leave"):
        states += ["gone"]
    assert member["process"] in states, member
    assert member["torn_entries"] == 0, member
PYTHON
  for ((i = 1; i <= 5; ++i)); do
    line=$(sed -n "${i}p" "$work/lines")
    grep -qFx "cohort report: $line" "$output" || fail "not on standard error: $line"
  done
  "$info" --report "$file" >"$work/table"
  diff "$work/lines" <(sed -n '3,7p' "$work/table") >>"$output" || fail "cohort-info says something else"
  (($(tail -n +10 "$work/table" | wc -l) == ranks)) || fail "the table has not $ranks rows: $(cat "$work/table")"
  "$info" --report "$file" --format json | cmp - "$file" || fail "cohort-info --format json differs"

  expect 1 "^communicator $name of $ranks member.* failed: "
  expect 2 "^finished by all.*: $finished$"
  if ((first < victim)); then
    if ((last == victim)); then others=$(ranks_of "$first" $((victim - 1))); else others=$(ranks_of "$first" "$last"); fi
    expect 3 "in a call: .*$others in $waited for "
  fi
  if ((last == victim)); then
    odd=$(ranks_of "$victim" "$victim")
    case $how in
      kill | split | close) expect 4 "$odd, last in $latest" && expect 5 "^died: $odd, pid [0-9]+$" ;;
      start) expect 4 "$odd, has made no collective$" && expect 5 "^died: $odd, pid [0-9]+$" ;;
      stop) expect 4 "$odd, last in all_reduce #1" && expect 5 "^died: nobody; stopped: $odd, pid [0-9]+" ;;
      throw) expect 4 "$odd, last in all_reduce #1" ;;
      missing | late) expect 4 "$odd, last in all_reduce #1" && expect 5 "^died: nobody$" ;;
      abort) expect 1 "failed: the victim has had enough$" ;;
      leave) expect 4 "$odd, last in all_reduce #1" && expect 5 "^died: nobody; left: $odd" ;;
      other) expect 3 "$odd in broadcast #2 \(int32\[30\], root 0\) for " && expect 4 "^not arrived: nobody$" ;;
      message) expect 3 "$odd in receive \(float32\[9\], from rank 0, tag 33\) for " ;;
    esac
  fi
}

# expect NUMBER PATTERN: of that line.
expect() { [[ $(sed -n "${1}p" "$work/lines") =~ $2 ]] || fail "line $1 is '$(sed -n "${1}p" "$work/lines")', expected $2"; }

for ((node = 0; node < nodes; ++node)); do
  first=$((node * per_node))
  last=$(((node + 1) * per_node - 1))
  ((last < ranks)) || last=$((ranks - 1))
  if ((nodes == 1)); then check "$COHORT_REPORT" "$first" "$last"; else check "$COHORT_REPORT.worker-$first" "$first" "$last"; fi
done
lines=$(grep -c '^cohort report: ' "$output")
((lines == 5 * nodes)) || fail "$lines lines of reports instead of $((5 * nodes))"
files=$(find "$work" -maxdepth 1 -name 'report.json*' | wc -l)
((files == nodes)) || fail "$files files instead of $nodes"
