#!/usr/bin/env bash
# What launch/build.sh shows of a build, by a CMake that only pretends, that a build folder of somebody else is
# refused in words, and what launch/setup.sh and check-names.sh advise.
#
#   build_script.sh BUILD_SH
set -euo pipefail
umask 022  # another user calls the copies

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "build_script: $*" >&2; exit 1; }
contains() { [[ $2 == *"$1"* ]] || fail "no '$1' in: $2"; }
chmod 755 "$scratch"
mkdir -p "$scratch/tree/launch" "$scratch/bin"
cp "$1" "$scratch/tree/launch/build.sh"

# 40 steps, of which step $FAILING fails.
cat >"$scratch/bin/cmake" <<'END'
#!/usr/bin/env bash
[[ $1 == --build ]] || exit 0
for ((i = 1; i <= 40; i++)); do
  if ((i == ${FAILING:-0})); then
    printf 'FAILED: thing.o\nno such thing\n[%d/40] Building another\nninja: stopped\n' $((i + 1))
    exit 1
  fi
  echo "[$i/40] Building $i"
done
END
chmod +x "$scratch/bin/cmake"
export PATH=$scratch/bin:$PATH
build=("$scratch/tree/launch/build.sh" release 2)

echo "a line for each tenth"
said=$("${build[@]}" 2>&1) || fail "it fails: $said"
[[ $(wc -l <<<"$said") == 12 ]] || fail "not 12 lines: $said"
contains "build: 4 of 40 steps, 0:0" "$said"
contains "build: 40 of 40 steps" "$said"
[[ $(grep -c '^\[' "$scratch/tree/build/release.log") == 40 ]] || fail "the log has: $(<"$scratch/tree/build/release.log")"

echo "one line that is rewritten on a terminal"
said=$(script -qec "$(printf '%q ' "${build[@]}")" /dev/null </dev/null) || fail "it fails: $said"
[[ $said =~ "build: 1 of 40 steps, 0:0"[0-9]" min"$'\r'"build: 2 of 40" ]] || fail "it does not rewrite its line: $said"
[[ $(wc -l <<<"$said") == 3 ]] || fail "not 3 lines: $said"

echo "a step that fails"
status=0
said=$(FAILING=7 "${build[@]}" 2>&1) || status=$?
((status == 1)) || fail "status $status after a failure: $said"
contains $'FAILED: thing.o\nno such thing' "$said"
contains "everything is in build/release.log" "$said"

echo "a build folder that belongs to somebody else, or to the same user without permission"
as_other=()
if ((EUID == 0)); then as_other=(setpriv --reuid=65534 --regid=65534 --clear-groups); else chmod a-w "$scratch/tree/build"; fi
refuses() {
  status=0
  said=$("${as_other[@]}" "${build[@]}" 2>&1) || status=$?
  ((status == 1)) || fail "status $status: $said"
  [[ $(wc -l <<<"$said") == 1 ]] || fail "more than a line: $said"
  contains "$scratch/tree$1 belongs to $(id -un), and " "$said"
  contains "chown -R " "$said"
}
refuses /build
if ((EUID == 0)); then
  chown 65534 "$scratch/tree/build"
  refuses /build/release.log
  rm "$scratch/tree/build/release.log"
  touch "$scratch/tree/build/install_manifest.txt"
  said=$("${as_other[@]}" "${build[@]}" 2>&1) || fail "an installation by root is in the way: $said"
  rm -rf "$scratch/tree/build"
  refuses ""
fi
chmod u+w "$scratch/tree"/* || true

echo "missing packages without root: what to run instead"
printf '#!/bin/sh\nexit 1\n' | tee "$scratch/bin/dpkg-query" "$scratch/bin/apt-get" >"$scratch/bin/sudo"
chmod +x "$scratch/bin"/*
cp "$(dirname "$1")/setup.sh" "$scratch/tree/launch"
status=0
said=$("${as_other[@]}" "$scratch/tree/launch/setup.sh" build 2>&1) || status=$?
((status == 1)) || fail "status $status without packages: $said"
contains "as root, run: apt-get update && apt-get install --no-install-recommends cmake ninja-build" "$said"

echo "localhost without an address, and with one"
for found in 2 0; do
  printf '#!/bin/sh\n[ "$2" = localhost ] && exit %d\nexit 0\n' "$found" >"$scratch/bin/getent"
  chmod +x "$scratch/bin/getent"
  said=$("$(dirname "$1")/check-names.sh" 2>&1) || fail "it fails: $said"
  if ((found == 2)); then contains "'127.0.0.1 localhost' to /etc/hosts" "$said"; elif [[ -n $said ]]; then fail "it says: $said"; fi
done
echo "build_script: passed"
