#!/usr/bin/env bash
# Says whether programs that were linked with the shared libraries of one revision work with those of another, as they are. Builds the
# shared libraries of both, writes what is promised of their ABI as XML (abidw), and compares (abidiff). Added functions are no change.
# What is promised: docs/install.md; what is not, is left out by abi_promised.awk (functions) and abi.suppr (types). Templates and other
# code that is in headers alone is compiled into programs, and is not compared.
#
#   packages/abi_check.sh BASE [NEW] [--only LAYERS] [--output FOLDER] [--jobs N]
#
#   BASE, NEW         revisions; without NEW: the working tree
#   --only LAYERS     some libraries, as base,device; default: all, but those for CUDA and libtorch
#   --output FOLDER   where sources, builds and XML are kept, so that a next run is short; default: build/abi
#   --jobs N          compile jobs; default: one per core
#
# Exit status: 0 if compatible, 1 if not or for failure, 2 for wrong usage. Needs Debian's abigail-tools.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

refuse() { echo "abi_check.sh: $*; see --help" >&2; exit 2; }
fail() { echo "abi_check.sh: $*" >&2; exit 1; }

revisions=() only='' output=$root/build/abi jobs=$(nproc)
while (($#)); do
  case $1 in
    --only) [[ ${2:-} =~ ^[a-z]+(,[a-z]+)*$ ]] || refuse "--only takes names of layers"; only=${2//,/ }; shift 2 ;;
    --output) [[ -n ${2:-} ]] || refuse "--output needs a folder"; output=$2; shift 2 ;;
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || refuse "--jobs needs a number"; jobs=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
    -*) refuse "unknown option $1" ;;
    *) revisions+=("$1"); shift ;;
  esac
done
((${#revisions[@]} == 1 || ${#revisions[@]} == 2)) || refuse "name the revision to compare with"
for program in abidw abidiff; do
  command -v "$program" >/dev/null || fail "there is no $program: apt-get install abigail-tools"
done
for revision in "${revisions[@]}"; do
  git -C "$root" rev-parse --quiet --verify "$revision^{commit}" >/dev/null || refuse "there is no revision $revision"
done
mkdir -p "$output"
output=$(realpath "$output")

# sources SIDE [REVISION]: in $output/SIDE, with the times that the files have.
sources() {
  mkdir -p "$output/$1"
  find "$output/$1" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  if [[ -n ${2:-} ]]; then
    git -C "$root" archive "$2" | tar -x -C "$output/$1"
  else
    (cd "$root" && git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
      [[ ! -e $file ]] || printf '%s\0' "$file"
    done | tar --null -T - -c) | tar -x -C "$output/$1"
  fi
}

# build SIDE: its shared libraries, with what abidw reads, in $output/SIDE/build. Both sides have one cache.
build() {
  local folder=$output/$1/build targets=() layer
  cmake -S "$output/$1" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-g -O0" -DBUILD_SHARED_LIBS=ON \
    -DCOHORT_CUDA=OFF -DCOHORT_TORCH=OFF -DCOHORT_BUILD_TESTS=OFF -DCOHORT_BUILD_EXAMPLES=OFF -DCOHORT_BUILD_BENCHMARKS=OFF \
    -DCOHORT_BUILD_TOOLS=OFF >"$output/$1.log" 2>&1 || fail "$1 is not configured: $(tail -n 20 "$output/$1.log")"
  for layer in $only; do targets+=("cohort_$layer"); done
  CCACHE_NOHASHDIR=1 cmake --build "$folder" --parallel "$jobs" ${targets:+--target "${targets[@]}"} >>"$output/$1.log" 2>&1 ||
    fail "$1 is not built: $(tail -n 30 "$output/$1.log")"
}

# dump SIDE: what is promised of each library, as $output/SIDE.LIBRARY.xml.
dump() {
  local library name headers=$output/$1.headers
  rm -rf "$headers" "$output/$1".*.xml
  mkdir "$headers"
  cp -r "$output/$1/include/cohort" "$output/$1/build/include/cohort" "$headers"
  find "$headers" -name detail -type d -prune -exec rm -rf {} +
  while read -r library; do
    name=$(basename "$library")
    [[ -z $only || " $only " == *" ${name:10:-3} "* ]] || continue
    nm -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$output/$1.symbols"
    paste "$output/$1.symbols" <(c++filt <"$output/$1.symbols") |
      awk -f "$root/packages/abi_promised.awk" <(find "$headers" -name '*.h' -exec cat {} +) - >"$output/$1.promised"
    abidw --headers-dir "$headers" --drop-private-types --no-corpus-path --no-comp-dir-path --no-show-locs \
      --suppressions "$root/packages/abi.suppr" --kmi-whitelist "$output/$1.promised" --out-file "$output/$1.$name.xml" "$library" ||
      fail "abidw cannot read $library"
    printf '%s: %s: %d of %d symbols are promised\n' "$1" "$name" "$(($(wc -l <"$output/$1.promised") - 1))" "$(wc -l <"$output/$1.symbols")"
  done < <(find "$output/$1/build" -name 'libcohort_*.so' | sort)
}

# A revision's folder has its name, so that Ninja never takes another one's objects for its own; the working tree's is `tree`.
base=$(git -C "$root" rev-parse --short "${revisions[0]}^{commit}") new=tree
[[ -z ${revisions[1]:-} ]] || new=$(git -C "$root" rev-parse --short "${revisions[1]}^{commit}")
sources "$base" "$base"
sources "$new" "${revisions[1]:-}"
for side in "$base" "$new"; do
  build "$side"
  dump "$side"
done

status=0
for before in "$output/$base".*.xml; do
  name=${before##*/"$base".}
  if [[ ! -e $output/$new.$name ]]; then
    echo "${name%.xml}: there is no such library any more"
    status=1
  elif report=$(abidiff --suppressions "$root/packages/abi.suppr" --no-added-syms "$before" "$output/$new.$name"); then
    echo "${name%.xml}: compatible"
  else
    echo "${name%.xml}: not compatible"
    echo "$report"
    status=1
  fi
done
exit "$status"
