#!/usr/bin/env bash
# Process 1 of a virtual cluster, started by hosts.sh in namespaces of its own. It is the
# switch that the hosts' cables lead to, and the login node where mpirun runs.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/cluster/private_folders.sh
source "$scripts/private_folders.sh"

hosts=$1 ranks_per_host=$2 rate=$3 output=$4 pattern=$5 action=$6
shift 6
readonly network=10.99.0
readonly shape=(root tbf rate "$rate" burst 256k latency 50ms)

connect_host() {
  local host=n$1
  ip netns add "$host"
  ip link add "$host" type veth peer name eth0 netns "$host"
  ip link set "$host" master switch up
  ip -n "$host" addr add "$network.$(($1 + 1))/24" dev eth0
  ip -n "$host" link set eth0 up
  ip -n "$host" link set lo up
  [[ -n $rate ]] || return 0
  tc qdisc add dev "$host" "${shape[@]}"
  tc -n "$host" qdisc add dev eth0 "${shape[@]}"
}

build_network() {
  ip link set lo up
  ip link add switch type bridge
  ip addr add "$network.254/24" dev switch
  ip link set switch up
  {
    echo "127.0.0.1 localhost"
    echo "$network.254 head"
  } >/run/etc-hosts
  for ((host = 0; host < hosts; host++)); do
    connect_host "$host"
    echo "$network.$((host + 1)) n$host" >>/run/etc-hosts
  done
  mount --bind /run/etc-hosts /etc/hosts
}

# A rank's process and what it has started: the head's /proc shows the processes of all hosts.
# Some process always ends between being listed and being read, of which grep makes an error.
processes_of_rank() { { grep -lszx "OMPI_COMM_WORLD_RANK=$1" /proc/[0-9]*/environ || true; } | cut -d / -f 3; }

inject_fault() {
  grep -qm1 -E "$pattern" < <(tail -qf -n +1 "$output"/rank.*)
  case $action in
    kill\ *) processes_of_rank "${action#* }" | xargs kill -KILL ;;
    stop\ *) processes_of_rank "${action#* }" | xargs kill -STOP ;;
    cut\ *) ip link set "n${action#* }" down ;;
  esac
  echo "${EPOCHREALTIME/./}" >"$output/fault"
}

hostname head
make_private_folders
build_network

command=("$@")
if [[ -n $output ]]; then
  for ((rank = 0; rank < hosts * ranks_per_host; rank++)); do : >"$output/rank.$rank"; done
  command=("$scripts/rank.sh" "$output" "${command[@]}")
fi
if [[ -n $action ]]; then inject_fault & fi

# The hosts share this machine's cores, so ranks are bound to none of them and yield when idle.
seats=$(for ((host = 0; host < hosts; host++)); do printf 'n%d:%d,' "$host" "$ranks_per_host"; done)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
status=0
mpirun -np $((hosts * ranks_per_host)) --host "${seats%,}" --bind-to none --mca mpi_yield_when_idle 1 \
  --mca plm rsh --mca plm_rsh_agent "$scripts/agent.sh" --mca plm_rsh_no_tree_spawn 1 \
  --mca orte_leave_session_attached 1 \
  --mca oob_tcp_if_include "$network.0/24" --mca btl_tcp_if_include "$network.0/24" \
  --mca pml ob1 --mca btl self,vader,tcp \
  "${command[@]}" || status=$?
exit "$status"
