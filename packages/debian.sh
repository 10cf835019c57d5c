#!/usr/bin/env bash
# Builds Debian packages of this tree, for the Debian that it runs on: libcohort0.1 (shared libraries), libcohort-dev and
# cohort-tools. They are for Debian's Open MPI, and without CUDA and libtorch. lintian looks at them.
#
#   packages/debian.sh [--output FOLDER] [--jobs N]
#
#   --output FOLDER   where the packages are put; default: build/debian/packages
#   --jobs N          compile jobs; default: one per core
#
# DEBFULLNAME and DEBEMAIL name the maintainer; default: the author of the last commit.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

refuse() { echo "packages/debian.sh: $*; see --help" >&2; exit 2; }

output=$root/build/debian/packages jobs=$(nproc)
while (($#)); do
  case $1 in
    --output) [[ -n ${2:-} ]] || refuse "--output needs a folder"; output=$2; shift 2 ;;
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || refuse "--jobs needs a number"; jobs=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
for program in dpkg-shlibdeps dpkg-architecture dpkg-buildflags help2man lintian; do
  command -v "$program" >/dev/null ||
    { echo "packages/debian.sh: there is no $program: apt-get install dpkg-dev help2man lintian" >&2; exit 1; }
done
"$root/launch/setup.sh" build

commit() { git -C "$root" log -1 --format="$1"; }
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(commit %ct)}
maintainer="${DEBFULLNAME:-$(commit %an)} <${DEBEMAIL:-$(commit %ae)}>"
umask 022

# Debian's flags, but not those for debuggers: symbols would be four fifths of the packages.
export DEB_CFLAGS_MAINT_STRIP=-g DEB_CXXFLAGS_MAINT_STRIP=-g DEB_BUILD_MAINT_OPTIONS=hardening=+bindnow
flags() { (cd "$root" && dpkg-buildflags --get "$1"); }
libraries=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
# The packages do without a search path for libraries, since theirs are where the loader looks.
cmake -S "$root" -B "$root/build/debian" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_FLAGS="$(flags CFLAGS) $(flags CPPFLAGS)" -DCMAKE_CXX_FLAGS="$(flags CXXFLAGS) $(flags CPPFLAGS)" \
  -DCMAKE_EXE_LINKER_FLAGS="$(flags LDFLAGS)" -DCMAKE_SHARED_LINKER_FLAGS="$(flags LDFLAGS)" \
  -DCMAKE_MODULE_LINKER_FLAGS="$(flags LDFLAGS)" \
  -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="$libraries" -DCOHORT_PRELOAD_FOLDER="$libraries/cohort" \
  -DCOHORT_ZSH_FOLDER=share/zsh/vendor-completions \
  -DCMAKE_SKIP_INSTALL_RPATH=ON -DBUILD_SHARED_LIBS=ON \
  -DMPI_C_COMPILER=mpicc.openmpi -DCOHORT_CUDA=OFF -DCOHORT_TORCH=OFF \
  -DCOHORT_BUILD_TESTS=OFF -DCOHORT_BUILD_EXAMPLES=OFF \
  -DCOHORT_DEBIAN_MAINTAINER="$maintainer" -DCOHORT_DEBIAN_DATE="$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
cmake --build "$root/build/debian" --parallel "$jobs"

mkdir -p "$output"
rm -f "$output"/*cohort*.deb
(cd "$root/build/debian" && cpack -G DEB -B "$(realpath "$output")")
rm -rf "$output/_CPack_Packages"
lintian --fail-on error "$output"/*.deb
ls -l "$output"/*.deb
