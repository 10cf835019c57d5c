#!/usr/bin/env bash
# GCC 12 miscompiles an await in the condition of an `if` or a loop, behind `&&` and `||`, and
# in the arms of `?:`, as task.h says. Names each of them, and each await of a choice in
# brackets. Lines that a condition takes up are read as one.
#
#   tests/checks/awaits.sh [ROOT]
set -euo pipefail
# shellcheck source=tests/checks/sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
enter_root "$@"

mapfile -t files < <(sources include src mpi preload tools benchmarks examples tests)
awk '
function complain(why) {
  printf "%s:%d: %s: GCC 12 miscompiles it; await in a statement of its own\n", FILENAME, FNR, why
  bad = 1
}

FNR == 1 { condition = ""; depth = 0 }

{
  code = $0
  gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
  sub(/\/\/.*/, "", code)
  if (code ~ /(&&|\|\||[?:]) *co_await/ && code !~ /(case .*|default) *: *co_await/)
    complain("an await in an expression")
  if (code ~ /co_await *\([^)]*\?/) complain("an await of a choice")

  # From the keyword to the bracket that ends its condition.
  if (depth == 0 && match(code, /(^|[^A-Za-z_])(if|while|switch)( constexpr)? *\(/)) {
    code = substr(code, RSTART + RLENGTH - 1)
    condition = " "
  }
  if (condition == "") next
  for (at = 1; at <= length(code); at++) {
    letter = substr(code, at, 1)
    depth += (letter == "(") - (letter == ")")
    condition = condition letter
    if (depth == 0) break
  }
  if (depth > 0) next
  if (condition ~ /co_await/) complain("an await in a condition")
  condition = ""
}

END { exit bad }
' "${files[@]}"
