#!/usr/bin/env bash
# The manual pages and completions that the build has made of the tools' help: the shells can read them, and they have
# every option and command of the help.
#
#   completions.sh HELP_DIR PROGRAM...
set -euo pipefail
help_dir=$1
shift
fail() { echo "completions: $*" >&2; exit 1; }

# offers PROGRAM WORD...: what bash offers for the last word, by the file of the program's name.
offers() {
  local function=_${1//-/_}
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  "$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  echo "${COMPREPLY[*]}"
}

# same WHAT EXPECTED ACTUAL
same() { [[ $2 == "$3" ]] || fail "$1: expected '$2', got '$3'"; }

for program in "$@"; do
  name=$(basename "$program")
  for shell in zsh fish; do
    command -v "$shell" >/dev/null || continue
    "$shell" -n "$help_dir/$shell/"*"$name"* || fail "$shell does not understand its completions of $name"
  done
  # shellcheck source=/dev/null
  source "$help_dir/bash/$name"

  page=""
  [[ ! -e $help_dir/$name.1 ]] || page=$(sed 's/\\//g' "$help_dir/$name.1")
  [[ -z $page || $page == *".TH ${name^^} "* ]] || fail "the manual page of $name begins with: ${page:0:200}"
  # Each option stands where some command takes it.
  for option in $("$program" --help | sed -nE 's/^  (-h, )?(--?[a-z][a-z-]*).*/\2/p' | sort -u); do
    grep -qE -- "[\" ]${option}[\" ]" "$help_dir/bash/$name" || fail "bash is not offered $name $option"
    grep -qF -- "'${option}[" "$help_dir/zsh/_$name" || fail "zsh is not offered $name $option"
    word=${option#-}
    grep -qE -- " -[ls] ${word#-}( |$)" "$help_dir/fish/$name.fish" || fail "fish is not offered $name $option"
    [[ -z $page || $page == *$option* ]] || fail "the manual page of $name has no $option"
  done
done

same "commands" "export" "$(offers cohort-checkpoint exp)"
same "options of a command" "--max-shard-size --map" "$(offers cohort-checkpoint export checkpoint --ma)"
same "options of others" "" "$(offers cohort-checkpoint advise --dt)"
same "values" "text" "$(offers cohort-info --format t)"
same "options before the program" "--roles" "$(offers cohort-run -n 2 --ro)"
same "those of the program" "" "$(offers cohort-run -n 2 digits --ro)"
[[ $(offers cohort-run -n 2 ba) == *bash* ]] || fail "cohort-run is offered no program"
if [[ " $* " == *cohort-bench* ]]; then
  same "options of a collective" "--sizes" "$(offers cohort-bench all-reduce --si)"
  same "those of another command" "" "$(offers cohort-bench dispatch --si)"
  same "values of a command" "sum" "$(offers cohort-bench all-reduce --op s)"
fi
