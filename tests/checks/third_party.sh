#!/usr/bin/env bash
# The list of what is linked is whole: each library that CMake looks for stands in docs/third-party.md, and each of the page is
# looked for; packages/cohort.spdx.json says the same. What belongs to the system or to the build alone is no library of others.
#
#   tests/checks/third_party.sh [ROOT]
set -euo pipefail
# shellcheck source=tests/checks/sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
enter_root "$@"

status=0
complain() { echo "$*"; status=1; }
page=docs/third-party.md document=packages/cohort.spdx.json
[[ -e $page ]] || exit 0

listed=$(awk -F ' *[|] *' 'NF == 6 && $2 != "library" && $4 !~ /^-/ { print $4 }' "$page" | sort -u)
# FILE:LINE:NAME of what CMake looks for.
sought=$(find . \( -path ./build -o -path ./.git \) -prune -o \( -name CMakeLists.txt -o -name '*.cmake' -o -name '*.cmake.in' \) -print0 |
  xargs -0 -r grep -noE '^ *find_(package|dependency)\([A-Za-z0-9_]+' /dev/null | sed -E 's#^\./##; s/:[^:]*\(/:/') || true
while IFS=: read -r file line name; do
  [[ $name =~ ^(Threads|Python|Python3|PkgConfig|cohort|)$ ]] || grep -qxF "$name" <<<"$listed" ||
    complain "$file:$line: $name is not listed in $page"
done <<<"$sought"
for name in $listed; do
  grep -q ":$name\$" <<<"$sought" ||
    complain "$page:$(grep -nF "| $name |" "$page" | head -n 1 | cut -d : -f 1): CMake looks for no $name"
done

version=$(sed -nE 's/^project\(cohort VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
created=$(sed -nE 's/.*"created": "([^"]*)".*/\1/p' "$document" 2>/dev/null) || true
awk -v version="$version" -v created="$created" -f packages/spdx.awk "$page" | cmp -s - "$document" ||
  complain "$document:1: this is not what $page says; packages/spdx.awk makes it"

exit "$status"
