#!/usr/bin/env bash
# Compares `cohort-bench simulate` with SimGrid's SMPI, which simulates MPI programs over a network by a model: of the same
# latency, bandwidth and algorithms, one member on each node, microseconds of both, and Cohort's over SimGrid's. SimGrid
# takes its plain model (CM02, no factors), Cohort no gap between messages; both have no rendezvous, and move a call in one
# part. A call of Cohort's begins with a roll call, so SimGrid makes a barrier (Bruck's) before each call; the first
# messages of an all-reduce are under way during the roll call, so what they take of SimGrid's barrier is left out.
#
#   benchmarks/simulate/simgrid.sh [--nodes "4 16 64"] [--bytes "4096 65536 1048576"] [--latency-ns 2000] [--gbits 100]
#                                  [--programs FOLDER]
#
# Nodes are powers of two, bytes those of the largest buffer. Needs SimGrid 3.32 or newer (Debian: libsimgrid-dev).
# CSV on standard output: nodes,collective,bytes,algorithm,simgrid,cohort_us,simgrid_us,ratio; calls that Cohort's roll call
# carries, or for which SimGrid has no such algorithm, are left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

refuse() { echo "benchmarks/simulate/simgrid.sh: $*; see --help" >&2; exit 2; }

nodes="4 16 64" sizes="4096 65536 1048576" latency_ns=2000 gbits=100 programs=build/bin
while (($#)); do
  case $1 in
    --nodes) nodes=${2:-}; shift 2 ;;
    --bytes) sizes=${2:-}; shift 2 ;;
    --latency-ns) latency_ns=${2:-}; shift 2 ;;
    --gbits) gbits=${2:-}; shift 2 ;;
    --programs) programs=${2:-}; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
[[ "$nodes $sizes $latency_ns $gbits" =~ ^[0-9\ ]+$ ]] || refuse "--nodes, --bytes, --latency-ns and --gbits need numbers"
for count in $nodes; do ((count > 1 && (count & (count - 1)) == 0)) || refuse "--nodes: $count is no power of two"; done
[[ -x $programs/cohort-bench ]] || refuse "no cohort-bench in '$programs'"
for tool in smpicxx smpirun; do
  command -v "$tool" >/dev/null || refuse "there is no $tool; install SimGrid (Debian: apt-get install libsimgrid-dev)"
done
most=$(printf '%s\n' $nodes | sort -n | tail -1)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
smpicxx -O2 -std=c++20 benchmarks/simulate/simgrid_peer.cpp -o "$scratch/peer" >&2
# The latency of a way is that of two links.
cat >"$scratch/platform.xml" <<XML
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node" suffix="" radical="0-$((most - 1))" speed="1Gf" bw="$((gbits * 125))MBps"
           lat="$((latency_ns / 2))ns" sharing_policy="SPLITDUPLEX"/>
</platform>
XML

# peer_of COLLECTIVE ALGORITHM: SMPI's name for it, or nothing.
peer_of() {
  case $1:${2#two_level_} in
    all_reduce:recursive_doubling) echo rdb ;;
    all_reduce:ring) echo lr ;;
    all_reduce:halving_doubling) echo rab ;;
    reduce:binomial_reduce) echo binomial ;;
    reduce:halving_reduce) echo scatter_gather ;;
    broadcast:binomial) echo binomial_tree ;;
    broadcast:halving_broadcast) echo scatter_rdb_allgather ;;
    all_gather:bruck | all_to_all:bruck) echo bruck ;;
    all_gather:pairwise) echo spreading_simple ;;
    all_to_all:pairwise) echo basic_linear ;;
    gather:binomial_tree | scatter:binomial_tree) echo ompi_binomial ;;
    gather:pairwise | scatter:pairwise) echo ompi_basic_linear ;;
  esac
}

# first_bytes COLLECTIVE ALGORITHM BYTES NODES: of the message that goes with the roll call.
first_bytes() {
  case $1:${2#two_level_} in
    all_reduce:ring) echo $(($3 / $4)) ;;
    all_reduce:halving_doubling) echo $(($3 / 2)) ;;
    all_reduce:*) echo "$3" ;;
    *) echo 0 ;;
  esac
}

# simgrid NODES COLLECTIVE BYTES FIRST_BYTES PEER: microseconds of the barrier, the call, and the first message.
simgrid() {
  local collective=$2 eager=0
  # Cohort starts all messages of these at once, and SimGrid's roots wait for each message that is not eager. In
  # broadcasts it is the other way round: messages that were all sent at once would share the root's link.
  case $collective in gather | scatter) eager=2147483647 ;; esac
  case $collective in
    all_*) collective=${collective//_/} ;;
    broadcast) collective=bcast ;;
  esac
  timeout 300 smpirun -np "$1" -platform "$scratch/platform.xml" --cfg=network/model:CM02 --cfg=network/crosstraffic:0 \
    --cfg=network/TCP-gamma:0 --cfg=network/weight-S:0 --cfg=network/latency-factor:1 --cfg=network/bandwidth-factor:1 \
    --cfg=smpi/simulate-computation:no --cfg=smpi/wtime:0 --cfg=smpi/async-small-thresh:$eager \
    --cfg=smpi/send-is-detached-thresh:$eager --cfg=smpi/barrier:ompi_bruck "--cfg=smpi/$collective:$5" \
    -quiet "$scratch/peer" "$2" "$3" "$4" 2>"$scratch/errors" </dev/null | tail -1
}

echo "nodes,collective,bytes,algorithm,simgrid,cohort_us,simgrid_us,ratio"
no_limit=$((1 << 30))
for algorithms in all_reduce=recursive_doubling,reduce=binomial_reduce,broadcast=binomial \
  all_reduce=halving_doubling,reduce=halving_reduce,broadcast=halving_broadcast all_reduce=ring; do
  for bytes in $sizes; do
    while IFS=, read -r collective count _ _ algorithm cohort_us _; do
      peer=$(peer_of "$collective" "$algorithm")
      # What no setting names is the same each time; the ring is an all-reduce alone.
      case $algorithms:$collective in
        *=recursive_doubling,*:* | *:all_reduce | *=halving_reduce,*:reduce | *=halving_reduce,*:broadcast) ;;
        *) continue ;;
      esac
      [[ -n $peer && " $nodes " == *" $count "* ]] || continue
      first=$(first_bytes "$collective" "$algorithm" "$bytes" "$count")
      read -r barrier call exchange < <(simgrid "$count" "$collective" "$bytes" "$first" "$peer") || true
      [[ "$barrier $call $exchange" =~ ^[0-9.]+\ [0-9.]+\ [0-9.]+$ ]] || { cat "$scratch/errors" >&2; refuse "SimGrid has no time for $collective ($peer)"; }
      awk -v head="$count,$collective,$bytes,${algorithm#two_level_},$peer" -v cohort="$cohort_us" -v barrier="$barrier" \
        -v call="$call" -v exchange="$exchange" -v first="$first" 'BEGIN {
          hidden = first == 0 ? 0 : (exchange < barrier ? exchange : barrier)
          simgrid = barrier + call - hidden
          printf "%s,%.1f,%.1f,%.3f\n", head, cohort, simgrid, cohort / simgrid
        }'
    done < <(COHORT_LOG_LEVEL=error COHORT_ALGORITHM=$algorithms "$programs/cohort-bench" simulate --nodes "$most" --lanes 1 \
      --latency-ns "$latency_ns" --gbits "$gbits" --gap-ns 1 --eager-bytes $no_limit --message-bytes $no_limit \
      --bytes "$bytes" --format csv 2>/dev/null | tail -n +2)
  done
done
