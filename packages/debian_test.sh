#!/usr/bin/env bash
# Tries Debian packages where nothing else is: makes a Debian 12 root in a temporary folder, installs them there, builds
# the project of tests/install/consumer by CMake and by pkg-config, and runs both on two ranks, as well as a program of MPI with
# --accelerate-memory. Needs root, debootstrap, a mirror of Debian and 2 GB. What it mounts, others do not see, and nothing is left.
#
#   packages/debian_test.sh [--packages FOLDER] [--mirror URL]
#
#   --packages FOLDER   what packages/debian.sh has made; default: build/debian/packages
#   --mirror URL        default: http://deb.debian.org/debian
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

refuse() { echo "packages/debian_test.sh: $*; see --help" >&2; exit 2; }
fail() { echo "packages/debian_test.sh: $*" >&2; exit 1; }

packages=$root/build/debian/packages mirror=http://deb.debian.org/debian
given=("$@")
while (($#)); do
  case $1 in
    --packages) [[ -n ${2:-} ]] || refuse "--packages needs a folder"; packages=$2; shift 2 ;;
    --mirror) [[ -n ${2:-} ]] || refuse "--mirror needs a URL"; mirror=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
((EUID == 0)) || fail "only root can make a Debian root"
command -v debootstrap >/dev/null || fail "there is no debootstrap: apt-get install debootstrap"
compgen -G "$packages/*cohort*.deb" >/dev/null || fail "no packages in $packages: packages/debian.sh makes them"

# In a namespace of its own: the mounts end with the processes.
if [[ -z ${COHORT_DEBIAN_TEST:-} ]]; then
  COHORT_DEBIAN_TEST=inside exec unshare --mount --pid --fork --kill-child "$0" "${given[@]}"
fi
clean=$(mktemp -d /tmp/cohort-debian.XXXXXX)
end() {
  umount -l "$clean"/{dev/shm,sys,proc} 2>/dev/null || true
  rm -rf --one-file-system "$clean" "$clean.log"
}
trap end EXIT

# quietly COMMAND...: what it says matters only when it fails.
quietly() { "$@" >"$clean.log" 2>&1 </dev/null || fail "'$*': $(tail -n 30 "$clean.log")"; rm -f "$clean.log"; }
inside() { chroot "$clean" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"; }

echo "a Debian 12 root"
quietly debootstrap --variant=minbase bookworm "$clean" "$mirror"
mount -t proc proc "$clean/proc"
mount -t sysfs -o ro sysfs "$clean/sys"  # lscpu counts cores there, for cohort-run
mkdir -p "$clean/dev/shm" "$clean/packages"
mount -t tmpfs tmpfs "$clean/dev/shm"
cp "$packages"/*cohort*.deb "$clean/packages"
cp -r "$root/tests/install/consumer" "$clean/consumer"

echo "the packages"
chmod -R a+rX "$clean/packages"
quietly inside apt-get -q update
quietly inside sh -c 'apt-get -q -y install --no-install-recommends /packages/*.deb'
for tool in run info checkpoint supervise bench; do
  said=$(inside "cohort-$tool" --version) || fail "cohort-$tool does not run"
  echo "  $said"
  inside test -e "/usr/share/man/man1/cohort-$tool.1.gz" -a -e "/usr/share/bash-completion/completions/cohort-$tool" ||
    fail "cohort-$tool has no manual page or completion"
done
missing=$(inside sh -c 'ldd /usr/bin/cohort-* /usr/lib/*/libcohort_*.so 2>/dev/null | grep "not found"') || true
[[ -z $missing ]] || fail "libraries are missing: $missing"

echo "a project, by CMake and by pkg-config"
quietly inside apt-get -q -y install --no-install-recommends cmake make g++ pkg-config
quietly inside cmake -S /consumer -B /by_cmake
quietly inside cmake --build /by_cmake
# shellcheck disable=SC2016  # the shell inside expands it
quietly inside sh -c 'g++ -std=c++20 /consumer/main.cpp -o /by_pkg_config $(pkg-config --cflags --libs cohort-mpi)'

# expect COMMAND...: two ranks of the project say what they should.
expect() {
  local said
  said=$(inside "$@") || fail "'$*' fails: $said"
  echo "  $said"
  [[ $said == "sum of ids 1, weight -1" ]] || fail "'$*' says: $said"
}
for program in /by_cmake/consumer /by_pkg_config; do
  expect env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 "$program"
  expect cohort-run -n 2 "$program"
done

echo "a program of MPI"
cat >"$clean/sums.c" <<'END'
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  enum { kCount = 1 << 20 };
  int* numbers = calloc(kCount, sizeof(int));
  for (int call = 0; call < 10; ++call) MPI_Allreduce(MPI_IN_PLACE, numbers, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return MPI_Finalize();
}
END
quietly inside mpicc /sums.c -o /sums
said=$(inside env COHORT_RUN_NUMBERS=1 cohort-run -n 2 --accelerate-memory /sums 2>&1) || fail "it fails with --accelerate-memory: $said"
for line in 'MPI_Allreduce of rank 0: .* by Cohort' "KiB of rank 0's memory were moved"; do
  grep -E "$line" <<<"$said" | sed 's/^/  /' || fail "its numbers are not there: $said"
done

echo "removal"
quietly inside apt-get -q -y purge 'libcohort*' cohort-tools
left=$(inside find /usr /etc -name '*cohort*')
[[ -z $left ]] || fail "these are left: $left"
echo "all is well"
