#!/usr/bin/env bash
# Writes the completions of a program for a shell, from the program's --help. Where COMMAND --help has a text of its own,
# the options of that command come from there.
#
#   completions.sh bash|zsh|fish PROGRAM
set -euo pipefail
shell=$1 program=$2
here=$(dirname "${BASH_SOURCE[0]}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" --help >"$work/help"
mapfile -t commands < <(awk -f "$here/table.awk" "$work/help" | sed -n 's/^command\t\([^\t]*\).*/\1/p')

# The scope of each line stands before it: a command's name, or nothing.
awk -f "$here/table.awk" -v commands="${commands[*]}" "$work/help" | sed 's/^/\t/' >"$work/scoped"
for command in "${commands[@]}"; do
  "$program" "$command" --help | awk -f "$here/table.awk" -v scope="$command" -v commands="${commands[*]}" |
    sed -n "s/^option/$command\toption/p" >>"$work/scoped"
done
awk -f "$here/$shell.awk" -v name="$(basename "$program")" "$work/scoped"
