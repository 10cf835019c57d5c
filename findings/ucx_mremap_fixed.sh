#!/usr/bin/env bash
# Once UCX watches a process's memory, as it does under MPICH and Open MPI that use it, mremap() with MREMAP_FIXED does not
# move pages to the address that it is given: UCX puts a function of four arguments in place of the C library's, and the
# fifth, the new address, is lost. What arrives in its place is left to chance. A program that asks whether the call has
# failed, and not where the pages are, goes on with the old ones.
#
# Seen with libucx0 1.13.1-1 of Debian 12: before UCX watches, the pages are where they were asked for; afterwards they are
# not: at address 0 for root, and for others the call fails. UCX has mended this (openucx/ucx issue 8820).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq libucx0=1.13.1-1 libnuma1=2.0.16-1 2>warnings || { cat warnings >&2; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done

cat >remap.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void ignore(int type, void* event, void* argument) {}

static const char* remap(void) {
  enum { kBytes = 1 << 20 };
  char* const there = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* const fresh = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(there, 1, kBytes);
  memset(fresh, 2, kBytes);
  mremap(fresh, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, there);
  return there[0] == 2 && there[kBytes - 1] == 2 ? "the new pages" : "the old pages";
}

int main(void) {
  printf("before: %s\n", remap());
  if (dlopen("libucs.so.0", RTLD_LAZY | RTLD_GLOBAL) == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  void* const ucm = dlopen("libucm.so.0", RTLD_LAZY | RTLD_GLOBAL);
  if (ucm == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  enum { kVmMapped = 1 << 16, kVmUnmapped = 1 << 17 };
  int (*const watch)(int, int, void (*)(int, void*, void*), void*) =
      (int (*)(int, int, void (*)(int, void*, void*), void*))dlsym(ucm, "ucm_set_event_handler");
  if (watch == NULL || watch(kVmMapped | kVmUnmapped, 0, ignore, NULL) != 0) return 1;
  printf("while UCX watches: %s\n", remap());
}
C
gcc -O1 -o remap remap.c
LD_LIBRARY_PATH=$(find "$PWD/root" -name 'libucm.so.0' -printf '%h') ./remap | tee seen
diff - seen <<'SEEN' || { echo "changed: the lines with < were seen before" >&2; exit 1; }
before: the new pages
while UCX watches: the old pages
SEEN
