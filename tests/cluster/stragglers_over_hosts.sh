#!/usr/bin/env bash
# Runs straggler_victim over virtual hosts, one of which has a link of a tenth of the others' rate, or has a worker
# that computes for longer, or is like the others: the job names that host with the cause, or nobody.
#
#   tests/cluster/stragglers_over_hosts.sh PROGRAM
set -euo pipefail
hosts=$(dirname "${BASH_SOURCE[0]}")/hosts.sh
program=$1

"$hosts" check --rate 1gbit || exit

work=$(mktemp -d /tmp/cohort-stragglers.XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() { echo "stragglers over hosts: $*" >&2; sed 's/^/  | /' "$work/log" >&2; exit 1; }

cat >"$work/with_slow_link" <<'END'
#!/usr/bin/env bash
set -euo pipefail
if [[ $(hostname) == "$1" ]]; then tc qdisc replace dev eth0 root tbf rate 200mbit burst 64k latency 50ms; fi
exec "${@:2}"
END
chmod +x "$work/with_slow_link"

# run HOSTS SLOW_HOST HOW RANK: 100 steps with 1.6 MB each.
run() {
  "$hosts" run --hosts "$1" --share "$work" --share "$(dirname "$program")" -- "$work/with_slow_link" "$2" "$program" "$3" "$4" 100 20 1600000 \
    >"$work/log" 2>&1 </dev/null || fail "ends with status $?"
}
# named RANK WORDS: this worker and no other, and nothing else of it.
named() {
  grep -qE "in the whole run, worker $1 \(host n$1, .*$2" "$work/log" || fail "worker $1 is not named with its cause"
  ! grep -vqE "worker $1 \(host n$1, .*$2" < <(grep -E 'was last in|has a slow link' "$work/log") || fail "something else is named, too"
}

run 3 none clean 0
! grep -qE 'was last in|has a slow link' "$work/log" || fail "somebody is named"
for slow in 0 1; do
  run 2 "n$slow" clean 0
  named "$slow" 'has a slow link: .*moving data'
done
run 3 n2 clean 0
named 2 'has a slow link: .*moving data'
run 3 none busy 1
named 1 'was last in .*computing'
