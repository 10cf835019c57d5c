#!/usr/bin/env bash
# Compares `cohort-bench simulate` with real calls over 2 and 4 virtual hosts of this machine (needs root), whose links
# have 1 Gbit/s: microseconds of both, and simulated over real. The latency is half of what a message needs there and
# back between two hosts, measured first. All-reduces, reduces and broadcasts take one algorithm on both sides: links that
# are shaped let a burst pass at full speed, which misleads the probe.
#
#   benchmarks/simulate/over_hosts.sh [--hosts "2 4"] [--bytes "65536 262144 1048576"] [--programs FOLDER]
#
# CSV on standard output: hosts,collective,bytes,algorithm,real_us,simulated_us,ratio
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

refuse() { echo "benchmarks/simulate/over_hosts.sh: $*; see --help" >&2; exit 2; }

hosts="2 4" sizes="65536 262144 1048576" programs=build/bin
while (($#)); do
  case $1 in
    --hosts) hosts=${2:-}; shift 2 ;;
    --bytes) sizes=${2:-}; shift 2 ;;
    --programs) programs=${2:-}; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
[[ "$hosts $sizes" =~ ^[0-9\ ]+$ ]] || refuse "--hosts and --bytes need numbers"
[[ -x $programs/cohort-bench ]] || refuse "no cohort-bench in '$programs'"
tests/cluster/hosts.sh check --rate 1gbit || exit

export COHORT_ALGORITHM=all_reduce=halving_doubling,reduce=halving_reduce,broadcast=halving_broadcast
export COHORT_LOG_LEVEL=error

# real HOSTS COLLECTIVE BYTES: its algorithm and the median in microseconds.
real() {
  tests/cluster/hosts.sh run --hosts "$1" --rate 1gbit -- "$programs/cohort-bench" "$2" --sizes "$3" \
    --iterations 50 --peer none --no-check --format csv 2>/dev/null </dev/null | awk -F, '$2 == "cohort" { print $3, $11 }'
}

read -r _ latency_us <<<"$(real 2 all-reduce 4)"
echo "latency between two hosts: $latency_us us" >&2
echo "hosts,collective,bytes,algorithm,real_us,simulated_us,ratio"
for count in $hosts; do
  for bytes in $sizes; do
    while IFS=, read -r collective _ _ _ algorithm simulated _; do
      read -r taken measured <<<"$(real "$count" "${collective//_/-}" "$bytes")"
      [[ $taken == "$algorithm" ]] || algorithm+=" (real: $taken)"
      awk -v head="$count,$collective,$bytes,$algorithm" -v real="$measured" -v simulated="$simulated" \
        'BEGIN { printf "%s,%.1f,%.1f,%.3f\n", head, real, simulated, simulated / real }'
    done < <("$programs/cohort-bench" simulate --nodes "$count" --lanes 1 --gbits 1 --bytes "$bytes" \
      --latency-ns "$(awk -v us="$latency_us" 'BEGIN { print int(us * 1000) }')" --eager-bytes 65536 --format csv 2>/dev/null |
      awk -F, -v nodes="$count" '$2 == nodes')
  done
done
