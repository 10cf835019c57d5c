# Part of cohort-run: `--restarts` for workers. Each try is a cohort-run of its own; this one decides what
# follows it, and keeps the folder of the snapshots, which outlive the workers.
# shellcheck shell=bash

# The status of a worker that ends because another one is lost (EX_TEMPFAIL). The launcher's is that of the worker
# whose end it hears of first, which may be this one.
readonly status_of_survivors=75

# The most seconds for a host to start a program on itself.
readonly seconds_to_answer=15

# Where the workers of a host keep their snapshots. Empty if there is no shared memory.
snapshots=""

# The hosts that other workers run on, one in a line. None where all is on this one.
other_hosts() {
  if [[ -n $hosts ]]; then
    tr , '\n' <<<"$hosts" | sed 's/:.*//' | awk '!seen[$0]++'
  elif [[ $launcher == srun || -n ${SLURM_JOB_ID:-} ]]; then
    scontrol show hostnames "${SLURM_JOB_NODELIST:-}" 2>/dev/null
  fi
}

# on_host HOST COMMAND...: runs it there, with a limit.
on_host() {
  if [[ $launcher == srun ]]; then
    timeout "$seconds_to_answer" srun --overlap --nodes=1 --ntasks=1 --nodelist="$1" "${@:2}"
  else
    # shellcheck source=launch/mpirun-env.sh
    (source "$here/mpirun-env.sh" && exec timeout "$seconds_to_answer" mpirun --host "$1" -n 1 "${@:2}")
  fi </dev/null >/dev/null 2>&1
}

remove_snapshots() {
  [[ -n $snapshots && -d $snapshots ]] || return 0
  local host cleaners=()
  for host in $(other_hosts); do
    on_host "$host" rm -rf -- "$snapshots" &
    cleaners+=($!)
  done
  ((${#cleaners[@]} == 0)) || wait "${cleaners[@]}" || true  # hosts that are lost
  rm -rf -- "$snapshots"
}

# Sets `snapshots`. What is there is removed at the end, and also when this process is killed: its processes
# hold a pipe, and when they all have ended, who reads it removes the folder.
keep_snapshots() {
  [[ -z ${COHORT_SNAPSHOT_FOLDER:-} ]] || return 0
  snapshots=$(mktemp -d "/dev/shm/cohort-snapshots.XXXXXXXXXX" 2>/dev/null) || { snapshots=""; return 0; }
  export COHORT_SNAPSHOT_FOLDER=$snapshots
  exec {alive}> >(trap '' INT TERM HUP QUIT USR2; cat >/dev/null; remove_snapshots)
}

# Those of the hosts that answer, as `hosts` and its numbers; sets `lost`, too.
find_lost_hosts() {
  local host tests=() names=()
  lost=()
  for host in $(other_hosts); do
    on_host "$host" true &
    tests+=($!)
    names+=("$host")
  done
  for host in "${!tests[@]}"; do wait "${tests[$host]}" || lost+=("${names[$host]}"); done
}

# The workers that a list such as n0:2,n1:2 has places for, without the hosts that are lost.
places_in() {
  tr , '\n' <<<"$1" | awk -F: -v lost=" ${lost[*]} " 'index(lost, " " $1 " ") == 0 { n += NF > 1 ? $2 : 1 } END { print n + 0 }'
}

# Leaves out the lost hosts, and changes `workers` in proportion. Returns 1, and says why, if too few are left.
shrink() {
  ((${#lost[@]})) || return 0
  local left all=() before
  if [[ -n $hosts ]]; then
    left=$(places_in "$hosts")
    before=$(lost=() && places_in "$hosts")
    hosts=$(tr , '\n' <<<"$hosts" | awk -F: -v lost=" ${lost[*]} " 'index(lost, " " $1 " ") == 0' | paste -sd ,)
  else
    mapfile -t all < <(other_hosts)
    before=${#all[@]} left=$((${#all[@]} - ${#lost[@]}))
  fi
  local fewer=$((workers * left / before)) names
  names=$(IFS=,; echo "${lost[*]}")
  say "there is no answer from ${names//,/, }"
  if ((fewer < min_workers || fewer == 0)); then
    say "the job ends: there would be $fewer workers in place of $workers, and --min-workers is $min_workers"
    return 1
  fi
  if [[ -z $hosts ]]; then
    excluded+=("${lost[@]}")
    export SLURM_JOB_NODELIST
    SLURM_JOB_NODELIST=$(printf '%s\n' "${all[@]}" | grep -vxFf <(printf '%s\n' "${lost[@]}") | paste -sd ,)
  fi
  workers=$fewer
}

say() { echo "cohort-run: $*" >&2; }

# The options of the next try.
options_of_try() {
  options=(--launcher "$launcher")
  [[ -z $workers ]] || options+=(-n "$workers")
  [[ -z $hosts ]] || options+=(--hosts "$hosts")
  [[ -z $threads ]] || options+=(--threads "$threads")
  [[ $binding == yes ]] || options+=(--no-binding)
  ((${#launcher_options[@]} == 0)) || options+=(--launcher-options "${launcher_options[*]}")
  if ((${#excluded[@]})) && [[ $launcher == srun ]]; then
    local list
    list=$(IFS=,; echo "${excluded[*]}")
    # For Slurm, which waits for the lost host, the step of the try before has not ended: this one runs beside it.
    options+=(--launcher-options "--overlap --exclude=$list --nodes=$(other_hosts | wc -l)")
  fi
}

# How the try has ended, in words.
cause_of() {
  local signal
  if (($1 > 128)) && signal=$(kill -l $(($1 - 128)) 2>/dev/null) && [[ -n $signal ]]; then
    echo "a worker was ended by SIG$signal"
  elif (($1 == status_of_survivors)); then
    echo "a worker was lost"
  else
    echo "$launcher ended with status $1"
  fi
}

# shellcheck disable=SC2317  # called by the traps
pass_to_try() {
  [[ $1 == CONT || $1 == USR2 ]] || interrupted=yes
  if [[ -n $try ]]; then kill "-$1" "$try" 2>/dev/null || true; fi
}

# The workers at first: those of the allocation, or the places of the hosts. Empty where the try counts cores.
count_workers() {
  if [[ -n $hosts ]]; then places_in "$hosts"; else echo "${SLURM_NTASKS:-}"; fi
}

# Runs the program, again and again, until it ends by itself or has been started too often. Its status is the
# last try's.
run_with_restarts() {
  local try="" interrupted=no count=0 status options excluded=() lost=() signal
  if [[ $dry_run == yes ]]; then
    options_of_try
    exec "$here/cohort-run" --dry-run "${options[@]}" -- "$@"
  fi
  workers=${workers:-$(count_workers)}
  min_workers=${min_workers:-$workers}
  keep_snapshots
  for signal in INT TERM HUP QUIT USR2 CONT; do
    # shellcheck disable=SC2064  # the name is expanded now
    trap "pass_to_try $signal" "$signal"
  done
  while true; do
    options_of_try
    export COHORT_RESTARTS=$count
    # A session of its own, as the launcher has one, so that an interrupt typed at the terminal arrives once.
    setpriv --pdeathsig TERM setsid env --default-signal=INT,QUIT "$here/cohort-run" "${options[@]}" -- "$@" <&0 &
    try=$!
    # A signal that came before there was a process to pass it to.
    [[ $interrupted == no ]] || kill -TERM "$try" 2>/dev/null || true
    while kill -0 "$try" 2>/dev/null; do
      wait "$try" || true  # until a signal comes
    done
    wait "$try" 2>/dev/null && status=0 || status=$?
    try=""
    if ((status == 0)) || [[ $interrupted == yes ]]; then break; fi
    find_lost_hosts
    if ((status <= 128 && status != status_of_survivors && ${#lost[@]} == 0)); then
      say "the job ended with status $status by itself, so it is not started again"
      break
    fi
    if ((count == restarts)); then
      say "$(cause_of "$status"); the job has been started again $count times, and --restarts permits no more"
      break
    fi
    shrink || break
    count=$((count + 1))
    say "$(cause_of "$status"); the job is started again${workers:+ with $workers workers}, $count of $restarts times"
  done
  if [[ -n $snapshots ]]; then exec {alive}>&-; fi
  remove_snapshots
  exit "$status"
}
