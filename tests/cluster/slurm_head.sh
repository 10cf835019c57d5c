#!/usr/bin/env bash
# Process 1 of a virtual cluster with Slurm, started by hosts.sh in namespaces of its own: the
# switch, the controller, and the login node where the command runs.
#
#   slurm_head.sh HOSTS RATE COMMAND...
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/cluster/private_folders.sh
source "$scripts/private_folders.sh"
# shellcheck source=tests/cluster/network.sh
source "$scripts/network.sh"

hosts=$1 rate=$2
shift 2
# The cluster's file system, in memory: hosts inherit the mount. It hides a folder in which no checkout lies.
readonly shared=/var/spool
readonly cpus_per_host=4
readonly gpus_per_host=2  # devices that Slurm takes for them
readonly seconds_to_start=20

write_configuration() {
  local host
  # Nothing here needs control groups, and this choice asks for none.
  echo "CgroupPlugin=cgroup/v1" >"$shared/cgroup.conf"
  printf 'Name=gpu File=%s\n' /dev/null /dev/zero >"$shared/gres.conf"
  cat >"$SLURM_CONF" <<END
ClusterName=virtual
SlurmctldHost=head($network.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$shared/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$shared/state
SlurmdSpoolDir=$shared/spool.%n
SlurmctldPidFile=$shared/slurmctld.pid
SlurmdPidFile=$shared/slurmd.%n.pid
SlurmctldLogFile=$shared/log/slurmctld
SlurmdLogFile=$shared/log/slurmd.%n
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=1000
MpiDefault=pmix
GresTypes=gpu
ReturnToService=2
SlurmdTimeout=60
KillWait=3
END
  for ((host = 0; host < hosts; host++)); do
    mkdir "$shared/spool.n$host"
    echo "NodeName=n$host NodeAddr=$network.$((host + 1)) CPUs=$cpus_per_host RealMemory=1024 Gres=gpu:$gpus_per_host State=UNKNOWN"
  done >>"$SLURM_CONF"
  echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP" >>"$SLURM_CONF"
}

wait_until() {
  local end=$((SECONDS + seconds_to_start))
  until "$@"; do
    ((SECONDS < end)) || { echo "slurm_head: waited in vain for: $*" >&2; tail -n 20 "$shared"/log/* >&2; exit 1; }
    sleep 0.05
  done
}
# shellcheck disable=SC2317  # called by wait_until
controller_answers() { [[ $(scontrol ping 2>/dev/null) == *"is UP"* ]]; }
# shellcheck disable=SC2317
all_are_idle() { [[ $(sinfo -h -N -t idle -o %N 2>/dev/null | wc -l) == "$hosts" ]]; }

start_slurm() {
  local host
  mount -t tmpfs -o mode=755 tmpfs "$shared"
  mkdir -m 755 "$shared"/{munge,log,state}
  export SLURM_CONF=$shared/slurm.conf
  write_configuration
  (umask 077 && head -c 128 /dev/urandom >"$shared/munge/key")
  munged --force --foreground --num-threads=2 --key-file="$shared/munge/key" --seed-file="$shared/munge/seed" \
    --socket="$shared/munge/socket" --pid-file="$shared/munge/pid" >"$shared/log/munged" 2>&1 &
  wait_until test -S "$shared/munge/socket"
  slurmctld -D >"$shared/log/slurmctld.output" 2>&1 &
  for ((host = 0; host < hosts; host++)); do
    "$agent" "n$host" slurmd -D -N "n$host" >"$shared/log/slurmd.n$host.output" 2>&1 &
  done
  wait_until controller_answers
  wait_until all_are_idle
}

hostname head
make_private_folders
build_network "$hosts" "$rate"
start_slurm
set_up_open_mpi
status=0
"$@" || status=$?
exit "$status"
