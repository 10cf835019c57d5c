#!/usr/bin/env bash
# Compiles SOURCE twice, with the flags that the build has for it: as it is, which succeeds, and with
# MISUSE defined, which fails and prints what the first lines of the source say, without burying it.
#
#   must_not_compile.sh COMPILE_COMMANDS SOURCE
set -euo pipefail
export LC_ALL=C
commands=$1 source=$2
# For each sentence: itself, the line of the program, where it was instantiated from, and little else.
most_lines=16

fail() { echo "FAILED: $source: $*" >&2; exit 1; }

mapfile -t sentences < <(sed -n 's|^// Says: ||p' "$source")
((${#sentences[@]})) || fail "begins with no line of the form: // Says: what the compiler prints"
[[ -e $commands ]] || fail "no $commands; configure with CMAKE_EXPORT_COMPILE_COMMANDS=ON"

# "directory", "command" and "file" follow each other, each in a line of its own.
command=$(grep -B 1 -F "\"file\": \"$source\"" "$commands" | sed -n 's/^ *"command": "\(.*\)",$/\1/p' |
  sed 's/\\\(["\\]\)/\1/g; s/ -o [^ ]*//; s/ -c / -fsyntax-only /')
[[ -n $command ]] || fail "$commands has no command for it"

output=$(eval "$command" 2>&1) || fail "does not compile without MISUSE: $output"
if output=$(eval "$command -DMISUSE" 2>&1); then fail "compiles with MISUSE"; fi
for sentence in "${sentences[@]}"; do
  grep -qF "$sentence" <<<"$output" || fail "fails without the sentence '$sentence': $output"
done
lines=$(wc -l <<<"$output")
((lines <= most_lines * ${#sentences[@]})) ||
  fail "says ${#sentences[@]} sentences in $lines lines, more than $most_lines for each: $output"
