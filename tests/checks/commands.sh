#!/usr/bin/env bash
# What the documentation tells its readers to run is there: files of the tree, programs that the build makes, and
# no mpirun that would refuse to start as root or with more ranks than cores, unless the line says what to do then.
#
#   tests/checks/commands.sh [ROOT]
set -euo pipefail
# shellcheck source=tests/checks/sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
enter_root "$@"

shopt -s nullglob
pages=(README.md CONTRIBUTING.md docs/*.md docs/{benchmarks,design,guide}/*.md)
for i in "${!pages[@]}"; do [[ -e ${pages[i]} ]] || unset "pages[i]"; done

status=0
complain() { echo "$*"; status=1; }

# found PATTERN: FILE LINE WORD for each match in the pages.
found() { grep -noE "$1" "${pages[@]}" /dev/null | sed 's/:/ /; s/:/ /' || true; }

# Names in capitals stand for something else.
while read -r file line path; do
  [[ $path == *[A-Z]* || -e ${path%.} || -e ${file%/*}/${path%.} ]] || complain "$file:$line: there is no $path"
done < <(found '\b(python/)?(launch|tests|benchmarks|docs|cmake)/[A-Za-z0-9_./-]*[A-Za-z0-9_]' | grep -vE ' (cmake|docs|tests)/[^ ]*/(launch|tests)')

mapfile -t programs < <(find . -name CMakeLists.txt -not -path './build/*' -exec sed -nE 's/^ *add_executable\(([a-z_-]+).*/\1/p' {} +)
while read -r file line path; do
  name=${path##*/}
  [[ " ${programs[*]} " == *" $name "* || -e examples/$name/main.cpp ]] || complain "$file:$line: no program $name is built"
done < <(found 'build/bin/[a-z_-]+')

while IFS=: read -r file line _; do
  complain "$file:$line: mpirun alone refuses root, and more ranks than cores: launch/cohort-run"
done < <(grep -nE '^[[:space:]]*mpirun -' "${pages[@]}" /dev/null | grep -v 'allow-run-as-root')

exit "$status"
