"""Decodes tokens with a small transformer of random weights, its layers divided among the ranks.

    torchrun --nproc-per-node=2 examples/torch_python/decode.py [--backend gloo] [--tokens 16]

Attention heads and the hidden units of the feed-forward layers are spread over the ranks (tensor parallelism): each
layer needs two all-reduces of one token's state. The text is the same on any number of ranks that divides the heads.
"""

import argparse
import time

import torch
import torch.distributed as dist

LAYERS, HEADS, WIDTH, VOCABULARY = 4, 8, 256, 96


class Layer:
    """This rank's heads and hidden units of one layer."""

    def __init__(self, generator, rank, size):
        def weight(rows, columns):
            return torch.randn(rows, columns, generator=generator, dtype=torch.float64).float() / rows**0.5

        heads = torch.arange(HEADS).tensor_split(size)[rank]
        self.heads = len(heads)
        self.per_head = WIDTH // HEADS
        columns = (heads.unsqueeze(1) * self.per_head + torch.arange(self.per_head)).flatten()
        self.query, self.key, self.value = (weight(WIDTH, WIDTH)[:, columns] for _ in range(3))
        self.project = weight(WIDTH, WIDTH)[columns]
        units = torch.arange(4 * WIDTH).tensor_split(size)[rank]
        self.up, self.down = weight(WIDTH, 4 * WIDTH)[:, units], weight(4 * WIDTH, WIDTH)[units]
        self.keys = torch.empty(self.heads, 0, self.per_head)
        self.values = torch.empty(self.heads, 0, self.per_head)

    def attend(self, state):
        query, key, value = (
            (state @ matrix).reshape(self.heads, 1, self.per_head) for matrix in (self.query, self.key, self.value)
        )
        self.keys = torch.cat([self.keys, key], dim=1)
        self.values = torch.cat([self.values, value], dim=1)
        weights = torch.softmax(query @ self.keys.transpose(1, 2) / self.per_head**0.5, dim=-1)
        return (weights @ self.values).reshape(-1) @ self.project

    def feed_forward(self, state):
        return torch.relu(state @ self.up) @ self.down


def normalized(state):
    return torch.nn.functional.layer_norm(state, (WIDTH,))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cohort")
    parser.add_argument("--tokens", type=int, default=16)
    options = parser.parse_args()
    if options.backend == "cohort":
        import cohort_torch  # noqa: F401

    dist.init_process_group(options.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    if HEADS % size:
        raise SystemExit(f"decode: {HEADS} heads cannot be divided among {size} ranks")
    generator = torch.Generator().manual_seed(5)
    layers = [Layer(generator, rank, size) for _ in range(LAYERS)]
    embedding, output = (torch.randn(VOCABULARY, WIDTH, generator=generator) for _ in range(2))
    communication = 0.0

    def add_up(part):
        nonlocal communication
        begin = time.perf_counter()
        dist.all_reduce(part)
        communication += time.perf_counter() - begin
        return part

    token, text = 0, []
    begin = time.perf_counter()
    for _ in range(options.tokens):
        state = embedding[token]
        for layer in layers:
            state = state + add_up(layer.attend(normalized(state)))
            state = state + add_up(layer.feed_forward(normalized(state)))
        token = int((normalized(state) @ output.T).argmax())
        text.append(token)
    seconds = time.perf_counter() - begin
    if rank == 0:
        print("tokens", *text)
        print(f"{seconds / options.tokens * 1e3:.2f} ms a token, {communication / seconds * 100:.1f} % in all-reduces")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
