#!/usr/bin/env bash
# Looks at a job over three virtual hosts from the one that has neither its chief nor the worker that the others
# wait for: the answer has all hosts.
#
#   tests/cluster/job_look_over_hosts.sh PROGRAM INFO
set -euo pipefail
hosts=$(dirname "${BASH_SOURCE[0]}")/hosts.sh
program=$1 info=$2

"$hosts" check || exit

work=$(mktemp -d /tmp/cohort-job-look.XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() { echo "job look over hosts: $*" >&2; sed 's/^/  | /' "$work"/log "$work"/look >&2; exit 1; }

cat >"$work/looked_at" <<'END'
#!/usr/bin/env bash
set -euo pipefail
work=$1 info=$2
if [[ $(hostname) == n2 ]]; then
  # Not as a worker: of those only the first says anything.
  (
    end=$((SECONDS + 20))
    until env -i PATH="$PATH" "$info" --job >"$work/look" 2>&1 && grep -q '^not arrived: rank 1 (' "$work/look" &&
      grep -q '^in a call: ranks 0,2 (' "$work/look"; do
      ((SECONDS < end)) || break
    done
  ) &
fi
exec "${@:3}"
END
chmod +x "$work/looked_at"
touch "$work/look"
"$hosts" run --hosts 3 --ranks-per-host 1 --share "$work" --share "$(dirname "$program")" --share "$(dirname "$info")" \
  -- "$work/looked_at" "$work" "$info" "$program" busy 1 1 3000 \
  >"$work/log" 2>&1 </dev/null || fail "ends with status $?"
grep -q '^Job .*: 3 workers on 3 nodes, for ' "$work/look" || fail "the job is not found"
grep -q '^in a call: ranks 0,2 (hosts n0, n2) in all_reduce #0 ' "$work/look" || fail "who waits is not shown"
grep -q '^not arrived: rank 1 (worker 1, host n1), has made no collective' "$work/look" || fail "who is missing is not shown"
for host in 0 1 2; do
  grep -Eq "^ +$host +n$host .* MiB +[0-9.]+ MiB$" "$work/look" || fail "the memory on n$host is not known"
done
