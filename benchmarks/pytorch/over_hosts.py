"""All-reduces of float32 over hosts, by gloo and by Cohort in turns. Started by mpirun; the argument is the host of rank 0.

tests/cluster/hosts.sh run --hosts 2 --rate 1gbit --ranks-per-host 1 --share "$PWD" -- build/pytorch/bin/python \
    benchmarks/pytorch/over_hosts.py n0
"""

import os
import statistics
import sys
import time

import cohort_torch  # noqa: F401, by which PyTorch before 2.15 knows the backend
import torch
import torch.distributed as dist


def main():
    rank, size = (int(os.environ[name]) for name in ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
    store = dist.TCPStore(sys.argv[1], 29501, size, rank == 0)
    dist.init_process_group("cohort", store=dist.PrefixStore("cohort", store), rank=rank, world_size=size)
    groups = {"gloo": dist.new_group(backend="gloo"), "cohort": dist.group.WORLD}
    for size_in_bytes in (4, 64 << 10, 1 << 20, 4 << 20, 64 << 20):
        tensor = torch.empty(size_in_bytes // 4)
        times = {name: [] for name in groups}
        for _ in range(9 if size_in_bytes < 4 << 20 else 5):
            for name, group in groups.items():
                tensor.fill_(1)
                dist.barrier()
                begin = time.perf_counter()
                dist.all_reduce(tensor, group=group)
                times[name].append((time.perf_counter() - begin) * 1e3)
                assert tensor.eq(size).all()
        if rank == 0:
            row = ", ".join(f"{name} {statistics.median(t):.3f} ms (least {min(t):.3f})" for name, t in times.items())
            print(f"{size_in_bytes} bytes: {row}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
