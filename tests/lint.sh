#!/usr/bin/env bash
# Everything that is checked without running the code: format, clang-tidy on what changed, headers that compile alone,
# the direction of includes, raw calls, the tree's housekeeping, the list of cases, the documentation's
# commands, the list of libraries, and what the last build by launch/build.sh warned of.
#
#   tests/lint.sh [--base REV | --all]
#
#   --base REV  clang-tidy reads what differs from REV; default: where this branch left
#               origin/main, and on main itself the commit before
#   --all       clang-tidy reads everything
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

refuse() { echo "tests/lint.sh: $*; see --help" >&2; exit 2; }

default_base() {
  local fork
  fork=$(git merge-base HEAD origin/main 2>/dev/null) || true
  if [[ -z $fork || $fork == "$(git rev-parse HEAD)" ]]; then
    fork=$(git rev-parse --verify --quiet HEAD~1) || true
  fi
  echo "$fork"
}

base=default
while (($#)); do
  case $1 in
    --base) git rev-parse --verify --quiet "${2:-}^{commit}" >/dev/null || refuse "--base needs a revision"; base=$2; shift 2 ;;
    --all) base=""; shift ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
if [[ $base == default ]]; then base=$(default_base); fi

# Tracked and new files of the working tree; a deleted file is still tracked until committed.
cpp_files() {
  git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' | sort -u |
    while read -r file; do [[ ! -e $file ]] || echo "$file"; done
}

# What differs from the base in more than its lines of #include and its comments, which clang-tidy does not judge; a
# file that only moved does not differ. Without a base, everything counts as changed.
changed_files() {
  if [[ -z $base ]]; then cpp_files; return; fi
  git diff --find-renames -l0 --unified=0 --diff-filter=d "$base" | awk '
    /^--- (a\/|\/dev\/null)/ { next }
    /^\+\+\+ b\// { file = substr($0, 7); next }
    /^[-+]/ && (!/^[-+][ \t]*(#include|\/\/|$)/ || /NOLINT/) { changed[file] }
    END { for (file in changed) print file }'
  git ls-files --others --exclude-standard
}

# The files that the build compiles, without CUDA's, since clang does not know its compiler's flags. A file
# outside the build has no flags to read it with.
# The pages' snippets are extracted by a build, and judged by their readers.
compiled_files() {
  sed -n "s|^ *\"file\": \"$PWD/\(.*\.cpp\)\".*|\1|p" build/tidy/compile_commands.json | grep -v '^tests/docs/.*snippets' | sort -u
}

# A changed header is read through the .cpp of the same name.
files_to_tidy() {
  awk -F/ '{ stem = $NF; sub(/\.[a-z]+$/, "", stem) }
           NR == FNR { changed[stem]; next }
           stem in changed' <(changed_files) <(compiled_files)
}

format() { cpp_files | xargs -r clang-format --dry-run -Werror; }

# In a folder of its own, where each source is compiled by itself and with all that it includes.
configure_tidy() {
  cmake --preset release -B build/tidy -DCMAKE_UNITY_BUILD=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >build/tidy.log 2>&1 ||
    { tail -n 40 build/tidy.log; return 1; }
}

headers() {
  cmake --build build/tidy --target headers_compile_alone --parallel "$(nproc)" >build/headers.log 2>&1 &&
    ! grep 'warning:' build/headers.log || { grep -A 20 '^FAILED:' build/headers.log; return 1; }
}

tidy() {
  # GCC's warning options, which the compile commands carry, mean nothing to clang, and this option is an error.
  sed -i 's/ -mmemset-strategy=[^ ]*//g' build/tidy/compile_commands.json
  files_to_tidy | xargs -r -n 1 -P "$(nproc)" \
    clang-tidy -p build/tidy --quiet --extra-arg=-Wno-unknown-warning-option 2>&1 | sed '/^[0-9]* warnings\{0,1\} .*generated\.$/d'
}

compiler_warnings() { ! grep -hs 'warning:' build/release.log; }

failed=()
check() {
  echo "lint: $1"
  "${@:2}" || failed+=("$1")
}

launch/setup.sh lint
mkdir -p build
check "format" format
check "include direction" tests/checks/include_direction.sh
check "raw calls" tests/checks/raw_calls.sh
check "awaits" tests/checks/awaits.sh
check "tree" tests/checks/tree.sh
check "cases" tests/checks/cases.sh
check "commands" tests/checks/commands.sh
check "snippets" tests/checks/snippets.sh
check "third party" tests/checks/third_party.sh
check "compiler's warnings" compiler_warnings
check "configuration" configure_tidy
check "headers that compile alone" headers
check "clang-tidy" tidy

if ((${#failed[@]})); then
  printf 'lint: failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "lint: nothing found"
