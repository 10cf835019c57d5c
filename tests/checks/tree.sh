#!/usr/bin/env bash
# Housekeeping of the tree: what a reviewer would otherwise have to say each time.
#
#   tests/checks/tree.sh [ROOT]
set -euo pipefail
# shellcheck source=tests/checks/sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
enter_root "$@"

folders=(include src mpi preload launch tools benchmarks examples tests)
mapfile -t cpp < <(sources "${folders[@]}")
mapfile -t scripts < <(for folder in "${folders[@]}"; do
  [[ ! -d $folder ]] || find "$folder" -name '*.sh'
done | LC_ALL=C sort)

status=0
complain() { echo "$*"; status=1; }

# forbid PATTERN WHY FILE...: a complaint for each line that matches.
forbid() {
  local pattern=$1 why=$2 file line
  shift 2
  while IFS=: read -r file line _; do complain "$file:$line: $why"; done < <(grep -nE "$pattern" "$@" /dev/null)
}

forbid '\b(TO[D]O|FIX[M]E)\b($|[^(]|\($|\(\))' "a note for later needs its reason in parentheses" "${cpp[@]}" "${scripts[@]}"

mapfile -t not_tests < <(printf '%s\n' "${cpp[@]}" | grep -v '^tests/')
forbid '"/(home|root|tmp|Users)/' "a path of one machine; only tests may name one" "${not_tests[@]}"

mapfile -t library < <(printf '%s\n' "${cpp[@]}" | grep -E '^(include|src|mpi|tools)/' | grep -v '/quiet_thread\.h$')
forbid 'std::(thread\b($|[^:])|jthread(\(| [a-z_]+[({]))' "start_quiet_thread (base/quiet_thread.h) starts the library's threads" "${library[@]}"

forbid '[^|]\| *grep -[a-zA-Z]*q' "grep -q reads no further than a match, which may end the writer by SIGPIPE: compare a string" "${scripts[@]}"

mapfile -t recipes < <(find tests -name CMakeLists.txt)
forbid '(^|[^_])add_test\(' "cohort_add_test registers tests: those explain themselves when they hang" "${recipes[@]}"

while IFS= read -r complaint; do complain "$complaint"; done < <(awk '
  function finish() {
    if (lines > 600) print file ":600: " lines " lines; over 600, a file wants to be two"
    if (file !~ /^include\//) return
    if (first !~ /^\/\//) print file ":1: a public header opens with a comment: what it is, who owns what, which threads may call it"
    if (!once) print file ":1: a header can be included twice: #pragma once"
  }
  FNR == 1 { if (file != "") finish(); file = FILENAME; first = $0; once = 0 }
  { lines = FNR }
  $0 == "#pragma once" { once = 1 }
  END { finish() }' "${cpp[@]}" "${scripts[@]}")

exit "$status"
