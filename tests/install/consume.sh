# shellcheck shell=bash
# Sourced by tests of what is installed or built in another way. `work` is their temporary folder.
: "${work:?}"

# compile_commands BUILD_DIR: how its files are compiled, wherever that is. Paths with blanks have quotes.
compile_commands() {
  sed -n 's/^ *"command": //p' "$1/compile_commands.json" | sed -e 's#\\*"##g' -e "s#$1#BUILD#g" | sort
}

# consume CMAKE GENERATOR BUILD_DIR CONSUMER_DIR LAUNCHER...: installs a build of Cohort into $work/prefix, and builds
# and runs a project against it.

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
