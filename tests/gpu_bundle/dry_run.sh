#!/usr/bin/env bash
# Does what a machine with a GPU would do with a bundle, over the stand-ins: in a root that holds a shell, its tools
# and CUDA's libraries, and no network, the bundle is unpacked and gpu_first.sh run.
#
#   dry_run.sh BUILD_FOLDER STAND_IN...
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} != inside ]]; then
  cannot() { echo "gpu_bundle: skipped: $*"; exit 77; }
  ((EUID == 0)) || cannot "a root of its own takes root"
  unshare --mount --pid --net --fork true 2>/dev/null || cannot "namespaces are not permitted here"
  command -v zstd >/dev/null || cannot "no zstd"
  grep -q '^CMAKE_CUDA_ARCHITECTURES:.*90' "$1/CMakeCache.txt" || cannot "the build is not for GPU architecture 90"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/root"
  "$scripts/../gpu_bundle.sh" --build "$1" "$work/bundle"
  status=0
  unshare --mount --pid --net --fork --kill-child "${BASH_SOURCE[0]}" inside "$work" "$@" || status=$?
  exit "$status"
fi

fail() { echo "gpu_bundle: $*" >&2; exit 1; }
work=$2 root=$2/root build=$3
shift 3
mount -t tmpfs tmpfs "$root"
mkdir -p "$root"/{bin,sbin,lib64,proc,sys,dev,tmp,etc,stand-ins,usr/local/cuda/lib64,"a place"}
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
ip link set lo up

# with_libraries FILE...: copies what the loader needs for them to the same places.
with_libraries() {
  local path
  { ldd "$@" || true; } | sed -nE 's/^\t(.* => )?(\/[^ ]+) \(.*/\2/p' | sort -u | while read -r path; do
    mkdir -p "$root$(dirname "$path")"
    cp -L "$path" "$root$path"
  done
}
tools=(bash sh env timeout mkdir mktemp rm mv cp cat head tail cut stat tee sed grep tr dirname date sleep uname tar nproc)
for tool in "${tools[@]}"; do
  cp -L "$(command -v "$tool")" "$root/bin/$tool"
  with_libraries "$root/bin/$tool"
done
ln -s ../bin "$root/usr/bin"
for library in m dl rt pthread resolv util; do  # the rest of the C library
  path=$(ldconfig -p | sed -n "s/^\tlib$library\.so\.[0-9]* (libc6,x86-64.*) => //p")
  cp -L "$path" "$root$path"
done
cp -L "$@" "$root/stand-ins/"
cp -r "$work/bundle" "$root/a place/bundle"
for missing in libfmt.so libmpi.so libhwloc.so libstdc++.so; do
  [[ -z $(find "$root" -path '*/bundle' -prune -o -name "$missing*" -print) ]] || fail "the root is not bare: $missing"
done

there=(chroot "$root" env -i PATH=/bin:/sbin HOME=/tmp COHORT_NCCL_LIBRARY=/stand-ins/libnccl_stand_in.so bash -c)
if "${there[@]}" 'source "/a place/bundle/env.sh"' >"$work/without" 2>&1; then fail "it does not miss CUDA"; fi
for said in '^bundle: libcudart.so.13 *not found: ' 'cannot start without CUDA'; do
  grep -q "$said" "$work/without" || fail "it does not say that CUDA is missing: $(<"$work/without")"
done
ldd "$build/bin/gpu_digits" | awk '$1 ~ /^lib(cudart|cublas|cublasLt)[.]/ { print $1, $3 }' | while read -r name path; do
  : >"$root/usr/local/cuda/lib64/$name"
  mount --bind "$(realpath "$path")" "$root/usr/local/cuda/lib64/$name"
done

status=0
# shellcheck disable=SC2016  # expanded there
"${there[@]}" 'source "/a place/bundle/env.sh" || exit
  export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/stand-ins LD_PRELOAD=libgpu_stand_in.so:libgpu_digits_stand_in.so GPU_STAND_IN_DEVICES=1
  gpu_first.sh --within 480 --logs /tmp/logs' || status=$?
logs=$root/tmp/logs
if ((status != 0)); then
  tail -n 30 "$logs"/*.log >&2 || true
  fail "gpu_first.sh ends with $status"
fi
[[ $(cut -c 4-11 "$logs/table" | sort | uniq -c | tr -s ' ' | paste -sd,) =~ ' 8 passed' ]] || fail "not all has passed"
grep -q '^9  left out .*no compute-sanitizer' "$logs/table" || fail "what is left out is not said"
(($(du -sk "$logs" | cut -f 1) < 10240)) || fail "the logs are larger than 10 MiB"
echo "gpu_bundle: passed"
