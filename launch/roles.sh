# shellcheck shell=bash
# Sourced by cohort-run for --roles: checks the list, and makes the command that starts one cohort-supervise on
# each host. Uses what cohort-run has read from its command line.
# shellcheck disable=SC2154

# Each entry of a list such as chief=1,worker=2 in turn.
check_roles() {
  local entry job count seen=" "
  [[ $1 =~ ^[^,]+(,[^,]+)*$ ]] || refuse "--roles '$1' is no list as in chief=1,worker=2,ps=2"
  while IFS= read -r entry; do
    job=${entry%%=*} count=${entry#*=}
    [[ $job =~ ^(chief|worker|ps|evaluator)$ ]] || refuse "--roles: there is no job '$job'; jobs are chief, worker, ps and evaluator"
    [[ $entry == *=* && $count =~ ^[1-9][0-9]{0,4}$ ]] || refuse "--roles: '$entry' needs a number from 1, as in $job=1"
    [[ $seen != *" $job "* ]] || refuse "--roles: the job '$job' is listed twice"
    [[ $count == 1 || $job == worker || $job == ps ]] || refuse "--roles: there can be one $job, and not $count"
    seen+="$job "
  done < <(tr , '\n' <<<"$1")
  [[ $seen == *" chief "* || $seen == *" worker "* ]] || refuse "--roles: neither a chief nor a worker is listed"
}

# In an installation and in a checkout, or else wherever the shell finds it.
find_supervise() {
  local file
  for file in "$here/../../../bin/cohort-supervise" "$here/../build/bin/cohort-supervise"; do
    if [[ -x $file ]]; then realpath "$file"; return; fi
  done
  type -P cohort-supervise
}

# Sets `command` for all hosts of an allocation, and `host_count` and `cores`.
prepare_srun_of_roles() {
  local group part nodes options
  [[ $(srun --mpi=list 2>&1) == *pmix* ]] || give_up "this srun has no pmix; use --launcher mpirun"
  cores=${SLURM_CPUS_ON_NODE:-$cores}
  # A supervisor or a host that is lost shall not end the others.
  options=(--mpi=pmix --kill-on-bad-exit=0 --no-kill)
  # Without the plugin srun binds nothing, and complains about the option.
  if [[ $(scontrol show config 2>/dev/null) =~ TaskPlugin[[:space:]]*=[^$'\n']*affinity ]]; then options+=(--cpu-bind=none); fi
  options+=("${launcher_options[@]}")
  if [[ -z ${SLURM_HET_SIZE:-} ]]; then
    host_count=${SLURM_JOB_NUM_NODES:-1}
    command=(srun "${options[@]}" --nodes="$host_count" --ntasks="$host_count" --ntasks-per-node=1 "$@")
    return
  fi
  # A heterogeneous job: its parts in one step, each with options of its own.
  host_count=0
  command=(srun)
  for ((group = 0; group < SLURM_HET_SIZE; group++)); do
    part=SLURM_JOB_NUM_NODES_HET_GROUP_$group
    nodes=${!part:-1}
    host_count=$((host_count + nodes))
    if ((group)); then command+=(:); fi
    command+=("${options[@]}" --het-group="$group" --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 "$@")
  done
}

# Sets `command` for mpirun, and `host_count`.
prepare_mpirun_of_roles() {
  # shellcheck source=launch/mpirun-env.sh
  source "$here/mpirun-env.sh"
  # A supervisor or a host that is lost shall not end the others.
  export OMPI_MCA_orte_enable_recovery=1
  command=(mpirun --map-by ppr:1:node --bind-to none)
  if [[ -n $hosts ]]; then
    host_count=$(tr , '\n' <<<"$hosts" | sort -u | wc -l)
    command+=(-n "$host_count" --host "$hosts")
  elif [[ -n ${SLURM_JOB_ID:-} ]]; then
    host_count=${SLURM_JOB_NUM_NODES:-1}
  else
    command+=(-n 1)
  fi
  name_variables
  command+=("${launcher_options[@]}" "$@")
}

# prepare_roles PROGRAM...: sets `command` to one supervisor per host, and `threads`, those of a task.
prepare_roles() {
  local supervise host_count=1 cores tasks
  supervise=$(find_supervise) || give_up "there is no cohort-supervise; build it, or add its folder to PATH"
  set -- "$supervise" --roles "$roles" --restarts "${restarts:-0}" --copies "${copies:-2}" -- "$@"
  cores=$(count_cores)
  case $launcher in
    none)
      ((!${#launcher_options[@]})) || refuse "--launcher-options: no launcher is needed on one machine"
      command=("$@") ;;
    mpirun) prepare_mpirun_of_roles "$@" ;;
    srun) prepare_srun_of_roles "$@" ;;
  esac
  tasks=$((($(tr , '\n' <<<"$roles" | sed 's/.*=//' | paste -sd+) + host_count - 1) / host_count))
  threads=${threads:-$((cores > tasks ? cores / tasks : 1))}
}
