#!/usr/bin/env bash
# Takes the C++ snippets out of the pages, so that snippets.cpp can include them. A comment above a snippet, which readers
# of the page do not see, gives it a name:
#
#   <!-- snippet: NAME -->       statements: OUT/PAGE.NAME.inc, included by a source of this folder
#   <!-- program: NAME -->       a whole program, likewise
#
# PAGE.NAME.first.inc is the part before the first empty line, often declarations, and PAGE.NAME.rest.inc what follows.
# The dots that stand for what a page leaves out are left out.
#
#   extract.sh OUT PAGE...
set -euo pipefail
out=$1
shift
mkdir -p "$out"
for page in "$@"; do
  name=${page##*/}
  awk -v out="$out/${name%.md}." -v page="$page" '
    function start(file) { printf "#line %d \"%s\"\n", FNR + 1, page >file; return file }
    /^```cpp$/ && mark != "" {
      whole = start(out mark ".inc"); part = start(out mark ".first.inc"); rest = out mark ".rest.inc"
      inside = 1; in_rest = 0; mark = ""; next
    }
    /^```$/ && inside {
      close(whole); close(part); if (!in_rest) { printf "" >rest; close(rest) }
      inside = 0; next
    }
    inside {
      sub(/^ *\.\.\.( .*)?$/, "")
      if ($0 == "" && !in_rest) { close(part); part = start(rest); in_rest = 1 }
      print >whole; print >part; next
    }
    { mark = match($0, /^<!-- (snippet|program): [a-z_]+ -->$/) ? $3 : "" }' "$page"
done
