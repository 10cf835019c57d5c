#!/usr/bin/env bash
# The numbered cases in docs/conformance.md and the tests whose names carry the numbers
# agree: a row names every file with a test of its case, or a reason why there is none.
#
#   tests/checks/cases.sh [ROOT]
set -euo pipefail
# shellcheck source=tests/checks/sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
enter_root "$@"

list=docs/conformance.md
[[ -e $list ]] || exit 0
mapfile -t tests < <(sources tests)
awk -v list="$list" '
function complain(place, text) { printf "%s: %s\n", place, text; bad = 1 }

FILENAME == list {
  if (!match($0, /^\| [0-9][0-9][0-9] \|/)) next
  number = substr($0, 3, 3)
  if (number in row) complain(list ":" FNR, "case " number " is listed twice")
  if (number + 0 < last + 0) complain(list ":" FNR, "case " number " comes after case " last)
  last = number
  row[number] = FNR
  reason = $0
  sub(/ \|$/, "", reason)
  sub(/^.* \| /, "", reason)
  if (reason !~ /^(`[^`]+`(, `[^`]+`)*|(pending|without meaning): .+)$/)
    complain(list ":" FNR, "case " number " has neither tests nor a reason")
  while (match(reason, /`[^`]*\.cpp`/)) {
    file = "tests/" substr(reason, RSTART + 1, RLENGTH - 2)
    listed[number, file] = FNR
    reason = substr(reason, RSTART + RLENGTH)
  }
  next
}

match($0, /^TEST[A-Z_]*\([A-Za-z0-9_]+, Case[0-9][0-9][0-9]_/) {
  number = substr($0, RSTART + RLENGTH - 4, 3)
  tested[number, FILENAME] = 1
  if (!((number, FILENAME) in listed))
    complain(FILENAME ":" FNR, "a test of case " number ", whose row in " list " does not name this file")
}

END {
  for (key in listed) {
    if (key in tested) continue
    split(key, parts, SUBSEP)
    complain(list ":" listed[key], "case " parts[1] " has no test in " parts[2])
  }
  exit bad
}
' "$list" "${tests[@]}" </dev/null
