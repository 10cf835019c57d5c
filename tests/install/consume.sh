# shellcheck shell=bash
# Sourced by tests of what is installed or built in another way. `work` is their temporary folder.
: "${work:?}"

# compile_commands BUILD_DIR: how its files are compiled, wherever that is. Paths with blanks have quotes.
compile_commands() {
  sed -n 's/^ *"command": //p' "$1/compile_commands.json" | sed -e 's#\\*"##g' -e "s#$1#BUILD#g" | sort
}

# install_from_pypi PYTHON PREFIX PACKAGE...: with their programs in PREFIX/bin. What pip says is in $work/pip.log.
install_from_pypi() {
  # Debian's Python would install below PREFIX/local.
  DEB_PYTHON_INSTALL_LAYOUT=deb_system "$1" -m pip install --quiet --root-user-action=ignore --disable-pip-version-check --no-compile \
    --retries 1 --timeout 10 --ignore-installed --prefix "$2" "${@:3}" >"$work/pip.log" 2>&1 </dev/null
}

# install_to_prefix CMAKE BUILD_DIR: a build of Cohort into $work/prefix. By components, which have lists of files of their
# own in the build folder: the list without a name may belong to root there, after an installation for all users.
install_to_prefix() {
  local component
  for component in cohort_runtime cohort_development cohort_tools; do
    "$1" --install "$2" --prefix "$work/prefix" --component "$component" >"$work/install.log" 2>&1 ||
      fail "not installed: $(tail -n 20 "$work/install.log")"
    rm -f "$2/install_manifest_$component.txt"
  done
}

# consume_by_pkg_config BUILD_DIR CONSUMER_DIR LAUNCHER...: after `consume`, by a command of the compiler's own.
consume_by_pkg_config() {
  local consumer=$2 compiler pc said flags output
  compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$1/CMakeCache.txt")
  shift 2
  if ! command -v pkg-config >/dev/null; then
    echo "no pkg-config here: not tried"
    return
  fi
  pc=$(find "$work/prefix" -name cohort-mpi.pc)
  said=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs cohort-mpi) || fail "pkg-config does not find it"
  eval "flags=($said)"  # it quotes the blanks of a folder, for a shell
  "$compiler" -std=c++20 "$consumer/main.cpp" -o "$work/by_pkg_config" "${flags[@]}" "-Wl,-rpath,$(dirname "$(dirname "$pc")")" ||
    fail "not compiled or linked with ${flags[*]}"
  output=$("$@" "$work/by_pkg_config")
  echo "$output"
  [[ $output == "sum of ids 1, weight -1" ]] || fail "by pkg-config, it says: $output"
}

# consume CMAKE GENERATOR BUILD_DIR CONSUMER_DIR LAUNCHER...: installs a build of Cohort into $work/prefix, and builds
# and runs a project against it.
consume() {
  local cmake=$1 generator=$2 build=$3 consumer=$4 output
  shift 4
  install_to_prefix "$cmake" "$build"

  "$cmake" -G "$generator" -S "$consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix"
  "$cmake" --build "$work/build"
  output=$("$@" "$work/build/consumer")
  echo "$output"
  [[ $output == "sum of ids 1, weight -1" ]]
}
