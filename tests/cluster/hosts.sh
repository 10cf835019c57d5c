#!/usr/bin/env bash
# Runs an MPI program over several virtual hosts on this machine: namespaces that differ to
# MPI and to Cohort as hosts do, joined by a bridge. Needs root, iproute2 and Open MPI 4.
#
#   tests/cluster/hosts.sh run [OPTION ...] -- PROGRAM [ARGUMENT ...]      under mpirun
#   tests/cluster/hosts.sh slurm [OPTION ...] -- COMMAND [ARGUMENT ...]    on the login node of a
#                                                                          cluster with Slurm
#   tests/cluster/hosts.sh check [--rate RATE] [--slurm]    only says whether this machine permits it
#
#   --hosts N            the hosts n0, n1, ...; default 2
#   --ranks-per-host N   with `run`: default 1; ranks 0 to N-1 are on n0, and so on
#   --rate RATE          shapes every host's link in both directions, as in 1gbit
#   --share FOLDER       keeps a folder below /tmp visible on all hosts, each of which has a
#                        /tmp of its own; may be repeated, and is done for the current folder,
#                        the program's and that of these scripts
#   --output FOLDER      with `run`: rank R writes to FOLDER/rank.R and locks that file while it lives
#   --when PATTERN       once a line of a rank matches this regular expression (needs --output) ...
#   --then ACTION        ... `kill R` or `stop R`, which is about a rank, or `cut N`, which unplugs
#                        host N; FOLDER/fault then holds the time in microseconds
#
# The exit status is mpirun's or the command's, or 77 where this machine does not permit namespaces.
#
# Everything lives in namespaces below one process, and its files in file systems of memory
# that only they see. So when that process ends, in whatever way, nothing is left, and runs
# beside each other have no name in common.
set -euo pipefail
scripts=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
readonly cannot_run=77

refuse() { echo "hosts: $*; see --help" >&2; exit 2; }
is_installed() { [[ -x $(type -P "$1") ]]; }  # type also finds what may not be run
skip() { echo "hosts: skipped: $*" >&2; exit "$cannot_run"; }

hosts=2 ranks_per_host=1 rate="" output="" pattern="" action="" shares=() slurm=no
command=${1:-}
shift || true
case $command in
  run | check) ;;
  slurm) slurm=yes ;;
  -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
  *) refuse "the first argument is run, slurm or check" ;;
esac
while (($#)); do
  case $1 in
    --hosts) hosts=${2:-}; shift 2 ;;
    --ranks-per-host) ranks_per_host=${2:-}; shift 2 ;;
    --rate) rate=${2:-}; shift 2 ;;
    --slurm) slurm=yes; shift ;;
    --share) shares+=("$(realpath "${2:-}")"); shift 2 ;;
    --output) output=$(realpath "${2:-}"); shares+=("$output"); shift 2 ;;
    --when) pattern=${2:-}; shift 2 ;;
    --then) action=${2:-}; shift 2 ;;
    --) shift; break ;;
    *) refuse "unknown option $1" ;;
  esac
done

# What head.sh will do, tried in one go.
# shellcheck disable=SC2016  # expanded in the namespaces
readonly trial='
  mount -t tmpfs tmpfs /run
  ip link add bridge0 type bridge
  ip link add wire type veth peer name other_end
  if [[ -n $1 ]]; then tc qdisc add dev wire root tbf rate "$1" burst 256k latency 50ms; fi'
readonly namespaces=(unshare --net --uts --ipc --mount --pid --fork --kill-child --mount-proc)

((EUID == 0)) || skip "virtual hosts need root"
for tool in ip tc unshare setpriv mpirun; do
  is_installed "$tool" || skip "$tool is not installed; launch/setup.sh test installs it"
done
[[ $(mpirun --version 2>/dev/null) == *"(Open MPI) 4."* ]] || skip "the launch agent is for the mpirun of Open MPI 4"
why=$("${namespaces[@]}" bash -ec "$trial" trial "$rate" 2>&1) || skip "virtual hosts are not permitted here: $why"
if [[ $slurm == yes ]]; then
  for tool in slurmctld slurmd srun sbatch munged; do
    is_installed "$tool" || skip "$tool is not installed; launch/setup.sh test installs it"
  done
fi
[[ $command != check ]] || exit 0

[[ $hosts =~ ^[1-9]$|^[1-5][0-9]$ ]] || refuse "--hosts is a number from 1 to 59"
[[ $ranks_per_host =~ ^[1-9][0-9]*$ ]] || refuse "--ranks-per-host is a number from 1"
(($#)) || refuse "which program?"
if [[ -n $pattern$action ]]; then
  [[ -n $pattern && -n $action && -n $output ]] || refuse "--when, --then and --output belong together"
  [[ $action =~ ^(kill|stop|cut)\ [0-9]+$ ]] || refuse "--then '$action' is none of kill R, stop R, cut N"
fi
program=$(type -P "$1") || refuse "there is no program $1"
program=$(realpath "$program")
[[ $(dirname "$program") != /tmp ]] || refuse "$program would be hidden by the /tmp of each host; move it to a folder"
shift

shares+=("$PWD" "$(dirname "$program")" "$scripts")
export HOSTS_SHARED_FOLDERS
HOSTS_SHARED_FOLDERS=$(printf '%s\n' "${shares[@]}")

if [[ $command == slurm ]]; then
  head=("$scripts/slurm_head.sh" "$hosts" "$rate")
else
  head=("$scripts/head.sh" "$hosts" "$ranks_per_host" "$rate" "$output" "$pattern" "$action")
fi

# When this script is killed, so is `unshare`, and with it all the rest. A signal ends process 1
# of the namespaces, and `unshare` returns when everything in there has ended.
setpriv --pdeathsig KILL "${namespaces[@]}" "${head[@]}" "$program" "$@" </dev/null &
everything=$!
# shellcheck disable=SC2317  # called by the traps
end_everything() {
  trap '' INT TERM HUP
  # Before `unshare` has started process 1, there is only itself.
  pkill -KILL --parent "$everything" || kill -KILL "$everything" 2>/dev/null || true
  wait "$everything" || true
  exit "$1"
}
trap 'end_everything 130' INT
trap 'end_everything 143' TERM
trap 'end_everything 129' HUP
status=0
wait "$everything" || status=$?
exit "$status"
