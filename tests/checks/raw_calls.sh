#!/usr/bin/env bash
# Every MPI, NCCL and CUDA function is called in one place, its checked wrapper. Names each
# call elsewhere. Benchmarks call the peers themselves, a module's tests may too, and examples
# call CUDA where that is the program's own part.
#
#   tests/checks/raw_calls.sh [ROOT]
set -euo pipefail
# shellcheck source=tests/checks/sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
enter_root "$@"

mapfile -t files < <(sources include src mpi preload tools examples tests)
awk '
# The first of several names.
function one_of(names) {
  sub(/\|.*/, "", names)
  return names
}

function look_for(names, wrapper, users,    call) {
  if (FILENAME ~ "^(" wrapper ")\\.(h|cpp)$" || FILENAME ~ "^(" users ")/") return
  if (!match(code, "(^|[^A-Za-z0-9_])" names "[A-Za-z0-9_]*[ \t]*\\(")) return
  call = substr(code, RSTART, RLENGTH)
  gsub(/[^A-Za-z0-9_]/, "", call)
  printf "%s:%d: raw call of %s; call its checked wrapper in %s.h\n", FILENAME, FNR, call, one_of(wrapper)
  bad = 1
}

FNR == 1 { in_comment = 0 }

{
  code = $0
  gsub(/\047"\047/, "", code)              # the character that would open a string
  gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
  sub(/\/\/.*/, "", code)
  gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, " ", code)
  if (in_comment && !sub(/^.*\*\//, "", code)) next
  in_comment = sub(/\/\*.*/, "", code)

  look_for("P?MPI_(T_)?[A-Z]?[a-z]", FILENAME ~ /^preload\// ? "preload/shim/mpi_calls|preload/shim/mpi_abi" : "mpi/calls",
           "tests/(mpi|preload)")
  look_for("p?nccl[A-Z]", "src/nccl/calls", "tests/(nccl|stand_in)")
  look_for("cu(da)?[A-Z][a-z]", "src/cuda/calls", "examples|tests/(benchmarks|cuda|nccl|stand_in)")
}

END { exit bad }
' "${files[@]}" </dev/null
