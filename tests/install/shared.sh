#!/usr/bin/env bash
# BUILD_SHARED_LIBS makes shared libraries that install, link and run. They consist of the same objects as the
# static ones, so nothing is compiled here but the project that uses them. The configuration has COHORT_TORCH=OFF
# beside a libtorch that would stop it.
#
#   shared.sh CMAKE SOURCE_DIR BUILD_DIR BUILD_TYPE CONSUMER_DIR LAUNCHER...
set -euo pipefail
cmake=$1 source=$2 static=$3 type=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "shared: $*" >&2; exit 1; }
# shellcheck source=tests/install/consume.sh
source "$(dirname "${BASH_SOURCE[0]}")/consume.sh"

mkdir "$work/torch" "$work/shared"
echo 'message(FATAL_ERROR "this libtorch needs CUDA")' >"$work/torch/TorchConfig.cmake"
mapfile -t same < <(grep -E '^(COHORT_CUDA|COHORT_WARNINGS_AS_ERRORS|CMAKE_(C|CXX|CUDA)_(COMPILER|FLAGS|HOST_COMPILER)|MPI_C_COMPILER):[A-Z]+=' \
  "$static/CMakeCache.txt" | sed 's/^/-D/')
"$cmake" -S "$source" -B "$work/shared" -G Ninja -DCMAKE_BUILD_TYPE="$type" "${same[@]}" -DBUILD_SHARED_LIBS=ON -DCOHORT_BUILD_TESTS=OFF \
  -DCOHORT_BUILD_BENCHMARKS=OFF -DCOHORT_TORCH=OFF -DTorch_DIR="$work/torch" >"$work/shared.log" 2>&1 ||
  fail "not configured: $(tail -n 20 "$work/shared.log")"

other=$(comm -23 <(compile_commands "$work/shared" | grep -v ' -o examples/') <(compile_commands "$static"))
[[ -z $other ]] || fail "compiled in another way than for static libraries: $other"

cd "$work/shared"
mapfile -t links < <("$cmake" --build . -- -t commands | grep -E ' -shared | -o bin/cohort-(checkpoint|info|supervise) | qc (tools/supervise|preload)/|cmake_symlink_library')
((${#links[@]} > 9)) || fail "only ${#links[@]} libraries and programs: ${links[*]}"
for link in "${links[@]}"; do
  for object in $(grep -oE '[^ ]+\.o( |$)' <<<"$link"); do
    mkdir -p "$(dirname "$object")"
    ln -sf "$static/$object" "$object"
  done
  (eval "$link") >link.log 2>&1 || fail "not linked: $(tail -n 20 link.log)"
done

consume "$cmake" Ninja "$work/shared" "$@"
consume_by_pkg_config "$work/shared" "$@"
linked=$(ldd "$work/build/consumer")
[[ $linked == *"libcohort_train.so.0."*" => $work/prefix/"* ]] || fail "the program is linked with: $linked"
"$work/prefix/bin/cohort-info" >/dev/null || fail "the installed cohort-info does not run"
