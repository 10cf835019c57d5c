"""Each collective against a plain computation, for all dtypes, and tensors of all kinds."""

import torch
import torch.distributed as dist
from support import on_ranks

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
COMPLEX = [torch.complex64, torch.complex128]
SHAPES = [(1,), (), (0,), (3, 5), (1000,), (70000,)]


def values(rank, dtype, shape=(3, 5)):
    """Small whole numbers, whose sums are exact in all dtypes, and which differ between ranks and places."""
    count = int(torch.tensor(shape).prod()) if shape else 1
    numbers = (torch.arange(count) * 3 + rank * 5) % 7 + 1
    if dtype == torch.bool:
        return (numbers % 2 == 0).reshape(shape)
    return numbers.to(dtype).reshape(shape)


def of_all(size, dtype, shape=(3, 5)):
    return torch.stack([values(rank, dtype, shape) for rank in range(size)])


def assert_same(tensor, expected):
    assert tensor.dtype == expected.dtype
    assert torch.equal(tensor, expected), f"{tensor} is not {expected}"


@on_ranks(1, 2, 3)
def test_all_reduce_sums_all_dtypes_and_shapes(rank, size):
    for dtype in FLOATS + INTEGERS + COMPLEX:
        for shape in SHAPES:
            tensor = values(rank, dtype, shape)
            dist.all_reduce(tensor)
            assert_same(tensor, of_all(size, dtype, shape).sum(0).to(dtype))


@on_ranks(2, 3)
def test_all_reduce_takes_all_operators(rank, size):
    op = dist.ReduceOp
    for dtype in FLOATS + INTEGERS:
        everything = of_all(size, dtype)
        wide = everything.to(torch.float64)
        for operator, expected in [
            (op.PRODUCT, wide.prod(0)),
            (op.MIN, wide.amin(0)),
            (op.MAX, wide.amax(0)),
        ]:
            tensor = values(rank, dtype)
            dist.all_reduce(tensor, operator)
            assert_same(tensor, expected.to(dtype))
    for dtype in INTEGERS + [torch.bool]:
        everything = of_all(size, dtype)
        for operator, function in [
            (op.BAND, torch.bitwise_and),
            (op.BOR, torch.bitwise_or),
            (op.BXOR, torch.bitwise_xor),
        ]:
            expected = everything[0]
            for other in everything[1:]:
                expected = function(expected, other)
            tensor = values(rank, dtype)
            dist.all_reduce(tensor, operator)
            assert_same(tensor, expected)
    for dtype in FLOATS:
        tensor = values(rank, dtype)
        dist.all_reduce(tensor, op.AVG)
        torch.testing.assert_close(tensor, of_all(size, dtype).to(torch.float64).mean(0).to(dtype))
    tensor = values(rank, torch.int64)
    dist.all_reduce(tensor, op.AVG)
    assert_same(tensor, of_all(size, torch.int64).sum(0).div(size, rounding_mode="trunc"))
    for dtype in FLOATS:
        tensor = values(rank, dtype)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
        assert_same(tensor, (of_all(size, dtype) * 0.5).sum(0).to(dtype))


@on_ranks(2)
def test_bools_are_combined_as_truths(rank, size):
    op = dist.ReduceOp
    everything = of_all(size, torch.bool)
    for operator, expected in [(op.SUM, everything.any(0)), (op.PRODUCT, everything.all(0))]:
        tensor = values(rank, torch.bool)
        dist.all_reduce(tensor, operator)
        assert_same(tensor, expected)


@on_ranks(2, 3)
def test_a_nan_wins_min_and_max_in_every_place(rank, size):
    for dtype in FLOATS:
        for operator in [dist.ReduceOp.MIN, dist.ReduceOp.MAX]:
            for elements in [3, 1000, 70000]:
                for holder in range(size):
                    tensor = torch.full((elements,), float(rank), dtype=dtype)
                    if rank == holder:
                        tensor.fill_(float("nan"))
                    dist.all_reduce(tensor, operator)
                    assert tensor.isnan().all()


@on_ranks(3)
def test_sums_do_not_depend_on_who_holds_what_or_where(rank, size):
    for turn in range(size):
        tensor = torch.full((5000,), [256.0, 1.0, 1.0][(rank + turn) % 3], dtype=torch.bfloat16)
        dist.all_reduce(tensor)
        assert (tensor == 258).all()
    for elements in [3, 1000, 70000]:
        tensor = torch.full((elements,), [0.1, 1e7, -1e7][rank])
        dist.all_reduce(tensor)
        assert (tensor == tensor[0]).all()


@on_ranks(2, 3)
def test_the_same_call_gives_the_same_bits_every_time(rank, size):
    generator = torch.Generator().manual_seed(rank)
    inputs = [torch.randn(n, generator=generator) for n in (1, 100, 5000, 100000)]
    first = None
    for _ in range(8):
        results = [tensor.clone() for tensor in inputs]
        for tensor in results:
            dist.all_reduce(tensor)
        first = first or results
        assert all(torch.equal(a, b) for a, b in zip(results, first))


@on_ranks(2)
def test_strided_tensors_are_reduced_where_they_are(rank, size):
    base = torch.zeros(4, 6)
    base[:, ::2] = rank + 1
    dist.all_reduce(base[:, ::2])
    assert (base[:, ::2] == 3).all() and (base[:, 1::2] == 0).all()
    images = torch.full((2, 3, 4, 4), float(rank + 1)).to(memory_format=torch.channels_last)
    dist.all_reduce(images)
    assert (images == 3).all()
    turned = torch.arange(6.0).reshape(2, 3).t() * (rank + 1)
    dist.broadcast(turned, 1)
    assert_same(turned, torch.arange(6.0).reshape(2, 3).t() * 2)


@on_ranks(2, 3)
def test_broadcast_and_reduce_have_roots(rank, size):
    for dtype in FLOATS + INTEGERS + COMPLEX + [torch.bool]:
        for root in range(size):
            tensor = values(rank, dtype)
            dist.broadcast(tensor, root)
            assert_same(tensor, values(root, dtype))
    for dtype in FLOATS + INTEGERS:
        for root in range(size):
            tensor = values(rank, dtype)
            dist.reduce(tensor, root)
            if rank == root:
                assert_same(tensor, of_all(size, dtype).sum(0).to(dtype))
    tensor = torch.tensor([rank + 1])
    dist.reduce(tensor, 0, dist.ReduceOp.BOR)
    assert rank != 0 or tensor.item() == (3 if size > 1 else 1)


@on_ranks(1, 2, 3)
def test_gathers_and_scatters(rank, size):
    for dtype in FLOATS + INTEGERS + COMPLEX + [torch.bool]:
        for shape in [(3, 5), (0,), ()]:
            own = values(rank, dtype, shape)
            parts = [torch.empty(shape, dtype=dtype) for _ in range(size)]
            dist.all_gather(parts, own)
            assert_same(torch.stack(parts), of_all(size, dtype, shape))
            whole = torch.empty((size, *shape), dtype=dtype)
            dist.all_gather_into_tensor(whole.view(-1) if not shape else whole, own)
            assert_same(whole, of_all(size, dtype, shape))
            for root in range(size):
                parts = [torch.empty(shape, dtype=dtype) for _ in range(size)] if rank == root else None
                dist.gather(own, parts, dst=root)
                if rank == root:
                    assert_same(torch.stack(parts), of_all(size, dtype, shape))
                mine = torch.empty(shape, dtype=dtype)
                dist.scatter(mine, list(of_all(size, dtype, shape)) if rank == root else None, src=root)
                assert_same(mine, own)


@on_ranks(2)
def test_rows_of_one_tensor_are_gathered_in_place(rank, size):
    table = torch.zeros(size, 1000)
    dist.all_gather(list(table.unbind()), torch.full((1000,), rank + 1.0))
    assert_same(table, torch.arange(1.0, size + 1).unsqueeze(1).expand(size, 1000))


@on_ranks(1, 2, 3)
def test_reduce_scatter(rank, size):
    for dtype in FLOATS + INTEGERS:
        everything = torch.stack([values(other, dtype, (size, 4)) for other in range(size)])
        expected = everything.sum(0).to(dtype)[rank]
        output = torch.empty(4, dtype=dtype)
        dist.reduce_scatter(output, list(values(rank, dtype, (size, 4))))
        assert_same(output, expected)
        output = torch.empty(4, dtype=dtype)
        dist.reduce_scatter_tensor(output, values(rank, dtype, (size, 4)))
        assert_same(output, expected)
    output = torch.empty(4, dtype=torch.int32)
    dist.reduce_scatter_tensor(output, torch.full((size, 4), 1 << rank, dtype=torch.int32), dist.ReduceOp.BOR)
    assert (output == (1 << size) - 1).all()


@on_ranks(2, 3)
def test_reduce_scatter_of_blocks_of_different_sizes(rank, size):
    blocks = [torch.full((other + 1,), float(rank + 1)) for other in range(size)]
    output = torch.empty(rank + 1)
    dist.reduce_scatter(output, blocks)
    assert (output == size * (size + 1) / 2).all()


@on_ranks(1, 2, 3)
def test_all_to_all_of_equal_and_of_different_blocks(rank, size):
    for dtype in FLOATS + INTEGERS + COMPLEX + [torch.bool]:
        sent = torch.stack([values(rank * size + other, dtype, (4,)) for other in range(size)])
        expected = torch.stack([values(other * size + rank, dtype, (4,)) for other in range(size)])
        received = torch.empty(size, 4, dtype=dtype)
        dist.all_to_all_single(received, sent)
        assert_same(received, expected)
        parts = [torch.empty(4, dtype=dtype) for _ in range(size)]
        dist.all_to_all(parts, list(sent))
        assert_same(torch.stack(parts), expected)

    def block(source, target):
        return torch.full(((source * 2 + target) % 3,), float(source * 10 + target))

    sent = [block(rank, other) for other in range(size)]
    expected = [block(other, rank) for other in range(size)]
    received = torch.empty(sum(part.numel() for part in expected))
    dist.all_to_all_single(
        received,
        torch.cat(sent),
        output_split_sizes=[part.numel() for part in expected],
        input_split_sizes=[part.numel() for part in sent],
    )
    assert_same(received, torch.cat(expected))


@on_ranks(2)
def test_messages(rank, size):
    other = 1 - rank
    for dtype in FLOATS + INTEGERS + COMPLEX + [torch.bool]:
        tensor = values(0, dtype)
        if rank == 0:
            dist.send(tensor, 1)
        else:
            received = torch.empty_like(tensor)
            assert dist.recv(received, 0) == 0
            assert_same(received, tensor)
    # Both send first; a strided receiver; tags out of order.
    received = torch.zeros(3, 6)
    works = [
        dist.isend(torch.full((3, 3), float(rank)), other, tag=7),
        dist.isend(torch.full((100000,), float(rank)), other, tag=8),
        dist.irecv(large := torch.empty(100000), other, tag=8),
        dist.irecv(received[:, ::2], other, tag=7),
    ]
    for work in works:
        work.wait()
    assert (received[:, ::2] == other).all() and (received[:, 1::2] == 0).all() and (large == other).all()


@on_ranks(3)
def test_messages_from_whoever_comes_first(rank, size):
    if rank == 0:
        sources = []
        for _ in range(4):
            tensor = torch.empty(10)
            sources.append(dist.recv(tensor))
            assert (tensor == sources[-1]).all()
        assert sorted(sources) == [1, 1, 2, 2]
    else:
        for _ in range(2):
            dist.send(torch.full((10,), float(rank)), 0)


@on_ranks(3)
def test_coalesced_calls_and_objects(rank, size):
    with dist._coalescing_manager(async_ops=True) as manager:
        tensors = [torch.full((n,), float(rank)) for n in (1, 10, 1000)]
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    assert all((tensor == 3).all() for tensor in tensors)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    assert objects == [{"rank": other, "text": "x" * other} for other in range(size)]
    thing = [("from", 2) if rank == 2 else None]
    dist.broadcast_object_list(thing, src=2)
    assert thing == [("from", 2)]


@on_ranks(2, 3)
def test_sparse_tensors_are_added(rank, size):
    places = torch.tensor([[rank, 5, rank], [0, 1, 0]])
    tensor = torch.sparse_coo_tensor(places, torch.tensor([1.0, 2.0, 3.0]), (8, 2))
    expected = sum(
        torch.sparse_coo_tensor(torch.tensor([[other, 5, other], [0, 1, 0]]), torch.tensor([1.0, 2.0, 3.0]), (8, 2))
        .to_dense()
        for other in range(size)
    )
    dist.all_reduce(tensor)
    assert_same(tensor.to_dense(), expected)
