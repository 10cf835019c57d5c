#!/usr/bin/env bash
# Packs what tests/gpu_first.sh runs, for a machine with a GPU that has neither a compiler nor a network: programs,
# the libraries that they need, Open MPI for one host, scripts and data. It takes programs of an existing build.
#
#   tests/gpu_bundle.sh [--build DIR] [--programs NAME,NAME,...] OUTPUT
#
#   OUTPUT        a new folder, or one that this script has made; at most 55 MiB; it works wherever it is put
#   --build DIR   the build folder; default: build/ of this checkout
#   --programs    what to pack from its bin/; default: what gpu_first.sh runs
#
# On the other machine, in bash:
#
#   source OUTPUT/env.sh          unpacks it once, finds CUDA's libraries and NCCL, sets the paths, says what it found
#   gpu_first.sh --within 480     or another program of the bundle: cohort-info, cohort-bench, gpu_digits, mpirun ...
#
# That machine needs x86-64, bash, tar, a glibc no older than the one here, NVIDIA's driver, and CUDA's runtime
# libraries and NCCL, from the toolkit or from pip.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly most_mib=55

refuse() { echo "gpu_bundle: $*; see --help" >&2; exit 2; }
fail() { echo "gpu_bundle: $*" >&2; exit 1; }

build=$root/build output='' programs=(cohort-info cohort-bench gpu_calls gpu_victim gpu_digits
  {cuda_devices,cuda_contexts,cuda_streams,cuda_graph,gpu_tensor,gpu_arithmetic,gpu_exchange,gpu_strategies}_test
  nccl_{communicator,graph,packing,memory,ranks,graph_ranks}_test)
while (($#)); do
  case $1 in
    --build) [[ -n ${2:-} ]] || refuse "--build needs a folder"; build=$2; shift 2 ;;
    --programs) [[ -n ${2:-} ]] || refuse "--programs needs names"; IFS=, read -ra programs <<<"$2"; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    -*) refuse "unknown option $1" ;;
    *) [[ -z $output ]] || refuse "two folders: $output and $1"; output=$1; shift ;;
  esac
done
[[ -n $output ]] || refuse "where to? There is no OUTPUT"
for tool in mpirun strip zstd; do command -v "$tool" >/dev/null || fail "$tool is missing; launch/setup.sh test installs it"; done
absent=()
for program in "${programs[@]}"; do [[ -x $build/bin/$program ]] || absent+=("$program"); done
((${#absent[@]} == 0)) || fail "not in $build/bin: ${absent[*]}; build them: cmake --build '$build' --target ${absent[*]}"
architectures=$(sed -n 's/^CMAKE_CUDA_ARCHITECTURES:[A-Z]*=//p' "$build/CMakeCache.txt")
[[ $architectures == *90* ]] || fail "$build has code for the GPU architectures '$architectures', not for 90 (H100, H200)"
if [[ -e $output && ! -f $output/bundle.tar.zst && -n $(ls -A "$output") ]]; then
  fail "$output holds something else than a bundle: name a new folder"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/cohort
mkdir -p "$tree/build/bin" "$tree/tests" "$tree/lib/spare" "$tree/etc/openmpi" "$tree/usr/bin"

for program in "${programs[@]}"; do strip -o "$tree/build/bin/$program" "$build/bin/$program"; done
cp -rL "$build/bin/data" "$tree/build/bin/data"
cp "$root/tests/gpu_first.sh" "$tree/tests/"

# Open MPI as Debian lays it out, without what needs the libraries of networks: there is one host.
plugins=$(find /usr/lib/x86_64-linux-gnu/openmpi/ -name mca_pml_ob1.so -printf '%h\n' -quit)
[[ -n $plugins ]] || fail "Open MPI's plug-ins are not where Debian puts them"
mkdir -p "$tree$plugins" "$tree/usr/share"
cp -r /usr/share/openmpi "$tree/usr/share/openmpi"
networks='lib(ucp|ucs|uct|ucm|fabric|psm|psm2|psm_infinipath|ibverbs|rdmacm|oshmem|nl-3)[.]|not found'
for plugin in "$plugins"/mca_*.so; do
  [[ $(ldd "$plugin") =~ $networks ]] || cp "$plugin" "$tree$plugins/"
done
pmix=/usr/lib/x86_64-linux-gnu/pmix2
mkdir -p "$tree$pmix/lib" "$tree$pmix/share"
cp -rL "$pmix/lib/pmix" "$tree$pmix/lib/pmix"
if [[ -d $pmix/share/pmix ]]; then cp -rL "$pmix/share/pmix" "$tree$pmix/share/"; fi
cp -L "$(command -v mpirun)" "$tree/usr/bin/mpirun"
cp -L "$(command -v orted)" "$tree/usr/bin/orted"  # for programs that are started without mpirun
cat >"$tree/etc/openmpi/openmpi-mca-params.conf" <<'END'
# One host, perhaps without a network.
oob_tcp_if_include = lo
btl_tcp_if_include = lo
btl = self,vader,tcp
plm = isolated
rmaps_base_oversubscribe = 1
hwloc_base_binding_policy = none
END

# The libraries of all that, apart from the C library, CUDA's and NCCL's. Those that other programs have, too, are
# taken only where the machine has none: its own are newer.
left_to_machine='^(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|cuda|cudart|cublas|cublasLt|nccl|nvidia-ml))[.]so'
own='^lib(mpi|open-rte|open-pal|mca_|pmix|hwloc|event|boost_|fmt|spdlog|hwy|isal|zip)'
{ find "$tree" -type f \( -path '*/bin/*' -o -name '*.so' \) -exec ldd {} + 2>/dev/null || true; } |
  awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
  while read -r name path; do
    [[ ! $name =~ $left_to_machine ]] || continue
    [[ $name =~ $own ]] && folder=$tree/lib || folder=$tree/lib/spare
    cp -L "$path" "$folder/$name"
  done
find "$tree" -name '*.so*' -type f -exec strip --strip-unneeded {} + 2>/dev/null || true

# zstd finds what the programs have in common, and comes along with what it needs.
mkdir -p "$work/output/unpack"
cp -L "$(command -v zstd)" "$work/output/unpack/"
ldd "$(command -v zstd)" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | while read -r name path; do
  [[ $name =~ $left_to_machine ]] || cp -L "$path" "$work/output/unpack/$name"
done
tar -C "$work" -c cohort | zstd -q -T0 -9 --long=27 -o "$work/output/bundle.tar.zst"
sha256sum <"$work/output/bundle.tar.zst" | cut -c 1-16 >"$work/output/bundle.id"
cp "$root/tests/gpu_bundle/env.sh" "$work/output/"
kib=$(du -sk "$work/output" | cut -f 1)
((kib <= most_mib * 1024)) || fail "it takes $((kib / 1024)) MiB, more than $most_mib"
rm -rf "$output"
mkdir -p "$(dirname "$output")"
mv "$work/output" "$output"
echo "gpu_bundle: $output, $((kib / 1024)) MiB: ${#programs[@]} programs for GPU architecture 90, $(mpirun --version | sed -n 1p)"
