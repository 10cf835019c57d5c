#!/usr/bin/env bash
# A program that is linked with Highway, or has it from a library, as many with vector kernels do, starts 4 ms later than
# without: when the library is loaded, before main(), it measures how finely the processor's clock can be read, for its
# benchmarks. Programs that never measure anything pay as well, in processor time, at each start of each process.
#
# Seen with libhwy1 1.0.3-3+deb12u1 of Debian 12, on an AMD EPYC: /bin/true takes 0.75 ms, and 4.9 ms with the library
# loaded; 0.95 ms with hwloc instead, which is ten times as large. The function is hwy::platform::TimerResolution, called
# by a constructor of the library. Highway has mended this in 2025 (google/highway pull request 2440).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq libhwy1=1.0.3-3+deb12u1 2>warnings || { cat warnings >&2; exit 1; }
dpkg -x libhwy1_*.deb root

cat >load.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static double processor_ms(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * 1e3 + used.tv_nsec / 1e6;
}

int main(int count, char** arguments) {
  const double before = processor_ms();
  if (count < 2 || dlopen(arguments[1], RTLD_NOW) == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  printf("%.2f\n", processor_ms() - before);
}
C
gcc -O1 -o load load.c
library=$(find "$PWD/root" -name libhwy.so.1)
g++ -shared -fPIC -x c++ -o empty.so - <<<'#include <string>
std::string text;'
# The median of 21 loads, each in a process of its own.
load() { for _ in {1..21}; do ./load "$1"; done | sort -n | sed -n 11p; }
own=$(load "$library") other=$(load "$PWD/empty.so")
echo "ms of processor time to load: Highway $own, a library of C++ that does nothing $other"
awk -v own="$own" -v other="$other" 'BEGIN { exit !(own > other + 1) }' || { echo "changed: Highway took a millisecond more, and longer" >&2; exit 1; }
