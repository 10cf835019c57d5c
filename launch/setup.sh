#!/usr/bin/env bash
# Installs the Debian packages that Cohort needs. With all of them in place it says
# nothing and needs no root. Each set contains the one before it.
#
#   launch/setup.sh [build|test|lint]     default: build
#   launch/setup.sh docs                  for launch/docs.sh, nothing else
#
# Without apt-get it only lists what is expected; CMake will name what is missing.
set -euo pipefail

packages=()
case ${1:-build} in
  lint) packages+=(git clang-format clang-tidy) ;&
  test)
    packages+=(
      libgtest-dev libgmock-dev
      iproute2 procps  # virtual hosts
      gdb  # stacks of tests that hang
      help2man  # manual pages
      pkg-config  # a test
      valgrind  # counts instructions
      slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
      libtorch-dev  # three examples
      python3 python3-dev python3-pip python3-venv  # the Python package; tests that take safetensors, NumPy and tensorboard from PyPI
      python3-torch  # one test
      zstd  # packs programs for machines with a GPU
    ) ;&
  build)
    packages+=(
      cmake ninja-build g++ ccache
      openmpi-bin libopenmpi-dev
      libboost-program-options-dev libfmt-dev libspdlog-dev nlohmann-json3-dev
      libhwloc-dev libhwy-dev libdlpack-dev libisal-dev libzip-dev libssl-dev
      libeigen3-dev  # examples and tests
    ) ;;
  docs) packages+=(doxygen python3 python3-venv) ;;
  -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
  *) echo "setup: unknown set '$1': build, test, lint or docs" >&2; exit 2 ;;
esac

if [[ -z $(type -t apt-get) ]]; then
  echo "setup: no apt-get here; expected, by their Debian names: ${packages[*]}" >&2
  exit 0
fi

# dpkg-query fails when it does not know one of the names, but still lists the others.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
  sed -n 's/^installed //p') || true
mapfile -t missing < <(printf '%s\n' "${packages[@]}" | grep -vxF "$installed")
((${#missing[@]})) || exit 0

install="apt-get install --no-install-recommends ${missing[*]}"
as_root=(env DEBIAN_FRONTEND=noninteractive)
if ((EUID != 0)); then
  if ! sudo true 2>/dev/null; then
    echo "setup: missing: ${missing[*]}; as root, run: apt-get update && $install" >&2
    exit 1
  fi
  as_root=(sudo "${as_root[@]}")
fi

# apt's output matters only when it fails.
quietly() {
  local output
  output=$("${as_root[@]}" "$@" 2>&1 </dev/null) && return
  printf '%s\n' "$output" | tail -n 20 >&2
  echo "setup: '$*' failed" >&2
  exit 1
}

echo "setup: installing ${missing[*]}"
quietly apt-get -q update
quietly apt-get -q -y install --no-install-recommends "${missing[@]}"
