"""A step of DistributedDataParallel on parameters of ResNet-50's shapes: what its communication adds to the step.

The gradients come layer by layer, as in a backward pass, after some computing each. Both backends take turns, with a step
in which DistributedDataParallel does everything, copies gradients into its buckets and back, but communicates nothing.
"""

import argparse
import statistics
import time

import cohort_torch
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def shapes_of_resnet50():
    """The parameters of ResNet-50 (He and others 2015, table 1), from the first layer to the last."""

    def convolution(inputs, outputs, kernel):
        return [(outputs, inputs, kernel, kernel), (outputs,), (outputs,)]

    shapes = convolution(3, 64, 7)
    inputs = 64
    for width, blocks in [(64, 3), (128, 4), (256, 6), (512, 3)]:
        for block in range(blocks):
            shapes += convolution(inputs, width, 1) + convolution(width, width, 3) + convolution(width, 4 * width, 1)
            if block == 0:
                shapes += convolution(inputs, 4 * width, 1)
            inputs = 4 * width
    return shapes + [(1000, 2048), (1000,)]


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ParameterList(nn.Parameter(torch.ones(shape)) for shape in shapes_of_resnet50())

    def forward(self, value):
        for parameter in self.layers:
            value = value * 0.5 + parameter.mean() * 0.5
        return value


def step_time(model):
    begin = time.perf_counter()
    model(torch.ones(1)).sum().backward()
    return time.perf_counter() - begin


def communicate_nothing(_, bucket):
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--heap", action="store_true", help="tensors lie in Cohort's heap, for both backends")
    options = parser.parse_args()
    torch.set_num_threads(1)
    step = "training step"
    if options.heap:
        cohort_torch.use_heap()
        step += " in the heap"
    dist.init_process_group("cpu:gloo")
    groups = {name: dist.new_group(backend=name) for name in ("gloo", "cohort")}
    models = {name: DistributedDataParallel(Layers(), process_group=group) for name, group in groups.items()}
    models["nothing"] = DistributedDataParallel(Layers(), process_group=groups["gloo"])
    models["nothing"].register_comm_hook(None, communicate_nothing)
    times = {name: [] for name in models}
    for turn in range(options.rounds + 2):
        for name, model in models.items():
            dist.barrier(group=groups["cohort"])
            seconds = step_time(model)
            if turn >= 2:  # buckets are arranged anew after the first step
                times[name].append(seconds)
    medians = {name: statistics.median(each) * 1e3 for name, each in times.items()}
    added = {name: max(medians[name] - medians["nothing"], 1e-3) for name in groups}
    if dist.get_rank() == 0:
        for name in groups:
            print(f"{step}, {name}: {medians[name]:.1f} ms, of which communication {added[name]:.1f} ms")
        print(f"{step}: gloo's communication over Cohort's {added['gloo'] / added['cohort']:.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
