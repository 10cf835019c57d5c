"""Tokens of a transformer with tensor parallelism, one sequence: the share of time that communication takes."""

import argparse
import statistics
import time

import cohort_torch  # noqa: F401
import torch
import torch.distributed as dist

WIDTH, LAYERS, TOKENS = 2048, 8, 8


class Shard:
    """This rank's part of the layers: two products before and two after each sum over the ranks."""

    def __init__(self, ranks):
        generator = torch.Generator().manual_seed(1)
        part = WIDTH // ranks

        def weight(rows, columns):
            return torch.randn(rows, columns, generator=generator) / rows**0.5

        self.layers = [
            (weight(WIDTH, 3 * part), weight(part, WIDTH), weight(WIDTH, 4 * part), weight(4 * part, WIDTH))
            for _ in range(LAYERS)
        ]

    def token(self, state, group):
        communication = 0.0

        def add_up(value):
            nonlocal communication
            begin = time.perf_counter()
            dist.all_reduce(value, group=group)
            communication += time.perf_counter() - begin
            return value

        for attend, project, up, down in self.layers:
            state = state + add_up((state @ attend)[:, : project.shape[0]] @ project) * 0.1
            state = state + add_up(torch.relu(state @ up) @ down) * 0.1
            state = state / state.norm() * WIDTH**0.5
        return state, communication


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("cpu:gloo")
    groups = {name: dist.new_group(backend=name) for name in ("gloo", "cohort")}
    shard = Shard(dist.get_world_size())
    shares = {name: [] for name in groups}
    times = {name: [] for name in groups}
    for turn in range(options.rounds + 1):
        for name, group in groups.items():
            state = torch.ones(1, WIDTH)
            dist.barrier(group=groups["cohort"])
            begin = time.perf_counter()
            communication = 0.0
            for _ in range(TOKENS):
                state, more = shard.token(state, group)
                communication += more
            seconds = time.perf_counter() - begin
            if turn > 0:
                shares[name].append(communication / seconds)
                times[name].append(seconds / TOKENS)
    if dist.get_rank() == 0:
        for name in groups:
            share, seconds = statistics.median(shares[name]), statistics.median(times[name])
            print(f"decoding, {name}: {seconds * 1e3:.2f} ms a token, {share * 100:.1f} % of it in all-reduces")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
