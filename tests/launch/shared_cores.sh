#!/usr/bin/env bash
# If workers and devices outnumber the cores, there is one line for each of the two, which says how it is
# silenced; otherwise none.
#
#   shared_cores.sh MULTI_WORKER_MIRRORED LAUNCHER...     N in LAUNCHER stands for the number of ranks
set -euo pipefail
program=$1
shift
launcher=" $* "
export OMPI_MCA_hwloc_base_binding_policy=none

fail() { echo "shared_cores: $*" >&2; exit 1; }

# said RANKS DEVICES [VARIABLE=VALUE...]: what the workers say on a single core.
core=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
said() {
  local ranks=$1 devices=$2 command
  shift 2
  read -ra command <<<"${launcher/ N / $ranks }"
  env "$@" taskset -c "$core" "${command[@]}" "$program" "$devices" 2>&1 </dev/null ||
    fail "$ranks workers with $devices devices fail"
}
# times COUNT TEXT OUTPUT
times() {
  [[ $(grep -cF "$2" <<<"$3") == "$1" ]] || fail "expected '$2' $1 times in: $3"
}

output=$(said 1 1)
times 0 "run slower" "$output"

output=$(said 3 1)
times 1 "worker 0: 3 workers on 1 core of host $(hostname): they take turns" "$output"
times 0 "CPU devices" "$output"

output=$(said 2 2)
times 1 "worker 0: 2 workers on 1 core of host $(hostname): they take turns" "$output"
times 1 "worker 0: MultiWorkerMirroredStrategy: 2 CPU devices on 1 core: replicas take turns" "$output"

# Who is not bound by Cohort shares all the same.
times 1 "2 workers on 1 core" "$(said 2 1 COHORT_BIND_CORES=false)"

times 0 "run slower" "$(said 2 2 COHORT_LOG_LEVEL=error)"
echo "shared_cores: passed"
