#!/usr/bin/env bash
# What to run first on a machine with an NVIDIA GPU: ten commands, each with its limit of time and what is expected
# of it. One GPU is enough, and the whole takes less than 45 minutes. It builds nothing: only the programs of a
# build's bin/ are needed, with the libraries that they link, and NCCL (COHORT_NCCL_LIBRARY names one).
#
#   tests/gpu_first.sh [--build DIR] [--only N[,N...]] [--logs DIR] [--list]
#
#   --build DIR   the build folder; default: build/ of this checkout
#   --only N,...  only these commands
#   --logs DIR    where the outputs go; default: a new folder in /tmp, which stays
#   --list        say what the commands are and end
#
# Ends with 0 if all is as expected, 1 if not, 2 for wrong arguments, 77 where there is no GPU or no build.
# shellcheck disable=SC2317  # the commands are called by name
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

refuse() { echo "gpu_first.sh: $*; see --help" >&2; exit 2; }
skip() { echo "gpu_first.sh: skipped: $*"; exit 77; }

build=$root/build logs='' only='' list=no
while (($#)); do
  case $1 in
    --build) [[ -n ${2:-} ]] || refuse "--build needs a folder"; build=$2; shift 2 ;;
    --only) [[ ${2:-} =~ ^([1-9]|10)(,([1-9]|10))*$ ]] || refuse "--only needs numbers from 1 to 10"; only=$2; shift 2 ;;
    --logs) [[ -n ${2:-} ]] || refuse "--logs needs a folder"; logs=$2; shift 2 ;;
    --list) list=yes; shift ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done

# ---- what the commands are made of

# has PROGRAM: of the machine.
has() { command -v "$1" >/dev/null; }
# says PATTERN FILE: an expectation.
says() { grep -Eq -- "$1" "$2" || { echo "expected: $1"; return 1; }; }
# missing WHAT: the rest of the command is left out.
missing() { echo "left out: $*"; return 78; }
tests_of_one_process=(cuda_devices cuda_contexts cuda_streams cuda_graph gpu_tensor gpu_arithmetic gpu_exchange gpu_strategies)
# two_ranks PROGRAM ARGUMENT...: on one GPU, which NCCL takes for GPUs of two hosts.
two_ranks() {
  has mpirun || { missing "no mpirun"; return; }
  # shellcheck disable=SC2016  # each rank's own
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout --signal=KILL "${limit:-120}" \
    mpirun --oversubscribe "${launcher[@]}" -n 2 bash -c 'export NCCL_HOSTID=$OMPI_COMM_WORLD_RANK NCCL_SOCKET_IFNAME=lo; exec "$@"' - "$@"
}
launcher=()

# ---- the commands: function, limit in seconds, expectation

what_is_there() {
  if has nvidia-smi; then nvidia-smi -L || return; fi
  "$bin/cohort-info" --format json || return
  says '"memory_pools": true' "$log" && says '"path": ".*nccl' "$log"
}
tests_on_gpus() {
  local name failed=0
  for name in "${tests_of_one_process[@]}"; do
    "$bin/${name}_test" || { echo "failed: $name"; failed=1; }
  done
  return "$failed"
}
sanitizer() {
  has compute-sanitizer || { missing "no compute-sanitizer"; return; }
  local name
  for name in gpu_arithmetic gpu_tensor; do
    compute-sanitizer --tool memcheck --error-exitcode 9 "$bin/${name}_test" || return
    compute-sanitizer --tool initcheck --error-exitcode 9 "$bin/${name}_test" || return
  done
}
graphs() { "$bin/cuda_graph_test" --gtest_repeat=50 --gtest_brief=1; }
nccl_of_one_rank() {
  local name
  for name in nccl_communicator nccl_graph nccl_packing nccl_memory; do
    NCCL_DEBUG=INFO "$bin/${name}_test" || return
  done
  local begun ended
  begun=$(grep -c 'Init COMPLETE' "$log") ended=$(grep -cE '(Destroy|Abort) COMPLETE' "$log")
  [[ $begun == "$ended" ]] || { echo "expected: as many ends of communicators ($ended) as beginnings ($begun)"; return 1; }
}
nccl_of_two_ranks() {
  local limit=120 i
  two_ranks "$bin/nccl_ranks_test" || return
  # Strategies do not let NCCL serve workers that share a GPU.
  for ((i = 0; i < 20; ++i)); do
    two_ranks "$bin/nccl_graph_ranks_test" --gtest_brief=1 --gtest_filter='-*TrainAsTheSteps*' || return
  done
}
faults() {
  local how begin
  for how in kill stop throw; do
    echo "--- $how"
    begin=$SECONDS
    if [[ $how == kill ]]; then
      # mpirun must not end rank 0 before it notices.
      launcher=(--mca orte_enable_recovery 1)
      # shellcheck disable=SC2016  # the shell's own
      limit=60 two_ranks bash -c '"$@" || echo "status $?"' - "$bin/gpu_victim" "$how" 4
      launcher=()
    else
      limit=60 two_ranks "$bin/gpu_victim" "$how" 4
    fi
    echo "--- $how took $((SECONDS - begin)) s"
    ((SECONDS - begin < 20)) || { echo "expected: an end within 20 s"; return 1; }
  done
  # The deadline of 4 s, and a second; the session's watch may be sooner.
  says '(rank 0 after [0-5]\.[0-9] s|worker 0).*(member|worker) 1' "$log" && says "rank 0's own mistake" "$log"
}
benchmark() {
  "$bin/cohort-bench" all-reduce --device cuda --members threads --threads 1 --sizes 8:1G || return
  limit=280 two_ranks "$bin/cohort-bench" all-reduce --device cuda --sizes 8:256M
}
released_memory() { "$bin/gpu_tensor_test" --gtest_filter='*LeavesItsMemoryToTheNext' --gtest_repeat=200 --gtest_brief=1; }
digits() {
  local strategy
  for strategy in one_device mirrored; do
    (cd "$root" && "$bin/gpu_digits" --strategy "$strategy" --epochs 20) || return
    says "^$strategy: [0-9]+ replicas, test accuracy 0\.(8[5-9]|9)" "$log" || return
  done
  if has ncu; then ncu --set basic -k 'regex:CopyEach|Cast|UpdateByAdam' -c 12 "$bin/gpu_arithmetic_test"; fi
  return 0
}

names=(what_is_there tests_on_gpus sanitizer graphs nccl_of_one_rank nccl_of_two_ranks faults benchmark released_memory digits)
limits=(60 300 900 300 600 600 180 600 60 300)
expectations=(
  "the GPU, its memory pools, NCCL's path and version"
  "the tests of one process pass on the GPU; gpu_arithmetic to the bit"
  "no error of compute-sanitizer's memcheck and initcheck"
  "50 rounds of captured steps; each error of CUDA's has the name that the tests expect"
  "NCCL with one member; as many communicators end as begin"
  "NCCL between two ranks on one GPU, over sockets; 20 rounds of captured calls"
  "rank 1 killed, then stopped: rank 0 ends within its deadline with a message about rank 1; rank 0 throws: all end soon"
  "figures of Cohort beside NCCL; the small sizes show what a call costs the host"
  "released memory stays in the pool over 200 rounds of synchronisation"
  "the digits example learns on the GPU; ncu, if it is there, shows the kernels' share of the memory's rate"
)

if [[ $list == yes ]]; then
  for i in "${!names[@]}"; do printf '%2d  %4d s  %s\n' $((i + 1)) "${limits[i]}" "${expectations[i]}"; done
  exit
fi

bin=$build/bin
[[ -x $bin/cohort-info ]] || skip "no build in $build: there is no bin/cohort-info"
"$bin/cohort-info" --format json | grep -q '"name": "cuda:0"' ||
  skip "no GPU: $("$bin/cohort-info" --format json | sed -n '/"gpus"/,/}/s/.*"why_none": "\(.*\)".*/\1/p')"

if [[ -z $logs ]]; then logs=$(mktemp -d /tmp/gpu_first.XXXXXX); fi
mkdir -p "$logs"
export bin log root
failed=0
for i in "${!names[@]}"; do
  number=$((i + 1)) log=$logs/$((i + 1)).${names[i]}.log
  if [[ -n $only && ",$only," != *",$number,"* ]]; then continue; fi
  printf '%2d  %s\n' "$number" "${expectations[i]}"
  begin=$SECONDS status=0
  # A shell of its own, so that the limit ends everything that it has started.
  timeout --kill-after=5 "${limits[i]}" bash -c "$(declare -f has says missing two_ranks "${names[i]}"
    declare -p tests_of_one_process launcher)
    ${names[i]}" >"$log" 2>&1 </dev/null || status=$?
  case $status in
    0) outcome=ok ;;
    78) outcome=$(tail -n 1 "$log") ;;
    124 | 137) outcome="FAILED: not done within ${limits[i]} s" failed=1 ;;
    *) outcome="FAILED with status $status: $(tail -n 1 "$log")" failed=1 ;;
  esac
  printf '    %s (%d s; %s)\n' "$outcome" $((SECONDS - begin)) "$log"
done
exit "$failed"
