#!/usr/bin/env bash
# Runs fault_victim over two virtual hosts with two ranks each and brings a fault about. Soon
# every survivor has said which worker on which host is lost, and has ended; mpirun may take
# longer and is ended then. Where the survivors wait in a collective, each host reports the call and who is lost.
#
#   tests/cluster/faults_over_hosts.sh PROGRAM PHASE ACTION
#
#   PHASE    what the ranks are doing, as fault_victim calls it: collective or compute
#   ACTION   as hosts.sh --then: kill R, stop R or cut N
#
# A worker that writes to a connection in the moment in which its other end dies may be ended by Open MPI's
# TCP transport ("ob1 ... FATAL"), and mpirun then ends the rest, before the news has come. Then it is enough
# that one survivor has named the lost worker.
set -euo pipefail
hosts=$(dirname "${BASH_SOURCE[0]}")/hosts.sh
program=$1 phase=$2 action=$3
readonly limit_seconds=10

"$hosts" check || exit

work=$(mktemp -d)
job=""
end_job() {
  [[ -z $job ]] || kill "$job" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap end_job EXIT
trap 'exit 143' TERM INT

fail() {
  echo "faults: $phase, $action: $*" >&2
  (cd "$work" && tail -n 30 launcher rank.*) >&2
  exit 1
}

# Which workers are lost, and for which survivors: a cut has survivors on both sides.
survivors() { for rank in 0 1 2 3; do [[ $action =~ ^(kill|stop)\ $rank$ ]] || echo "$rank"; done; }
lost_for() {
  case $action in
    kill\ *) echo "worker ${action#* } \(host n1, pid [0-9]+\) is gone" ;;
    stop\ *) echo "worker ${action#* } \(host n1, pid [0-9]+\) is out of reach" ;;
    cut\ 1) if (($1 < 2)); then echo "worker 2 \(host n1, .* is out of reach"; else echo "worker 0 \(host n0, .* is out of reach"; fi ;;
    *) fail "not a fault of the second host" ;;
  esac
}
has_named_the_lost() { grep -Eq "worker $1( |:).*$(lost_for "$1")" "$work/rank.$1"; }
mpi_gave_up() { grep -Eqs 'pml_ob1_[a-z]+\.c:[0-9]+ FATAL' "$work"/rank.*; }
has_ended() { flock -n "$work/rank.$1" true; }

# The deadline of a collective shall not be what ends them.
COHORT_COLLECTIVE_TIMEOUT_SECONDS=60 "$hosts" run --hosts 2 --ranks-per-host 2 \
  --output "$work" --when "all are running" --then "$action" \
  -- "$program" "$phase" none none >"$work/launcher" 2>&1 &
job=$!
for ((i = 0; i < 300; i++)); do
  [[ ! -s $work/fault ]] || break
  kill -0 "$job" 2>/dev/null || fail "the job has ended before the fault"
  sleep 0.1
done
[[ -s $work/fault ]] || fail "the workers are not running after 30 s"

microseconds_since_fault() { echo $((${EPOCHREALTIME/./} - $(<"$work/fault"))); }
named=()
for rank in $(survivors); do
  until has_ended "$rank"; do
    (($(microseconds_since_fault) < limit_seconds * 1000000)) ||
      fail "worker $rank has not ended after $limit_seconds s"
    sleep 0.1
  done
  if has_named_the_lost "$rank"; then
    named+=("$rank")
  else
    mpi_gave_up || fail "worker $rank does not name who is lost"
  fi
done
((${#named[@]} > 0)) || fail "no worker names who is lost"

# has_reported HOST RANK RANK: the five lines of a host, which either of its ranks may have printed.
has_reported() {
  local host=$1 lines lost
  lines=$(grep -h "^cohort report: " "$work/rank.$2" "$work/rank.$3") || return 1
  lost=$(lost_for "$2")
  lost=${lost#worker } lost=${lost%%,*}  # `2 \(host n1`
  (($(wc -l <<<"$lines") == 5)) &&
    grep -Eq "communicator 1 of 4 members, seen by ranks $2-$3 \(host $host\) failed: all_reduce #[0-9]+: worker $lost," <<<"$lines" &&
    grep -Eq "in a call: .*host $host\) in all_reduce #[0-9]+ \(float32\[1000000\], sum\)" <<<"$lines" &&
    grep -Eq "died: .*rank ${lost%% *} \(worker ${lost%% *}, ${lost#* \\(}\)" <<<"$lines"
}
# As soon as one host has failed, mpirun ends the others, perhaps before they have come to report it.
was_ended() { grep -Eqs "^cohort: worker ($2|$3) .* ends" "$work/rank.$2" "$work/rank.$3"; }
if [[ $phase == collective ]]; then
  reports=0
  for place in "n0 0 1" "n1 2 3"; do
    read -r host first last <<<"$place"
    if has_reported "$host" "$first" "$last"; then
      reports=$((reports + 1))
    else
      mpi_gave_up || was_ended "$host" "$first" "$last" || fail "host $host does not report what it waited in, and for whom"
    fi
  done
  ((reports > 0)) || mpi_gave_up || fail "no host reports what it waited in, and for whom"
fi
echo "faults: $phase, $action: workers ${named[*]} have said who is lost, all have ended after" \
  "$(($(microseconds_since_fault) / 1000)) ms"
