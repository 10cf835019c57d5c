#!/usr/bin/env bash
# Includes point strictly down the list of layers, be they <cohort/LAYER/...>, which is public, or
# "LAYER/...", which is in src/; public headers include public ones alone; foreign headers stay in the
# module that wraps them. Names every include that does not, and what is allowed there.
#
#   tests/checks/include_direction.sh [ROOT]
set -euo pipefail
# shellcheck source=tests/checks/sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
enter_root "$@"

mapfile -t files < <(sources include src mpi python preload tools benchmarks examples tests)
awk '
BEGIN {
  # What each unit may include. The chain comes first: each layer sees itself and those below.
  layers = split("base cluster device collective value strategy input train summary server checkpoint coordinator trainer", chain)
  for (i = 1; i <= layers; i++) {
    # Beside the chain: tasks that talk without MPI, for the layers above `summary` that are made of them.
    if (chain[i] == "server") below = below "remote rpc "
    allowed[chain[i]] = below = below chain[i] " "
  }
  allowed["remote"] = allowed["device"] "remote "
  allowed["rpc"] = allowed["value"] "remote rpc "
  # Beside the core.
  allowed["cuda"] = allowed["device"] "cuda "
  allowed["eigen"] = allowed["device"] "eigen "
  allowed["nccl"] = allowed["collective"] "cuda nccl "
  allowed["observation"] = allowed["collective"] "observation "
  allowed["mpi"] = allowed["observation"] "mpi "
  allowed["rendezvous"] = allowed["observation"] "remote rendezvous "
  allowed["python"] = allowed["rendezvous"] "python "
  allowed["preload"] = allowed["rendezvous"] "preload "
  allowed["simulation"] = allowed["collective"] "simulation "
  allowed["resolvers"] = allowed["remote"] "mpi resolvers "
  allowed["torch"] = below "torch "
  # The header that programs include: the whole core, but nothing that needs MPI or a GPU.
  allowed["cohort.h"] = below "resolvers "

  # Folders that may include headers of a foreign library.
  home["MPI"] = "mpi/ benchmarks/ tests/mpi/ tests/preload/"
  home["CUDA"] = "src/cuda/ src/nccl/ benchmarks/ examples/ tests/benchmarks/ tests/cuda/ tests/nccl/ tests/stand_in/"
  home["Eigen"] = "include/cohort/eigen/ examples/ tests/eigen/"
  home["libtorch"] = "include/cohort/torch/ src/torch/ python/src/ benchmarks/ examples/ tests/docs/ tests/torch/"
  home["NCCL"] = "src/nccl/ benchmarks/ tests/nccl/ tests/stand_in/"
}

function complain(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; bad = 1 }

# The layer or module that a file or an include belongs to: the first folder below the roots.
function unit_of(path) {
  sub(/^(\.\.?\/)+/, "", path)
  sub(/^include\//, "", path)
  sub(/^(cohort|src)\//, "", path)
  sub(/\/.*/, "", path)
  return path
}

function library_of(path) {
  if (path ~ /^mpi(-ext)?\.h$/) return "MPI"
  if (path ~ /^nccl[^\/]*\.h$/) return "NCCL"
  if (path ~ /^cuda[^\/]*\.h$/) return "CUDA"
  if (path ~ /^(unsupported\/)?Eigen\//) return "Eigen"
  if (path ~ /^(torch|ATen|c10)\//) return "libtorch"
  return ""
}

function starts_with_one_of(path, folders,    list, n, i) {
  n = split(folders, list, " ")
  for (i = 1; i <= n; i++) if (index(path, list[i]) == 1) return 1
  return 0
}

FNR == 1 {
  # Programs and tests may use every layer: tools, benchmarks, examples.
  unit = FILENAME ~ /^(include|src|mpi|preload)\// ? unit_of(FILENAME) : FILENAME ~ /^python\/src\// ? "python" : ""
  if (unit != "" && !(unit in allowed)) complain("no layer of this name; the layers are listed in tests/checks/include_direction.sh")
}

FNR == 1 { has_files[unit] }

/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
  split($0, parts, /[<">]/)
  path = parts[2]
  library = library_of(path)
  if (library != "") {
    if (!starts_with_one_of(FILENAME, home[library])) complain(path " may be included only below " home[library])
    next
  }
  if (FILENAME ~ /^include\// && $0 ~ /include[ \t]*"/) {
    complain("a public header includes public ones alone, as <cohort/...>; " path " is not installed")
    next
  }
  target = unit_of(path)
  # Elsewhere, or in the same folder.
  if (unit == "" || !(unit in allowed) || (path !~ /^cohort\// && (path !~ /\// || !(target in allowed)))) next
  if (index(" " allowed[unit], " " target " ") == 0) {
    complain(unit " may not include " path "; it may include: " allowed[unit])
  }
}

END {
  # The list has only what the tree has.
  for (unit in allowed) {
    if (unit ~ /\./ || unit in has_files) continue
    printf "tests/checks/include_direction.sh: lists %s, but no folder of that name has files\n", unit
    bad = 1
  }
  exit bad
}
' "${files[@]}" </dev/null
