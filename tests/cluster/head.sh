#!/usr/bin/env bash
# Process 1 of a virtual cluster, started by hosts.sh in namespaces of its own. It is the
# switch that the hosts' cables lead to, and the login node where mpirun runs.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/cluster/private_folders.sh
source "$scripts/private_folders.sh"
# shellcheck source=tests/cluster/network.sh
source "$scripts/network.sh"

hosts=$1 ranks_per_host=$2 rate=$3 output=$4 pattern=$5 action=$6
shift 6

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
build_network "$hosts" "$rate"
set_up_open_mpi

command=("$@")
if [[ -n $output ]]; then
  for ((rank = 0; rank < hosts * ranks_per_host; rank++)); do : >"$output/rank.$rank"; done
  command=("$scripts/rank.sh" "$output" "${command[@]}")
fi
if [[ -n $action ]]; then inject_fault & fi

seats=$(for ((host = 0; host < hosts; host++)); do printf 'n%d:%d,' "$host" "$ranks_per_host"; done)
status=0
mpirun -np $((hosts * ranks_per_host)) --host "${seats%,}" \
  --mca plm rsh --mca plm_rsh_agent "$agent" --mca plm_rsh_no_tree_spawn 1 \
  --mca orte_leave_session_attached 1 \
  "${command[@]}" || status=$?
exit "$status"
