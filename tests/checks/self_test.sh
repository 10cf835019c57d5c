#!/usr/bin/env bash
# Proves that the checks of this folder can fail: each violation is planted alone in a
# clean tree, and the check has to name its file.
set -euo pipefail
checks=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

failures=0
fail() { echo "self_test: $*" >&2; failures=$((failures + 1)); }

plant() {
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' "$2" >"$tree/$1"
}

# accepts CHECK FILE CONTENT, rejects CHECK FILE CONTENT: the verdict on a tree with that file.
accepts() {
  local output
  plant "$2" "$3"
  output=$("$checks/$1" "$tree") || fail "$1 rejects $2 with: $3: $output"
  rm "$tree/$2"
}

rejects() {
  local output status=0
  plant "$2" "$3"
  output=$("$checks/$1" "$tree") || status=$?
  if ((status != 1)); then
    fail "$1 accepts $2 with: $3 (exit status $status)"
  elif ! grep -qE "^$2:[0-9]+: ." <<<"$output"; then
    fail "$1 does not name $2, only: $output"
  fi
  rm "$tree/$2"
}

includes() { "$1" include_direction.sh "$2" "#include $3"; }
calls() { "$1" raw_calls.sh "$2" "$3"; }

# The clean tree, which every other tree contains.
plant include/cohort/base/error.h $'// Errors.\n#pragma once\n#include <string>'
plant src/base/error.cpp $'#include <cohort/base/error.h>\n#include "text.h"'
plant docs/conformance.md "| 001 | what | \`run_test.cpp\` |"
plant tests/run_test.cpp 'TEST(Run, Case001_Works) {}'
plant mpi/calls.cpp $'#include <mpi.h>\nvoid send() { check(MPI_Send(nullptr)); }'
# Each layer that is listed has a file. Those without are named.
unused_layers() { "$checks/include_direction.sh" "$tree" | sed -n 's/.*: lists \([a-z]*\), .*/\1/p'; }
mapfile -t layers < <(unused_layers)
[[ " ${layers[*]} " == *" device "* ]] || fail "include_direction.sh accepts a layer without files: ${layers[*]}"
for layer in "${layers[@]}"; do plant "src/$layer/layer.cpp" '// A file.'; done
for check in include_direction raw_calls awaits tree cases commands snippets third_party; do
  "$checks/$check.sh" "$tree" || fail "$check.sh rejects the clean tree"
done

includes accepts include/cohort/input/dataset.h '<cohort/strategy/strategy.h>'
includes accepts src/train/trainer.cpp '<cohort/input/dataset.h>'
includes accepts mpi/transport.cpp '<cohort/collective/transport.h>'
includes accepts src/resolvers/slurm.cpp '<cohort/mpi/session.h>'
includes accepts src/collective/ring.cpp '"device/node_heap.h"'
includes accepts mpi/session.cpp '"cluster/peer_watch.h"'
includes accepts tools/info/facts.cpp '"device/topology.h"'
includes accepts include/cohort/cohort.h '<cohort/train/trainer.h>'
includes accepts benchmarks/peers.cpp '<mpi.h>'
includes accepts tests/mpi/calls_test.cpp '<mpi.h>'
includes accepts examples/digits.cpp '<cohort/mpi/session.h>'
includes accepts tools/info/gpus.cpp '<cohort/cuda/devices.h>'
includes accepts include/cohort/eigen/map.h '<Eigen/Core>'

includes rejects include/cohort/base/log.h '<cohort/device/device.h>'
includes rejects src/collective/ring.cpp '<cohort/strategy/strategy.h>'
includes rejects src/device/tensor.cpp '"collective/arena.h"'
includes rejects src/device/tensor.cpp '"../collective/arena.h"'
includes rejects src/cluster/watch.cpp '"device/topology.h"'
includes rejects mpi/session.cpp '"strategy/device_route.h"'
includes rejects include/cohort/device/tensor.h '"device/topology.h"'
includes rejects include/cohort/device/tensor.h '"shape.h"'
includes rejects src/input/dataset.cpp '<cohort/train/trainer.h>'
includes rejects src/value/variable.cpp '<cohort/mpi/session.h>'
includes rejects src/value/variable.cpp '<cohort/cohort.h>'
includes rejects src/device/device.cpp '<cohort/cuda/device.h>'
includes rejects src/collective/select.cpp '<cohort/nccl/communicator.h>'
includes rejects src/cluster/spec.cpp '<cohort/resolvers/slurm.h>'
includes rejects src/base/config.cpp '<cohort/newlayer/thing.h>'
includes rejects src/newlayer/thing.cpp '<cohort/base/error.h>'
includes rejects mpi/session.cpp '<cohort/value/variable.h>'
includes rejects src/resolvers/slurm.cpp '<cohort/collective/communicator.h>'
includes rejects src/resolvers/slurm.cpp '<cohort/cuda/devices.h>'
includes rejects tools/info/gpus.cpp '<cuda_runtime.h>'
includes rejects include/cohort/cohort.h '<cohort/mpi/session.h>'
includes rejects src/collective/transport.cpp '<mpi.h>'
includes rejects include/cohort/mpi/session.h '<mpi.h>'
includes rejects tests/collective/ring_test.cpp '<mpi.h>'
includes rejects examples/digits.cpp '<mpi.h>'
includes rejects src/device/device.cpp '  <cuda_runtime.h>'
includes rejects src/collective/select.cpp '<nccl.h>'
includes rejects src/train/linear.cpp '<Eigen/Core>'
includes rejects src/train/linear.cpp '<cohort/eigen/map.h>'

calls accepts mpi/session.cpp '// MPI_Init( is called by the wrapper'
calls accepts mpi/session.cpp '  const char* name = "MPI_Init()";  /* MPI_Init() */'
calls accepts mpi/session.cpp $'/* As in\n   MPI_Init(nullptr, nullptr) */'
calls accepts mpi/session.cpp 'MPI_Comm world = MPI_COMM_WORLD;'
calls accepts benchmarks/peers.cpp 'MPI_Allreduce(a, b);'
calls accepts tests/mpi/calls_test.cpp 'MPI_Allreduce(a, b);'
calls accepts src/nccl/calls.cpp 'ncclAllReduce(a);'
calls accepts src/cuda/calls.h 'cudaMalloc(a);'

calls rejects mpi/session.cpp 'MPI_Init(&argc, &argv);'
calls rejects mpi/transport.cpp '  check(PMPI_Isend (buffer));'
calls rejects mpi/transport.cpp '/* sent */ MPI_T_init_thread(level);'
calls rejects mpi/transport.cpp $'/* two\nlines */ MPI_Isend(buffer);'
calls rejects src/base/log.cpp 'MPI_Comm_rank(comm, &rank);'
calls rejects tests/collective/ring_test.cpp 'MPI_Barrier(comm);'
calls rejects src/nccl/communicator.cpp 'ncclAllReduce(a);'
calls rejects src/nccl/member.cpp 'check(pncclSend (a));'
calls rejects src/nccl/member.cpp 'open_library().functions.ncclCommAbort(comm);'
calls rejects src/collective/select.cpp 'ncclGetVersion(&version);'
calls rejects tests/strategy/reduce_test.cpp 'ncclAllReduce(a);'
calls accepts src/nccl/open_library.h '  USE(ncclAllReduce)'
calls accepts tests/stand_in/nccl_calls.cpp 'ncclResult_t ncclGroupStart() {'
calls rejects src/cuda/device.cpp 'if (cudaMalloc(&p, 8) != 0) {}'
calls rejects src/cuda/device.cpp 'cuMemCreate(&handle);'

awaits() { "$1" awaits.sh src/collective/ring.cpp "$2"; }
awaits accepts 'if (is_root) co_await send(next);'
awaits accepts 'const bool fits = co_await check(a && b, c ? 1 : 2);'
awaits accepts 'while (moves) moves = co_await is_faster(a);'
awaits accepts 'for (Transfer& transfer : all) co_await until(done);'
awaits accepts 'case Kind::kSend: co_await send(next);'
awaits accepts '// if (co_await f())'
awaits rejects 'if (co_await is_faster(a)) ++wins;'
awaits rejects $'while (wins < limit(a) &&\n       co_await is_faster(a)) {'
awaits rejects 'switch (co_await kind()) {'
awaits rejects 'const bool all = some && co_await rest();'
awaits rejects 'const int sum = one ? co_await left() : 0;'
awaits rejects 'co_await (sends ? send(a) : receive(a));'

later="TO""DO"  # in two pieces, for the tree check reads this file too
tree() { "$1" tree.sh "$2" "$3"; }
tree accepts src/base/log.cpp "// $later(needs CMake 3.28): modules"
tree accepts tests/base/log_test.cpp 'auto path = "/tmp/x";'
tree rejects src/base/log.cpp "// $later: nicer"
tree rejects src/base/log.cpp "$(seq 601)"
tree rejects tests/long.sh "$(seq 601)"
tree rejects tests/long.sh "seq 100000 |"' grep -q 1'
tree accepts tests/long.sh 'grep -q 1 log || grep -q 2 log'
tree rejects include/cohort/base/log.h '#pragma once'
tree rejects include/cohort/base/log.h '// A log.'
tree rejects src/base/log.cpp 'auto path = "/home/me/x";'
tree accepts src/base/log.cpp 'std::jthread thread_; std::thread::id owner_;'
tree rejects src/base/log.cpp 'std::thread thread_;'
tree rejects src/base/log.cpp 'std::jthread thread([] {});'
tree accepts tests/base/log_test.cpp 'std::thread thread([] {});'
tree accepts tests/base/CMakeLists.txt 'cohort_add_test(NAME log COMMAND log_test)'
tree rejects tests/base/CMakeLists.txt 'add_test(NAME log COMMAND log_test)'

commands() { "$1" commands.sh docs/launch.md "$2"; }
plant examples/CMakeLists.txt 'add_executable(digits main.cpp)'
# shellcheck disable=SC2016  # code, in Markdown
commands accepts 'Run `tests/run_test.cpp`, or `tests/LAYER/NAME_test.cpp`.'
commands accepts 'launch 4 build/bin/digits under mpirun -n 4'
commands accepts $'```sh\nmpirun -n 4 build/bin/digits  # as root: --allow-run-as-root\n```'
commands rejects 'launch/cohort-runs -n 4 build/bin/digits'
commands rejects 'see docs/launching.md.'
commands rejects 'build/bin/digit --epochs 3'
commands rejects $'```sh\nmpirun -n 4 build/bin/digits\n```'

snippets() { "$1" snippets.sh docs/launch.md "$2"; }
plant tests/docs/snippets.cpp '#include "launch.roles.inc"'
snippets accepts $'<!-- snippet: roles -->\n```cpp\nint roles;\n```'
snippets accepts $'<!-- not compiled: an outline -->\n```cpp\nint roles = ...;\n```'
snippets rejects $'Text.\n```cpp\nint roles;\n```'
snippets rejects $'<!-- snippet: tasks -->\n```cpp\nint tasks;\n```'
plant benchmarks/compare/ratios.awk "$(<"$checks/../../benchmarks/compare/ratios.awk")"
plant docs/benchmarks/figures.md $'## All-reduce in place\n| 64 | 0.4 | a peer | 0.1 | 4.0 | 0.2 | 2.0 |'
picture=$(cd "$tree" && awk -f benchmarks/compare/ratios.awk docs/benchmarks/figures.md)
accepts snippets.sh docs/all-reduce.svg "$picture"
rejects snippets.sh docs/all-reduce.svg "${picture/>4.0</>4.1<}"
rm "$tree/docs/benchmarks/figures.md"

plant packages/spdx.awk "$(<"$checks/../../packages/spdx.awk")"
plant CMakeLists.txt $'project(cohort VERSION 0.1.0)\nfind_package(Threads)\nfind_package(fmt REQUIRED)'
plant docs/third-party.md '| {fmt} | MIT | fmt | everything |'
document=$(awk -v version=0.1.0 -v created=2026-11-28T00:00:00Z -f "$tree/packages/spdx.awk" "$tree/docs/third-party.md")
accepts third_party.sh packages/cohort.spdx.json "$document"
rejects third_party.sh packages/cohort.spdx.json "${document/MIT/BSD-3-Clause}"
plant packages/cohort.spdx.json "$document"
rejects third_party.sh src/CMakeLists.txt 'find_package(libpng)'
rejects third_party.sh docs/third-party.md $'| {fmt} | MIT | fmt | everything |\n| libpng | libpng-2.0 | PNG | everything |'
rm "$tree/CMakeLists.txt" "$tree/packages/"*
rm -r "$tree/tests/docs"

cases() { "$1" cases.sh "$2" "$3"; }
cases rejects tests/value_test.cpp 'TEST(Value, Case001_Works) {}'
cases rejects tests/value_test.cpp 'TEST_P(Value, Case002_Works) {}'
# The list goes with each verdict on it, so the clean one is not needed any more.
cases accepts docs/conformance.md $'| 001 | what | `run_test.cpp` |\n| 003 | `what` | pending: input |'
cases rejects docs/conformance.md '| 001 | what | later |'
cases rejects docs/conformance.md "| 001 | what | \`run_test.cpp\`, \`other_test.cpp\` |"
cases rejects docs/conformance.md $'| 001 | what | `run_test.cpp` |\n| 001 | what | `run_test.cpp` |'
cases rejects docs/conformance.md $'| 002 | what | pending: input |\n| 001 | what | `run_test.cpp` |'

if ((failures)); then echo "self_test: $failures wrong verdicts" >&2; exit 1; fi
echo "self_test: every verdict is right"
