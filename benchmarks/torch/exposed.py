"""What communication adds to a training step of PyTorch's DistributedDataParallel over gloo.

The nets, the steps and the lines that are printed are those of exposed.cpp:

    python exposed.py RANK RANKS PORT NET STEPS MODEL.csv     NET: profile or convolutional
"""
import csv
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WARM_UPS = 5
PROFILE_ROWS = 32
COLUMNS = 64
IMAGES = 32


class Profile(nn.Module):
    """A chain of layers with the parameters of a profile."""

    def __init__(self, file):
        super().__init__()
        with open(file, newline="") as lines:
            sizes = [int(row["elements"]) for row in csv.DictReader(lines)]
        self.layers = nn.ParameterList(
            0.01 * torch.randn((n // COLUMNS, COLUMNS) if n % COLUMNS == 0 and n > 4096 else (n,)) for n in sizes
        )

    def forward(self, inputs):
        total = torch.zeros(())
        for layer in self.layers:
            total = layer.matmul(inputs + total).mean() if layer.dim() == 2 else total + layer.mean()
        return total


def convolutional():
    def convolution(inputs, outputs):
        return nn.Conv2d(inputs, outputs, 3, padding=1)

    return nn.Sequential(
        convolution(3, 32), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        convolution(32, 64), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        convolution(64, 128), nn.BatchNorm2d(128), nn.ReLU(), nn.Flatten(),
        nn.Linear(128 * 8 * 8, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def milliseconds(step):
    """Of a step, from cleared gradients to reduced ones, after a barrier."""
    dist.barrier()
    begin = time.perf_counter()
    step()
    return 1e3 * (time.perf_counter() - begin)


def median_of_slowest(times):
    slowest = torch.tensor(times, dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return statistics.median_high(slowest.tolist())


def measure(name, net, loss, steps):
    model = DistributedDataParallel(net, gradient_as_bucket_view=True)

    def step():
        model.zero_grad(set_to_none=True)
        loss(model).backward()

    together, alone = [], []
    for i in range(-WARM_UPS, steps):
        with_communication = milliseconds(step)
        with model.no_sync():
            without = milliseconds(step)
        if i >= 0:
            together.append(with_communication)
            alone.append(without)
    with_communication, without = median_of_slowest(together), median_of_slowest(alone)
    if dist.get_rank() == 0:
        exposed = with_communication - without
        print(f"{name},{dist.get_world_size()},{with_communication:.3f},{without:.3f},{exposed:.3f}")


def main():
    rank, ranks, port, name, steps = sys.argv[1:6]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=int(rank), world_size=int(ranks))
    if name == "profile":
        inputs = torch.randn(COLUMNS, PROFILE_ROWS)
        measure(name, Profile(sys.argv[6]), lambda model: model(inputs), int(steps))
    else:
        images, labels = torch.randn(IMAGES, 3, 32, 32), torch.randint(10, (IMAGES,))
        loss = nn.functional.cross_entropy
        measure(name, convolutional(), lambda model: loss(model(images), labels), int(steps))
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # a thread of gloo that is still there at a regular end aborts the process now and then


main()
