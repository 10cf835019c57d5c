#!/usr/bin/env bash
# Runs the program of docs/first-program.md on the page's data, and expects the line that the page prints.
#
#   first_program.sh PAGE LAUNCHER...
set -euo pipefail
page=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n '/^area,rent$/,/^```$/p' "$page" | sed '$d' >"$work/flats.csv"
expected=$(grep -m 1 '^rent = [0-9]' "$page")
cd "$work"
said=$("$@")
echo "$said"
[[ $said == "$expected" ]] || { echo "first_program: the page says: $expected" >&2; exit 1; }
