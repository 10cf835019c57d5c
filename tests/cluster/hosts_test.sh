#!/usr/bin/env bash
# Tests hosts.sh itself: the hosts differ, the program's end is the script's, and nothing is left however the
# script ends. Runs in namespaces of its own, where everything visible was made by this test.
set -euo pipefail
scripts=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
# shellcheck source=tests/cluster/private_folders.sh
source "$scripts/private_folders.sh"

if [[ ${1:-} != inside ]]; then
  "$scripts/hosts.sh" check --rate 1gbit || exit
  exec unshare --net --mount --pid --fork --kill-child --mount-proc "$scripts/hosts_test.sh" inside
fi
HOSTS_SHARED_FOLDERS=$scripts make_private_folders
work=$(mktemp -d)
cd "$work"

fail() { echo "hosts_test: $*" >&2; exit 1; }
hosts() { "$scripts/hosts.sh" run "$@" 2>launcher.log </dev/null; }

# The shell itself counts the processes: those of a pipeline may have started by then, or not.
everything_there() {
  local processes=(/proc/[0-9]*)
  echo "${#processes[@]}"
  ip -o link | cut -d : -f 2
  cat /proc/self/mounts
  ls -A /dev/shm /run /tmp
}
before=$(everything_there)
nothing_is_left() {
  local now
  for ((i = 0; i < 50; i++)); do
    now=$(everything_there)
    [[ $now != "$before" ]] || return 0
    sleep 0.1  # the kernel ends the processes of a namespace one after the other
  done
  diff <(echo "$before") <(echo "$now") >&2 || fail "$1: something is left"
}

# shellcheck disable=SC2016  # expanded on the hosts
describe_host='echo "$(hostname) $(</proc/sys/kernel/random/boot_id) $(readlink /proc/self/ns/{net,uts,ipc,mnt,pid} | xargs) $(ls -A /dev/shm)"'
hosts --hosts 3 --ranks-per-host 2 -- bash -c "$describe_host" >seen || fail "it does not run: $(<launcher.log)"
[[ $(sort seen | uniq -c | awk '{ print $1, $2 }' | xargs) == "2 n0 2 n1 2 n2" ]] || fail "ranks or hosts are mixed up: $(<seen)"
for field in 2 3 4 5 6 7; do
  [[ $(cut -d ' ' -f "$field" seen | sort -u | wc -l) == 3 ]] || fail "hosts share what they should not: $(<seen)"
done
nothing_is_left "after success"

status=0
hosts --hosts 2 -- bash -c '((OMPI_COMM_WORLD_RANK != 1)) || exit 7' || status=$?
((status == 7)) || fail "the program's exit status 7 becomes $status"
nothing_is_left "after a failure"

hosts --hosts 2 --rate 10mbit -- tc qdisc show dev eth0 >shaped
[[ $(grep -c "tbf .*rate 10Mbit" shaped) == 2 ]] || fail "links are not shaped: $(<shaped)"

mkdir output
# shellcheck disable=SC2016  # expanded by the ranks
say_rank='echo "rank $OMPI_COMM_WORLD_RANK runs"; exec sleep 60'
hosts --hosts 2 --ranks-per-host 2 --share "$work" --output output --when "^rank 3 runs" --then "kill 3" \
  -- bash -c "$say_rank" && fail "the loss of a rank goes unnoticed"
[[ -s output/fault ]] || fail "no fault was injected"
[[ $(grep -l runs output/rank.*) == *rank.3 ]] || fail "outputs are missing"
rm -r output
nothing_is_left "after an injected fault"

for signal in INT TERM KILL; do
  mkdir output
  # A shell has its background jobs ignore the interrupt.
  env --default-signal=INT "$scripts/hosts.sh" run --hosts 2 --output output \
    -- bash -c 'echo runs; exec sleep 60' >launcher.log 2>&1 </dev/null &
  job=$!
  until [[ $(cat output/rank.* 2>/dev/null | wc -l) == 2 ]]; do
    kill -0 "$job" 2>/dev/null || fail "it does not run: $(<launcher.log)"
    sleep 0.05
  done
  kill "-$signal" "$job"
  wait "$job" 2>/dev/null && fail "SIG$signal ends it with status 0"
  rm -r output
  nothing_is_left "after SIG$signal"
done

if "$scripts/hosts.sh" check --slurm; then
  status=0
  # shellcheck disable=SC2016  # expanded on the login node
  "$scripts/hosts.sh" slurm --hosts 2 -- bash -c '[[ $(srun -N 2 hostname | sort | xargs) == "n0 n1" ]] && exit 5' >launcher.log 2>&1 </dev/null || status=$?
  ((status == 5)) || fail "under Slurm: status $status: $(<launcher.log)"
  nothing_is_left "after Slurm"
  for signal in TERM KILL; do
    "$scripts/hosts.sh" slurm --hosts 2 --share "$work" -- bash -c "srun -N 2 bash -c 'touch $work/runs.\$(hostname); sleep 60'" >launcher.log 2>&1 </dev/null &
    job=$!
    until [[ -e runs.n0 && -e runs.n1 ]]; do
      kill -0 "$job" 2>/dev/null || fail "Slurm does not run: $(<launcher.log)"
      sleep 0.05
    done
    kill "-$signal" "$job"
    wait "$job" 2>/dev/null && fail "SIG$signal ends Slurm with status 0"
    rm runs.*
    nothing_is_left "after SIG$signal, under Slurm"
  done
fi

for run in 1 2 3; do
  "$scripts/hosts.sh" run --hosts 2 --share "$work" -- bash -c "echo run $run on \$(hostname)" \
    >"seen.$run" 2>launcher.log </dev/null &
done
wait
for run in 1 2 3; do
  [[ $(sort "seen.$run" | xargs) == "run $run on n0 run $run on n1" ]] || fail "runs beside each other clash: $(cat seen.*)"
  rm "seen.$run"
done
nothing_is_left "after several at once"
echo "hosts_test: passed"
