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

# The hosts of an allocation, of all parts of a job that has several. Sets `host_count` and `cores`, too.
prepare_srun_of_roles() {
  local group nodes
  [[ $(srun --mpi=list 2>&1) == *pmix* ]] || refuse "this srun has no pmix; use --launcher mpirun"
  cores=${SLURM_CPUS_ON_NODE:-$cores}
  # A supervisor that is lost shall not end the others.
  command=(srun --mpi=pmix --kill-on-bad-exit=0 --no-kill --ntasks-per-node=1)
  if [[ -n ${SLURM_HET_SIZE:-} ]]; then
    host_count=0
    for ((group = 0; group < SLURM_HET_SIZE; group++)); do
      nodes=SLURM_JOB_NUM_NODES_HET_GROUP_$group
      host_count=$((host_count + ${!nodes:-1}))
    done
    command+=(--het-group="$(seq -s , 0 $((SLURM_HET_SIZE - 1)))")
  else
    host_count=${SLURM_JOB_NUM_NODES:-1}
    command+=(--nodes="$host_count" --ntasks="$host_count")
  fi
  # Without the plugin srun binds nothing, and complains about the option.
  if [[ $(scontrol show config 2>/dev/null) =~ TaskPlugin[[:space:]]*=[^$'\n']*affinity ]]; then command+=(--cpu-bind=none); fi
}

# Sets `command` to one supervisor per host, and `threads`, those of a task.
prepare_roles() {
  local supervise host_count=1 cores tasks
  supervise=$(find_supervise) || refuse "there is no cohort-supervise; build it, or add its folder to PATH"
  cores=$(count_cores)
  case $launcher in
    none) ((!${#launcher_options[@]})) || refuse "--launcher-options: no launcher is needed on one machine" ;;
    mpirun)
      # shellcheck source=launch/mpirun-env.sh
      source "$here/mpirun-env.sh"
      command=(mpirun --map-by ppr:1:node --bind-to none)
      if [[ -n $hosts ]]; then
        host_count=$(tr , '\n' <<<"$hosts" | sort -u | wc -l)
        command+=(-n "$host_count" --host "$hosts")
      elif [[ -n ${SLURM_JOB_ID:-} ]]; then
        host_count=${SLURM_JOB_NUM_NODES:-1}
      else
        command+=(-n 1)
      fi
      name_variables ;;
    srun) prepare_srun_of_roles ;;
  esac
  tasks=$((($(tr , '\n' <<<"$roles" | sed 's/.*=//' | paste -sd+) + host_count - 1) / host_count))
  threads=${threads:-$((cores > tasks ? cores / tasks : 1))}
  command+=("${launcher_options[@]}" "$supervise" --roles "$roles" --restarts "${restarts:-0}" --)
}
