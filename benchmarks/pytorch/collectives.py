"""One run of benchmarks/pytorch.sh: collectives of gloo and of Cohort in turns, in the same processes.

Started by torchrun. Rank 0 prints a table, and lines for the script: `ratio <call> <dtype> <bytes> <ratio>`.
"""

import argparse
import statistics
import time

import cohort_torch  # noqa: F401
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: F401

SECONDS_OF_A_TURN = 0.05
MOST_CALLS = 2000
BACKENDS = ("gloo", "cohort")


def sizes_to(largest):
    size = 4
    while size <= largest:
        yield size
        size *= 4 if size != 4 else 16
    if size // 4 < largest:
        yield largest


class Call:
    """A collective over one group, on tensors of its own."""

    def __init__(self, name, dtype, size, group, ranks):
        elements = max(size // dtype.itemsize, 1)
        block = max(elements // ranks, 1)
        self.tensor = torch.ones(elements, dtype=dtype)
        self.row = torch.ones(block * ranks, dtype=dtype)
        self.other_row = torch.ones(block * ranks, dtype=dtype)
        self.block = torch.ones(block, dtype=dtype)
        self.make = {
            "all_reduce": lambda: dist.all_reduce(self.tensor, group=group),
            "all_gather": lambda: dist.all_gather_into_tensor(self.row, self.block, group=group),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(self.block, self.row, group=group),
            "broadcast": lambda: dist.broadcast(self.tensor, 0, group=group),
            "all_to_all": lambda: dist.all_to_all_single(self.other_row, self.row, group=group),
        }[name]


def time_of(call, count):
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


class Benchmark:
    def __init__(self, rounds):
        self.rounds = rounds
        self.rank = dist.get_rank()
        self.ranks = dist.get_world_size()
        self.groups = {name: dist.new_group(backend=name) for name in BACKENDS}
        self.control = self.groups["cohort"]

    def slowest(self, seconds):
        tensor = torch.tensor([seconds], dtype=torch.float64)
        dist.all_reduce(tensor, dist.ReduceOp.MAX, group=self.control)
        return tensor.item()

    def compare(self, name, dtype, size):
        calls = {key: Call(name, dtype, size, group, self.ranks) for key, group in self.groups.items()}
        counts = {}
        for key, call in calls.items():
            seconds = self.slowest(time_of(call.make, 3))
            counts[key] = max(2, min(MOST_CALLS, int(SECONDS_OF_A_TURN / seconds)))
        times = {key: [] for key in calls}
        for _ in range(self.rounds):
            for key, call in calls.items():
                # The data stays finite, and is in the caches as a program's would be.
                for tensor in (call.tensor, call.row, call.block):
                    tensor.fill_(0 if name != "broadcast" else 1)
                dist.barrier(group=self.control)
                times[key].append(self.slowest(time_of(call.make, counts[key])))
        gloo, cohort = (statistics.median(times[key]) * 1e6 for key in BACKENDS)
        if self.rank == 0:
            kind = str(dtype).removeprefix("torch.")
            print(f"{name:15} {kind:9} {size:10d} {gloo:12.2f} {cohort:12.2f} {gloo / cohort:8.2f}", flush=True)
            print(f"ratio {name} {kind} {size} {gloo / cohort:.4f}", flush=True)


def cost_of_pytorch(rounds):
    """Microseconds of a call whose backend does nothing."""
    tensor = torch.ones(1)
    group = dist.new_group(backend="fake")
    return statistics.median(time_of(lambda: dist.all_reduce(tensor, group=group), 2000) for _ in range(rounds)) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--largest", type=int, default=64 << 20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo")
    benchmark = Benchmark(options.rounds)
    nothing = cost_of_pytorch(options.rounds)
    if benchmark.rank == 0:
        print(f"# PyTorch {torch.__version__}, {benchmark.ranks} ranks; microseconds, medians of {options.rounds}")
        print(f"# a call of 4 bytes to a backend that does nothing: {nothing:.2f} us")
        print(f"{'call':15} {'dtype':9} {'bytes':>10} {'gloo':>12} {'cohort':>12} {'ratio':>8}")
    for dtype in (torch.float32, torch.bfloat16):
        for size in sizes_to(options.largest):
            benchmark.compare("all_reduce", dtype, size)
    for name in ("all_gather", "reduce_scatter", "broadcast", "all_to_all"):
        for size in (1 << 10, 64 << 10, 1 << 20, 16 << 20):
            if size <= options.largest:
                benchmark.compare(name, torch.float32, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
