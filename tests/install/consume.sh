# shellcheck shell=bash
# Sourced by tests: installs a build of Cohort into $work/prefix, and builds and runs a project against it.
#
#   consume CMAKE GENERATOR BUILD_DIR CONSUMER_DIR LAUNCHER...
: "${work:?}"

consume() {
  local cmake=$1 generator=$2 build=$3 consumer=$4 output
  shift 4
  # The name of a component, and so of the list of files that CMake leaves in the build folder: the list without
  # a name may belong to root there, after an installation for all users.
  "$cmake" --install "$build" --prefix "$work/prefix" --component Unspecified >"$work/install.log" 2>&1 ||
    fail "not installed: $(tail -n 20 "$work/install.log")"
  rm -f "$build/install_manifest_Unspecified.txt"

  "$cmake" -G "$generator" -S "$consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix"
  "$cmake" --build "$work/build"
  output=$("$@" "$work/build/consumer")
  echo "$output"
  [[ $output == "sum of ids 1, weight -1" ]]
}
