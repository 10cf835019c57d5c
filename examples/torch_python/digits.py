"""Trains a convolutional network on images of digits by DistributedDataParallel, one process per rank.

    torchrun --nproc-per-node=2 examples/torch_python/digits.py [--backend gloo] [--epochs 8]

All ranks together take the same batches whatever their number, so the losses agree but for roundings, which are small in
float64.
"""

import argparse
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

DATA = pathlib.Path(__file__).resolve().parent.parent / "digits" / "data" / "digits.csv"
BATCH = 48  # of all ranks together
TEST_IMAGES = 297


def load():
    rows = [[int(field) for field in line.split(",")] for line in DATA.read_text().splitlines()]
    table = torch.tensor(rows)
    images, labels = table[:, :64].reshape(-1, 1, 8, 8).double() / 16, table[:, 64]
    return (images[:-TEST_IMAGES], labels[:-TEST_IMAGES]), (images[-TEST_IMAGES:], labels[-TEST_IMAGES:])


def network():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cohort")
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    if options.backend == "cohort":
        import cohort_torch  # noqa: F401

    dist.init_process_group(options.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    (images, labels), (test_images, test_labels) = load()
    model = DistributedDataParallel(network().double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(options.epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        total = torch.zeros(1, dtype=torch.float64)
        steps = len(images) // BATCH
        for step in range(steps):
            own = order[step * BATCH : (step + 1) * BATCH].tensor_split(size)[rank]
            # Shares may differ by one image: each counts as much as the others.
            loss = nn.functional.cross_entropy(model(images[own]), labels[own], reduction="sum") / BATCH
            optimizer.zero_grad()
            (loss * size).backward()  # DistributedDataParallel divides by the number of ranks
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            with torch.no_grad():
                right = (model.module(test_images).argmax(1) == test_labels).double().mean()
            print(f"epoch {epoch + 1} loss {total.item() / steps:.6f} right {right.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
