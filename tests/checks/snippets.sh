#!/usr/bin/env bash
# Every C++ snippet of the pages is compiled: a comment above it names it (tests/docs/extract.sh), and a source of
# tests/docs includes it by that name, or a comment says why none can: <!-- not compiled: REASON -->. The README's program
# is that of tests/install/consumer, which builds and runs it, and its picture that of the table in docs/benchmarks/figures.md.
#
#   tests/checks/snippets.sh [ROOT]
set -euo pipefail
# shellcheck source=tests/checks/sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
enter_root "$@"

shopt -s nullglob
status=0
complain() { echo "$*"; status=1; }

included=$(cat tests/docs/*.cpp /dev/null)
for page in README.md CONTRIBUTING.md docs/*.md docs/{benchmarks,design,guide}/*.md; do
  [[ -e $page ]] || continue
  stem=${page##*/} stem=${stem%.md}
  while read -r line kind name; do
    case $kind in
      none) complain "$page:$line: a snippet without a name: <!-- snippet: NAME --> above it, and tests/docs/snippets.cpp" ;;
      "not") ;;
      *) [[ $page:$kind == README.md:program || $included == *"\"$stem.$name.inc\""* || $included == *"\"$stem.$name.rest.inc\""* ]] ||
        complain "$page:$line: no source of tests/docs includes $stem.$name.inc" ;;
    esac
  done < <(awk '
    /^ *```(cpp|c\+\+)/ { if (mark ~ /^<!-- (snippet|program|not compiled): /) { split(mark, word, /[ :]+/); print FNR, word[2], word[3] } else print FNR, "none" }
    { mark = $0 }' "$page")
done

consumer=tests/install/consumer/main.cpp
if [[ -e README.md && -e $consumer ]]; then
  program=$(awk '/^```$/ { inside = 0 } inside; /^```cpp$/ && mark ~ /program/ { inside = 1 } { mark = $0 }' README.md)
  [[ $program == "$(sed '1{/^\/\//d}' "$consumer")" ]] || complain "$consumer:1: this is not the README's program"
fi

picture=docs/all-reduce.svg draw="awk -f benchmarks/compare/ratios.awk docs/benchmarks/figures.md"
if [[ -e $picture ]]; then
  $draw | cmp -s - "$picture" || complain "$picture:1: this is not the table's picture: $draw >$picture"
fi

exit "$status"
