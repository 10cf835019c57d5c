#!/usr/bin/env bash
# hwloc's plugin for displays asks the resolver for "localhost" once for each of ten possible X displays, although
# DISPLAY is unset and no X server runs. Open MPI's mpirun loads every plugin of hwloc when it starts, so where
# /etc/hosts lacks localhost and the name server is slow or silent, each start takes ten times the resolver's wait or more.
# HWLOC_COMPONENTS=-gl leaves the plugin out.
#
# Seen with hwloc 2.9.0-1, libxnvctrl0 525.85.05-3~deb12u1 and Open MPI 4.1.4-3+b1 of Debian 12:
#   lstopo-no-graphics: 10 lookups of localhost; with HWLOC_COMPONENTS=-gl: 0
#   mpirun -n 1 true:   20 lookups of localhost; with HWLOC_COMPONENTS=-gl: 0
# With a resolver that answered after 1.4 s, mpirun took 14 s to start; with -gl, 0.2 s.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq -o APT::Sandbox::User=root download hwloc-nox=2.9.0-1 libhwloc15=2.9.0-1 libhwloc-plugins=2.9.0-1 libxnvctrl0=525.85.05-3~deb12u1 \
  libx11-6 libxext6 libxcb1 libxau6 libxdmcp6 libbsd0 libmd0 libpciaccess0 ocl-icd-libopencl1 libltdl7 libnuma1 libxml2 libicu72 \
  openmpi-bin=4.1.4-3+b1 libopenmpi3=4.1.4-3+b1 openmpi-common=4.1.4-3 libevent-core-2.1-7 libevent-pthreads-2.1-7
for package in *.deb; do dpkg -x "$package" root; done
libraries=$folder/root/usr/lib/x86_64-linux-gnu

# Counts the lookups of localhost.
cat >count.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

static int lookups;

int getaddrinfo(const char* name, const char* service, const struct addrinfo* hints, struct addrinfo** found) {
  int (*next)(const char*, const char*, const struct addrinfo*, struct addrinfo**);
  *(void**)&next = dlsym(RTLD_NEXT, "getaddrinfo");
  if (name != NULL && strcmp(name, "localhost") == 0) ++lookups;
  return next(name, service, hints, found);
}

__attribute__((destructor)) static void report(void) {
  if (lookups > 0) fprintf(stderr, "lookups of localhost: %d\n", lookups);
}
C
gcc -shared -fPIC -o count.so count.c -ldl

# lookups COMMAND...: how often the command and its processes asked.
lookups() {
  env -u DISPLAY LD_PRELOAD="$folder/count.so" LD_LIBRARY_PATH="$libraries" HWLOC_PLUGINS_PATH="$libraries/hwloc" "$@" 2>&1 >/dev/null |
    awk -F': ' '/^lookups of localhost/ { sum += $2 } END { print sum + 0 }'
}
# expect WHAT COUNT SEEN
expect() {
  echo "$1: $3 lookups of localhost"
  [[ $2 == "$3" ]] || { echo "changed: $2 before" >&2; exit 1; }
}

lstopo=$folder/root/usr/bin/lstopo-no-graphics
expect "lstopo" 10 "$(lookups "$lstopo")"
expect "lstopo without gl" 0 "$(lookups env HWLOC_COMPONENTS=-gl "$lstopo")"
mpirun=(env OPAL_PREFIX="$folder/root/usr" OPAL_LIBDIR="$libraries" OPAL_PKGDATADIR="$folder/root/usr/share/openmpi"
  OMPI_MCA_mca_base_component_path="$libraries/openmpi/lib/openmpi3"
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$folder/root/usr/bin/mpirun.openmpi" -n 1 true)
expect "mpirun" 20 "$(lookups "${mpirun[@]}")"
expect "mpirun without gl" 0 "$(lookups env HWLOC_COMPONENTS=-gl "${mpirun[@]}")"
