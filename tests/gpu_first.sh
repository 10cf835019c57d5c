#!/usr/bin/env bash
# What to run first on a machine with an NVIDIA GPU: nine parts in the order of what they tell, each with a share of
# the time, and a table of what came of them. One GPU is enough. It builds nothing: only the programs of a build's
# bin/ are needed, with the libraries that they link, and NCCL (COHORT_NCCL_LIBRARY names one).
# tests/gpu_bundle.sh packs all that for a machine without a compiler.
#
#   tests/gpu_first.sh [--within SECONDS] [--build DIR] [--only N[,N...]] [--logs DIR] [--list]
#
#   --within SECONDS  the time for all parts; each is cut when its share is over; default: 480. With more time there
#                     are more rounds of what may fail now and then.
#   --build DIR       the build folder; default: build/ of this checkout
#   --only N,...      only these parts
#   --logs DIR        where the outputs and the table go, 10 MiB at most; default: a new folder in /tmp, which stays
#   --list            say what the parts are and end
#
# Ends with 0 if all is as expected, 1 if not, 2 for wrong arguments, 77 where there is no GPU or no build.
# shellcheck disable=SC2317  # the parts are called by name
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

refuse() { echo "gpu_first.sh: $*; see --help" >&2; exit 2; }
skip() { echo "gpu_first.sh: skipped: $*"; exit 77; }

build=$root/build logs='' only='' list=no within=480
while (($#)); do
  case $1 in
    --within) [[ ${2:-} =~ ^[1-9][0-9]{1,5}$ ]] || refuse "--within needs a number of seconds, 10 or more"; within=$2; shift 2 ;;
    --build) [[ -n ${2:-} ]] || refuse "--build needs a folder"; build=$2; shift 2 ;;
    --only) [[ ${2:-} =~ ^[1-9](,[1-9])*$ ]] || refuse "--only needs numbers from 1 to 9"; only=$2; shift 2 ;;
    --logs) [[ -n ${2:-} ]] || refuse "--logs needs a folder"; logs=$2; shift 2 ;;
    --list) list=yes; shift ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done

# ---- what the parts are made of

# has PROGRAM: of the machine.
has() { command -v "$1" >/dev/null; }
# says PATTERN FILE: an expectation.
says() { grep -Eq -- "$1" "$2" || { echo "expected: $1"; return 1; }; }
# missing WHAT: the rest of the part is left out.
missing() { echo "left out: $*"; return 78; }
# rounds N: as many as the time allows, N in 480 s.
rounds() { echo $((($1 * within + 479) / 480)); }
# tests_pass NAME...: all are run.
tests_pass() {
  local name failed=0
  for name in "$@"; do
    "$bin/${name}_test" || { echo "failed: $name"; failed=1; }
  done
  return "$failed"
}
# two_ranks [LAUNCHER_OPTION...] -- PROGRAM [ARGUMENT...]: on one GPU, which NCCL takes for GPUs of two hosts.
two_ranks() {
  local options=()
  while [[ $1 != -- ]]; do options+=("$1"); shift; done
  has mpirun || { missing "no mpirun"; return; }
  # In the part's process group, so that the end of its time ends this, too.
  # shellcheck disable=SC2016  # each rank's own
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout --foreground --kill-after=5 "$((within / 8))" \
    mpirun --oversubscribe "${options[@]}" -n 2 bash -c 'export NCCL_HOSTID=$OMPI_COMM_WORLD_RANK NCCL_SOCKET_IFNAME=lo
      exec "$@"' - "${@:2}"
}

# ---- the parts: function, share of 480 s, expectation

what_is_there() {
  if has nvidia-smi; then nvidia-smi || return; fi
  "$bin/cohort-info" --format json || return
  says '"memory_pools": true' "$log" && says '"path": ".*nccl' "$log"
}
tests_of_one_process() {
  tests_pass gpu_arithmetic cuda_devices cuda_streams gpu_tensor gpu_exchange cuda_contexts gpu_strategies || return
  # Where synchronisation empties the pool, a round of these allocates anew.
  "$bin/gpu_tensor_test" --gtest_filter='*LeavesItsMemoryToTheNext' --gtest_repeat="$(rounds 40)" --gtest_brief=1
}
nccl_of_one_rank() {
  NCCL_DEBUG=INFO tests_pass nccl_communicator nccl_graph nccl_packing nccl_memory || return
  local begun ended
  begun=$(grep -c 'Init COMPLETE' "$log") ended=$(grep -cE '(Destroy|Abort) COMPLETE' "$log")
  [[ $begun == "$ended" ]] || { echo "expected: as many ends of communicators ($ended) as beginnings ($begun)"; return 1; }
}
graphs() { "$bin/cuda_graph_test" --gtest_repeat="$(rounds 10)" --gtest_brief=1; }
nccl_of_two_ranks() {
  local i
  two_ranks -- "$bin/nccl_ranks_test" || return
  # Strategies do not let NCCL serve workers that share a GPU.
  for ((i = $(rounds 3); i > 0; --i)); do
    two_ranks -- "$bin/nccl_graph_ranks_test" --gtest_brief=1 --gtest_filter='-*TrainAsTheSteps*' || return
  done
}
faults() {
  local how begin
  for how in kill stop throw; do
    echo "--- $how"
    begin=$SECONDS
    if [[ $how == kill ]]; then
      # mpirun must not end rank 0 before it notices.
      # shellcheck disable=SC2016  # the shell's own
      two_ranks --mca orte_enable_recovery 1 -- bash -c '"$@" || echo "status $?"' - "$bin/gpu_victim" "$how" 4
    else
      two_ranks -- "$bin/gpu_victim" "$how" 4
    fi
    echo "--- $how took $((SECONDS - begin)) s"
    ((SECONDS - begin < 20)) || { echo "expected: an end within 20 s"; return 1; }
  done
  # The deadline of 4 s, and a second; the session's watch may be sooner.
  says '(rank 0 after [0-5]\.[0-9] s|worker 0).*(member|worker) 1' "$log" && says "rank 0's own mistake" "$log"
}
benchmark() {
  local short=(all-reduce --device cuda --loops 3) alone=8:256M together=8:8M
  # The tests' stand-in for a GPU has no speed.
  if [[ $("$bin/cohort-info") == *'stand-in without a GPU'* ]]; then alone=8:32K together=8:128; fi
  "$bin/gpu_calls" --sizes "$alone" || return
  "$bin/cohort-bench" "${short[@]}" --members threads --threads 1 --sizes "$alone" || return
  two_ranks -- "$bin/cohort-bench" "${short[@]}" --sizes "$together"
}
digits() {
  local strategy
  for strategy in one_device mirrored; do
    (cd "$root" && "$bin/gpu_digits" --strategy "$strategy" --epochs 20) || return
    says "^$strategy: [0-9]+ replicas?, test accuracy 0\.(8[5-9]|9)" "$log" || return
  done
  # The kernels' share of the memory's rate.
  if has ncu; then ncu --set basic -k 'regex:CopyEach|Cast|UpdateByAdam' -c 12 "$bin/gpu_arithmetic_test"; fi
  return 0
}
sanitizer() {
  has compute-sanitizer || { missing "no compute-sanitizer"; return; }
  local tool name
  for tool in memcheck initcheck; do
    for name in gpu_tensor gpu_arithmetic; do
      compute-sanitizer --tool "$tool" --error-exitcode 9 "$bin/${name}_test" || return
    done
  done
}

names=(what_is_there tests_of_one_process nccl_of_one_rank graphs nccl_of_two_ranks faults benchmark digits sanitizer)
shares=(15 85 60 30 75 55 80 30 50)
expectations=(
  "the GPU, its memory pools, NCCL's path and version"
  "tests of one process pass, arithmetic to the bit; released memory stays in the pool"
  "NCCL with one member; as many communicators end as begin"
  "captured steps; each error of CUDA's has the name that the tests expect"
  "NCCL between two ranks on one GPU, over sockets; captured calls"
  "rank 1 killed, then stopped: rank 0 ends with a message about it; rank 0 throws"
  "Cohort beside NCCL's own calls and a copy; a call's cost on the host; a captured step"
  "the digits example learns on the GPU"
  "compute-sanitizer finds no error in two tests"
)
share_of() { echo $((shares[$1] * within / 480)); }

if [[ $list == yes ]]; then
  for i in "${!names[@]}"; do printf '%2d  %4d s  %-20s  %s\n' $((i + 1)) "$(share_of "$i")" "${names[i]}" "${expectations[i]}"; done
  exit
fi

bin=$build/bin
[[ -x $bin/cohort-info ]] || skip "no build in $build: there is no bin/cohort-info"
info=$("$bin/cohort-info" --format json) || { echo "gpu_first.sh: $bin/cohort-info has failed" >&2; exit 1; }
[[ $info == *'"name": "cuda:0"'* ]] || skip "no GPU: $(sed -n '/"gpus"/,/}/s/.*"why_none": "\(.*\)".*/\1/p' <<<"$info")"

# shorten FILE: the logs are to travel.
shorten() {
  local most=$((1 << 20))
  (($(stat -c %s "$1") > most)) || return 0
  { head -c $((most / 4)) "$1"; echo "[... the log is longer ...]"; tail -c $((most / 2)) "$1"; } >"$1.short"
  mv "$1.short" "$1"
}

if [[ -z $logs ]]; then logs=$(mktemp -d /tmp/gpu_first.XXXXXX); fi
mkdir -p "$logs"
export bin log root within
failed=0 began=$SECONDS
: >"$logs/table"
for i in "${!names[@]}"; do
  number=$((i + 1)) share=$(share_of "$i") log=$logs/$((i + 1)).${names[i]}.log
  if [[ -n $only && ",$only," != *",$number,"* ]]; then continue; fi
  begin=$SECONDS status=0
  # A shell of its own, so that the end of its time ends everything that it has started.
  timeout --kill-after=10 "$share" bash -c "$(declare -f has says missing rounds tests_pass two_ranks "${names[i]}")
    ${names[i]}" >"$log" 2>&1 </dev/null || status=$?
  shorten "$log"
  case $status in
    0) outcome=passed why='' ;;
    78) outcome="left out" why=" ($(tail -n 1 "$log"))" ;;
    124 | 137) outcome=cut why=" (after $share s: $(tail -n 1 "$log" | cut -c 1-60))" failed=1 ;;
    *) outcome=FAILED why=" (status $status: $(tail -n 1 "$log" | cut -c 1-60))" failed=1 ;;
  esac
  printf '%d  %-8s  %4d s  %s%s\n' "$number" "$outcome" $((SECONDS - begin)) "${expectations[i]}" "$why" | tee -a "$logs/table"
done
printf '%d s of %d; logs in %s\n' $((SECONDS - began)) "$within" "$logs" | tee -a "$logs/table"
exit "$failed"
