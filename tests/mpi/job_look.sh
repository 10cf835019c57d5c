#!/usr/bin/env bash
# Looks at a job whose last worker stays away from the first collective: who waits for it is shown, in text and
# JSON, by the number of its chief's process; when the job has ended, it cannot be found any more. Then at one
# whose last worker is slow, which is said.
#
#   tests/mpi/job_look.sh RANKS NODES INFO LAUNCHER... PROGRAM
set -euo pipefail

ranks=$1 nodes=$2 info=$3
shift 3
work=$(mktemp -d)
job=""
stop() {
  if [[ -n $job ]]; then
    kill -TERM "$job" 2>/dev/null || true
    wait "$job" 2>/dev/null || true
    job=""
  fi
}
trap 'stop; rm -rf "$work"' EXIT
fail() { echo "job_look: $*" >&2; cat "$work"/log "$work"/look* >&2; exit 1; }

export COHORT_LOG_LEVEL=error
last=$((ranks - 1))
launcher=("${@:1:$#-1}") program=${!#}
# start STEPS MS: the last worker computes for so much more in each step.
start() {
  (
    if ((nodes > 1)); then export COHORT_WORKERS_PER_NODE=$(((ranks + nodes - 1) / nodes)); fi
    exec "${launcher[@]}" --mca btl_vader_backing_directory "$work" --mca orte_tmpdir_base "$work" \
      "$program" busy "$last" "$1" "$2" </dev/null >"$work/log" 2>&1
  ) &
  job=$!
}
start 1 50000

# The chief is one of the processes of this job that have a socket.
chief() {
  local child
  for child in $(pgrep -P "$job"); do
    if "$info" --job "$child" >"$work/look" 2>/dev/null; then echo "$child"; return; fi
  done
}
waiting="ranks 0-$((last - 1)) [(]host"
if ((ranks == 2)); then waiting="rank 0 [(]worker 0, "; fi
# missing: what the look does not show, if anything. Workers come one after another.
missing() {
  grep -q "^not arrived: rank $last (worker $last, " "$work/look" || { echo "the worker that stays away is not shown"; return; }
  grep -q "^in a call: $waiting.* in all_reduce #0 (float32\[1024\], sum)" "$work/look" || { echo "who waits is not shown"; return; }
  (($(grep -Ec '^ +[0-9]+ +.* MiB +[0-9.]+ MiB$' "$work/look") == ranks)) || echo "memory is not known of all workers"
}
end=$((SECONDS + 40))
until pid=$(chief) && [[ -n $pid && -z $(missing) ]]; do
  ((SECONDS < end)) || fail "$(if [[ -n $pid ]]; then missing; else echo "no chief is found"; fi)"
done
grep -Eq "^Job [^ ]+: $ranks workers on $nodes nodes?, for " "$work/look" || fail "the head is wrong"

"$info" --job "$pid" --format json >"$work/look.json"
python3 - "$work/look.json" "$ranks" "$nodes" <<'PYTHON'
import json, sys
look = json.load(open(sys.argv[1]))
ranks, nodes = int(sys.argv[2]), int(sys.argv[3])
assert (look["cohort_look"], len(look["workers"]), look["nodes"]) == (1, ranks, nodes), look
assert look["no_answer"] == [] and look["restarts"] == 0 and look["seconds"] > 0, look
assert all(worker["memory_bytes"] > 2**20 for worker in look["workers"]), look
[members] = [communicator["members"]["members"] for communicator in look["communicators"]]
assert [member["calls"][-1]["state"] if member["calls"] else None for member in members[:-1]] == ["waiting"] * (ranks - 1), members
assert members[-1]["collectives_begun"] == 0, members
PYTHON

# Redrawn until the job ends.
touch "$work/look.watch"
"$info" --job "$pid" --watch >"$work/look.watch" 2>&1 &
watcher=$!
until (($(grep -c '^Job ' "$work/look.watch") >= 2)); do ((SECONDS < end)) || fail "it is not redrawn"; done
stop
wait "$watcher" || grep -q 'cannot be asked\|has ended before' "$work/look.watch" || fail "the end of the job is an error"
if "$info" --job "$pid" 2>"$work/look.gone"; then fail "a job that has ended is found"; fi
grep -q "no job of yours with the name $pid has workers on this host" "$work/look.gone" || fail "what is missing is not said"

start 100000 30
end=$((SECONDS + 40))
until pid=$(chief) && [[ -n $pid ]] && grep -q "^slow: worker $last (host .*) was last in .*: computing," "$work/look"; do
  ((SECONDS < end)) || fail "who makes the others wait is not shown"
done
"$info" --job "$pid" --format json >"$work/look.json"
grep -q '"slow":\["worker ' "$work/look.json" || fail "who makes the others wait is not in the JSON"
