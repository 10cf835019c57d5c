#!/usr/bin/env bash
# Compares Cohort with gloo under PyTorch: collectives of both in turns, in the same processes, and a training step and
# the decoding of tokens with each.
#
#   benchmarks/pytorch.sh [options]
#
#   --python PATH   a Python that has PyTorch and this package; by default that of launch/pytorch.sh, which is run if
#                   it is missing (PyTorch comes from PyPI, 3 GB)
#   --ranks LIST    default 2,4
#   --rounds N      turns of each backend; default 5
#   --largest N     bytes of the largest call; default 67108864
#
# The last line has the geometric mean of gloo's time over Cohort's for all-reduces, and the least with its size.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)

refuse() { echo "pytorch.sh: $*; see --help" >&2; exit 2; }

python='' ranks=2,4 rounds=5 largest=67108864
while (($#)); do
  case $1 in
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
    --python | --ranks | --rounds | --largest) (($# > 1)) || refuse "$1 needs a value" ;;&
    --python) python=$2 ;;
    --ranks) [[ $2 =~ ^[0-9]+(,[0-9]+)*$ ]] || refuse "--ranks $2: write numbers, for example 2,4"; ranks=$2 ;;
    --rounds) rounds=$2 ;;
    --largest) largest=$2 ;;
    *) refuse "unknown option $1" ;;
  esac
  shift 2
done

if [[ -z $python ]]; then
  python=$root/build/pytorch/bin/python
  "$python" -c 'import cohort_torch' 2>/dev/null || "$root/launch/pytorch.sh"
fi

export OMP_NUM_THREADS=1
# torchrun leaves folders there.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
output=$TMPDIR/ratios
touch "$output"
for count in ${ranks//,/ }; do
  "$python" -m torch.distributed.run --nproc-per-node="$count" "$here/pytorch/collectives.py" --rounds "$rounds" \
    --largest "$largest" 2>&1 | grep -v Warning | tee -a "$output" | grep -v '^ratio '
  for memory in "" --heap; do
    "$python" -m torch.distributed.run --nproc-per-node="$count" "$here/pytorch/training_step.py" --rounds "$rounds" $memory 2>&1 |
      grep -v Warning
  done
  "$python" -m torch.distributed.run --nproc-per-node="$count" "$here/pytorch/decoding.py" --rounds "$rounds" 2>&1 |
    grep -v Warning
done
awk '
  $1 == "ratio" && $2 == "all_reduce" {
    sum += log($5); count++
    if (!least || $5 < least) { least = $5; at = $4 }
  }
  $1 == "ratio" && $2 != "all_reduce" {
    other[$2] += log($5); others[$2]++
    if (!(($2) in worst) || $5 < worst[$2]) worst[$2] = $5
  }
  END {
    for (call in other) printf "%s: geometric mean %.2f, worst %.2f\n", call, exp(other[call] / others[call]), worst[call]
    if (!count) { print "pytorch: nothing was measured"; exit 1 }
    printf "pytorch: geometric mean %.2f, worst %.2f at %d\n", exp(sum / count), least, at
  }' "$output"
