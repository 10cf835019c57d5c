#!/usr/bin/env bash
# Runs straggler_victim under the launcher with COHORT_TIMELINE, and checks the file: it has each call and
# each span of each worker, spans of a track follow one another or nest, the busy worker is seen to compute for longer, and nobody ends a
# call before all have begun it, but for the error that the file states; the last worker has a clock of its own, where
# it is alone on its node and the system allows it. Then that cohort-info says the same of it, draws it, and
# reads what there is of a file that ends within a line.
#
#   tests/mpi/timeline.sh RANKS NODES INFO LAUNCHER... PROGRAM
set -euo pipefail

ranks=$1 nodes=$2 info=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export COHORT_TIMELINE=$work/timeline.json COHORT_LOG_LEVEL=error
if ((nodes > 1)); then export COHORT_WORKERS_PER_NODE=$(((ranks + nodes - 1) / nodes)); fi
program=("${!#}")
if ((nodes > 1 && nodes == ranks)) && unshare --time --monotonic 100000 --fork true 2>/dev/null; then
  cat >"$work/with_other_clock" <<SCRIPT
#!/bin/sh
[ "\$OMPI_COMM_WORLD_RANK" != $((ranks - 1)) ] || exec unshare --time --monotonic 100000 --fork "\$@"
exec "\$@"
SCRIPT
  chmod +x "$work/with_other_clock"
  program=("$work/with_other_clock" "${program[@]}")
fi
timeout --signal=KILL 60 "${@:1:$#-1}" --mca btl_vader_backing_directory "$work" --mca orte_tmpdir_base "$work" \
  "${program[@]}" busy 0 40 20 </dev/null
python3 - "$COHORT_TIMELINE" "$ranks" "$nodes" <<'PYTHON'
import collections, json, sys
path, ranks, nodes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
events = json.load(open(path))
spans = [event for event in events if event["ph"] == "X"]
calls = collections.Counter(span["pid"] for span in spans if span["name"] == "all_reduce")
assert calls == {rank: 40 for rank in range(ranks)}, calls
steps = collections.Counter(span["pid"] for span in spans if span["name"] == "step" and span["cat"] == "span")
assert steps == {rank: 40 for rank in range(ranks)}, steps
tracks = collections.defaultdict(list)
for span in spans:
    tracks[span["pid"], span["tid"]].append((span["ts"], -span["dur"], span["name"]))
for track, times in tracks.items():
    open_until = []
    for begin, duration, name in sorted(times):
        while open_until and open_until[-1] <= begin + 0.01:
            open_until.pop()
        assert not open_until or begin - duration <= open_until[-1] + 0.01, f"{name} at {begin} of {track} overlaps"
        open_until.append(begin - duration)
# What the trace event format demands.
for event in events:
    assert isinstance(event["name"], str) and isinstance(event["args"], dict), event
    assert isinstance(event["pid"], int) and isinstance(event["tid"], int), event
    assert event["ph"] in ("X", "M"), event
    if event["ph"] == "X":
        assert event["ts"] >= 0 and event["dur"] >= 0, event
    else:
        kinds = {"process_name": "name", "thread_name": "name", "process_labels": "labels"}
        assert isinstance(event["args"][kinds[event["name"]]], str), event
errors = [event["args"]["clock_error_us"] for event in events if event["name"] == "process_labels"]
assert errors or nodes == 1, "no clock error is stated"
error = max(errors, default=0) + 0.01
assert error < 1e6, errors
begun, ended = {}, {}
for span in spans:
    if span["name"] == "all_reduce":
        call = span["args"]["call"]
        begun[call] = max(begun.get(call, 0), span["ts"])
        ended[call] = min(ended.get(call, float("inf")), span["ts"] + span["dur"])
for call in begun:
    assert ended[call] >= begun[call] - error, (call, begun[call], ended[call], error)
computed = collections.Counter()
for span in spans:
    if span["name"] == "compute":
        computed[span["pid"]] += span["dur"]
assert all(computed[0] > 2 * computed[rank] for rank in range(1, ranks)), computed
names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
assert len(names) == ranks, names
PYTHON
rest=$(find "$work" -name 'timeline.json.*')
[[ -z $rest ]] || { echo "timeline: parts are left: $rest" >&2; exit 1; }

[[ $("$info" --timeline "$COHORT_TIMELINE") =~ ^[^$'\n']*": $ranks worker" ]]
"$info" --timeline "$COHORT_TIMELINE" --format json >"$work/summary.json"
"$info" --timeline "$COHORT_TIMELINE" --svg >"$work/picture.svg"
head -c -40 "$COHORT_TIMELINE" >"$work/cut.json"
"$info" --timeline "$work/cut.json" >/dev/null
python3 - "$COHORT_TIMELINE" "$work/summary.json" "$work/picture.svg" "$ranks" <<'PYTHON'
import collections, json, sys
import xml.etree.ElementTree as xml
events, summary, picture = json.load(open(sys.argv[1])), json.load(open(sys.argv[2])), xml.parse(sys.argv[3])
ranks = int(sys.argv[4])
assert summary["calls"]["all_reduce"]["calls"] == 40 * ranks, summary
assert "step" not in summary["calls"] and summary["spans"]["step"]["spans"] == 40 * ranks, summary
errors = [event["args"]["clock_error_us"] for event in events if event["name"] == "process_labels"]
assert abs(summary["clock_error_seconds"] - max(errors, default=0) / 1e6) < 1e-9, summary
computed = collections.Counter()
for event in events:
    if event["name"] == "compute":
        computed[event["pid"]] += event["dur"] / 1e6
for worker in summary["workers"]:
    assert abs(worker["seconds"]["compute"] - computed[worker["worker"]]) < 1e-6, (worker, computed)
svg = "{http://www.w3.org/2000/svg}"
titles = collections.Counter(title.text.split(",")[0] for title in picture.iter(svg + "title"))
assert titles["all_reduce"] and titles["compute"], titles
assert titles["step"], titles
texts = {text.text for text in picture.iter(svg + "text")}
assert sum(text.startswith("worker ") for text in texts) == ranks, texts
PYTHON
for wrong in '"pid":-1,"tid":0,"ts":1,"dur":1' '"pid":1e300,"tid":0,"ts":1,"dur":1' '"pid":0,"tid":0,"ts":-1,"dur":1' \
  '"pid":0,"tid":0,"ts":1,"dur":1e300' '"pid":0,"tid":"a","ts":1,"dur":1' '"pid":0,"tid":0,"dur":1'; do
  printf '[\n{"name":"a","ph":"X",%s,"args":{}},\n' "$wrong" >"$work/wrong.json"
  if "$info" --timeline "$work/wrong.json" 2>"$work/refused"; then echo "timeline: takes $wrong" >&2; exit 1; fi
  grep -q 'line 2: is no event of a timeline' "$work/refused"
done
if "$info" --timeline "$work/picture.svg" 2>"$work/refused"; then echo "timeline: a picture is read as a timeline" >&2; exit 1; fi
grep -q 'is no timeline' "$work/refused"
