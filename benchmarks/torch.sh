#!/usr/bin/env bash
# Compares Cohort's libtorch::DistributedModel with PyTorch's DistributedDataParallel over gloo: installs PyTorch
# 2.15.0 from PyPI, builds with its libtorch, and measures in turns what communication adds to a training step on
# 2 ranks of this machine, one thread each.
#
#   benchmarks/torch.sh [--rounds N] [--steps N] [--ranks N]     default 5, 20, 2
#
# TORCH_VENV names a virtual environment that has PyTorch already; otherwise one is made below build/ (5.4 GB).
#
# The nets are a chain of layers with ResNet-50's parameters, and a small convolutional network. Exposed is the median
# time of a step less that of a step within no_sync, of the slowest rank; printed are medians of the rounds, and in the
# last line their sum over both nets. Both sides have glibc keep the memory that is freed: otherwise a step of no_sync,
# whose gradients are allocated together, takes longest, for the system has to map their pages.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)

refuse() { echo "torch.sh: $*; see --help" >&2; exit 2; }
say() { echo "torch.sh: $*" >&2; }

rounds=5 steps=20 ranks=2
while (($#)); do
  case $1 in
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
    --rounds | --steps | --ranks)
      [[ ${2-} =~ ^[1-9][0-9]{0,3}$ ]] || refuse "$1 ${2-}: write a whole number from 1 to 9999"
      declare "${1#--}=$2" ;;
    *) refuse "unknown argument $1" ;;
  esac
  shift 2
done

venv=${TORCH_VENV:-$root/build/torch-venv}
if [[ ! -x $venv/bin/python ]]; then
  say "installing PyTorch in $venv"
  python3 -m venv "$venv" || refuse "python3 with venv is needed: apt-get install python3-venv"
fi
torch_of_venv() { "$venv/bin/python" -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2>/dev/null; }
[[ -n $(torch_of_venv) ]] || "$venv/bin/pip" install --quiet torch==2.15.0 numpy
torch=$(torch_of_venv)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

say "building with the libtorch of $torch"
"$root/launch/setup.sh" >&2
build() {
  # PyTorch's CUDA libraries find NCCL when they are loaded.
  cmake -G Ninja -S "$root" -B "$root/build/torch" -DCMAKE_BUILD_TYPE=Release -DCOHORT_TORCH=ON -DCOHORT_CUDA=OFF \
    -DCOHORT_BUILD_TESTS=OFF -DCOHORT_BUILD_EXAMPLES=OFF -DCOHORT_BUILD_TOOLS=OFF -DCMAKE_PREFIX_PATH="$torch" \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined && ninja -C "$root/build/torch" torch_exposed
}
if ! build >"$scratch/log" 2>&1; then
  cat "$scratch/log" >&2
  say "the build failed; PyPI's libtorch asks for a CUDA toolkit"
  exit 1
fi

# shellcheck source=launch/mpirun-env.sh
source "$root/launch/mpirun-env.sh"
export OMP_NUM_THREADS=1 MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=17179869184

# Both print: net,ranks,step_ms,alone_ms,exposed_ms
run_cohort() { mpirun -n "$ranks" --bind-to none "$root/build/torch/bin/torch_exposed" "$@"; }
run_ddp() {
  local rank others=() port=$((20000 + RANDOM % 10000))
  for ((rank = 1; rank < ranks; ++rank)); do
    "$venv/bin/python" "$here/torch/exposed.py" "$rank" "$ranks" "$port" "$@" &
    others+=($!)
  done
  "$venv/bin/python" "$here/torch/exposed.py" 0 "$ranks" "$port" "$@"
  for rank in "${others[@]}"; do wait "$rank"; done
}

for ((round = 1; round <= rounds; ++round)); do
  say "round $round of $rounds"
  for net in profile convolutional; do
    for library in cohort ddp; do
      # The small network's steps are short, and vary.
      count=$steps
      [[ $net == profile ]] || count=$((4 * steps))
      "run_$library" "$net" "$count" "$here/models/resnet50.csv" 2>>"$scratch/log" |
        sed "s/^/$library,/" >>"$scratch/rows" ||
        { cat "$scratch/log" >&2; say "$library failed in round $round"; exit 1; }
    done
  done
done

awk -F, -v OFS=, '
  function median(values, count,   i, j, kept) {
    for (i = 2; i <= count; ++i)
      for (j = i; j > 1 && values[j] < values[j - 1]; --j) {
        kept = values[j]
        values[j] = values[j - 1]
        values[j - 1] = kept
      }
    return (values[int((count + 1) / 2)] + values[int(count / 2) + 1]) / 2
  }
  function of(net, library, column,   i, values) {
    for (i = 1; i <= rows[net, library]; ++i) values[i] = cell[net, library, column, i]
    return median(values, rows[net, library])
  }
  {
    ranks = $3
    ++rows[$2, $1]
    for (i = 4; i <= 6; ++i) cell[$2, $1, i, rows[$2, $1]] = $i
  }
  END {
    print "net,library,ranks,step_ms,alone_ms,exposed_ms,ratio"
    split("profile convolutional", nets, " ")
    split("cohort ddp", libraries, " ")
    for (n = 1; n <= 2; ++n)
      for (l = 1; l <= 2; ++l) {
        exposed = of(nets[n], libraries[l], 6)
        sum[l] += exposed
        ratio = l == 1 ? sprintf("%.3f", exposed / of(nets[n], "ddp", 6)) : ""
        printf "%s,%s,%d,%.2f,%.2f,%.2f,%s\n", nets[n], libraries[l], ranks, of(nets[n], libraries[l], 4),
          of(nets[n], libraries[l], 5), exposed, ratio
      }
    printf "exposed: cohort %.2f ms, torch DDP %.2f ms, ratio %.3f\n", sum[1], sum[2], sum[1] / sum[2]
  }' "$scratch/rows"
