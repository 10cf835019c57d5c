#!/usr/bin/env bash
# In an all-reduce of PyTorch's gloo backend, what becomes of an element depends on its place in the tensor and on which
# rank holds what, for elements that are all alike. gloo divides a tensor among the ranks, and adds each part in another
# order of them: sums that are rounded differ, and MAX keeps or loses a NaN, since no comparison with one is true.
#
# Seen with torch 2.15.0 of PyPI, three ranks on one host, tensors of three equal elements:
#   SUM of float32 0.1, 1e7, -1e7:                [0.1, 0.1, 0.0]
#   SUM of bfloat16 256, 1, 1:                    [258, 258, 256]; 1, 1, 256: [256, 256, 256]
#   MAX of 0, 1, 2 with NaN in place of the 0:    [nan, nan, 2]; of the 1: [0, 0, nan]; of the 2: [1, 1, 1]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check torch==2.15.0

cat >places.py <<'PYTHON'
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

NAN = float("nan")
CASES = [
    ("SUM float32", dist.ReduceOp.SUM, torch.float32, [0.1, 1e7, -1e7]),
    ("SUM bfloat16", dist.ReduceOp.SUM, torch.bfloat16, [256, 1, 1]),
    ("SUM bfloat16", dist.ReduceOp.SUM, torch.bfloat16, [1, 1, 256]),
    ("MAX float32", dist.ReduceOp.MAX, torch.float32, [NAN, 1, 2]),
    ("MAX float32", dist.ReduceOp.MAX, torch.float32, [0, NAN, 2]),
    ("MAX float32", dist.ReduceOp.MAX, torch.float32, [0, 1, NAN]),
]


def member(rank, file):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=3)
    for name, operator, dtype, held in CASES:
        tensor = torch.full((3,), held[rank], dtype=dtype)
        dist.all_reduce(tensor, operator)
        if rank == 0:
            print(name, held, "->", ["%.3g" % element for element in tensor.tolist()], flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(member, (os.getcwd() + "/store",), nprocs=3)
PYTHON
GLOO_SOCKET_IFNAME=lo python/bin/python places.py 2>errors >seen || { cat errors >&2; exit 1; }
cat seen
diff - seen <<'SEEN' || { echo "changed: the lines with < were seen before" >&2; exit 1; }
SUM float32 [0.1, 10000000.0, -10000000.0] -> ['0.1', '0.1', '0']
SUM bfloat16 [256, 1, 1] -> ['258', '258', '256']
SUM bfloat16 [1, 1, 256] -> ['256', '256', '256']
MAX float32 [nan, 1, 2] -> ['nan', 'nan', '2']
MAX float32 [0, nan, 2] -> ['0', '0', 'nan']
MAX float32 [0, 1, nan] -> ['1', '1', '1']
SEEN
