"""What PyTorch builds on a process group: each against the same thing computed by one process."""

import os
import shutil
import tempfile

import pytest
import torch
import torch.distributed as dist
from support import BACKEND, on_ranks, run_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def network(seed=7):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def batch(rank, rows=6):
    generator = torch.Generator().manual_seed(100 + rank)
    return torch.randn(rows, 8, generator=generator), torch.randint(0, 4, (rows,), generator=generator)


def loss_of(model, rank):
    inputs, labels = batch(rank)
    return nn.functional.cross_entropy(model(inputs), labels)


def expected_gradients(size):
    model = network()
    (sum(loss_of(model, rank) for rank in range(size)) / size).backward()
    return [parameter.grad for parameter in model.parameters()]


def assert_gradients(model, expected):
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


@on_ranks(2, 3)
def test_ddp_averages_gradients(rank, size):
    for options in [{}, {"static_graph": True}, {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.0001}]:
        model = DistributedDataParallel(network(seed=rank), **options)
        for parameter, right in zip(model.module.parameters(), network(seed=0).parameters()):
            assert torch.equal(parameter, right), "parameters come from rank 0"
        model.module.load_state_dict(network().state_dict())
        for _ in range(3):
            model.zero_grad()
            loss_of(model, rank).backward()
            assert_gradients(model.module, expected_gradients(size))


@on_ranks(2)
def test_ddp_no_sync_accumulates(rank, size):
    model = DistributedDataParallel(network())
    with model.no_sync():
        loss_of(model, rank).backward()
    loss_of(model, rank).backward()
    assert_gradients(model.module, [2 * gradient for gradient in expected_gradients(size)])


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList(nn.Linear(8, 4) for _ in range(2))

    def forward(self, inputs, branch):
        return self.branches[branch](inputs)


@on_ranks(2)
def test_ddp_with_unused_parameters(rank, size):
    torch.manual_seed(3)
    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    model(batch(rank)[0], rank).sum().backward()
    for branch in range(2):
        torch.manual_seed(3)
        alone = Branches()
        (alone(batch(branch)[0], branch).sum() / size).backward()
        torch.testing.assert_close(model.module.branches[branch].weight.grad, alone.branches[branch].weight.grad)


@on_ranks(2)
def test_ddp_join_with_uneven_inputs(rank, size):
    model = DistributedDataParallel(network())
    steps = 0
    with model.join():
        for _ in range(2 + 3 * rank):
            loss_of(model, rank).backward()
            steps += 1
    assert steps == 2 + 3 * rank


@on_ranks(2)
def test_ddp_communication_hooks(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    model = DistributedDataParallel(network())
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    loss_of(model, rank).backward()
    for parameter, gradient in zip(model.module.parameters(), expected_gradients(size)):
        torch.testing.assert_close(parameter.grad, gradient, rtol=2e-2, atol=2e-3)
    # Its callbacks start collectives and wait for them.
    model = DistributedDataParallel(network())
    state = powerSGD_hook.PowerSGDState(process_group=None, matrix_approximation_rank=4, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for _ in range(5):
        model.zero_grad()
        loss_of(model, rank).backward()
    for parameter in model.parameters():
        everywhere = [torch.empty_like(parameter.grad) for _ in range(size)]
        dist.all_gather(everywhere, parameter.grad)
        assert all(torch.equal(gradient, parameter.grad) for gradient in everywhere)


@on_ranks(2)
def test_fully_sharded_parameters(rank, size):
    from torch.distributed.fsdp import fully_shard

    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
    model = network()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for _ in range(2):
        model.zero_grad()
        loss_of(model, rank).backward()
        for parameter, gradient in zip(model.parameters(), expected_gradients(size), strict=True):
            torch.testing.assert_close(parameter.grad.full_tensor(), gradient)


@on_ranks(2)
def test_parameters_sharded_by_wrapping(rank, size):
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD):
        model = FullyShardedDataParallel(
            network(), sharding_strategy=strategy, device_id=torch.device("cpu"), use_orig_params=True
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss_of(model, rank).backward()
        optimizer.step()
        alone = network()
        for parameter, gradient in zip(alone.parameters(), expected_gradients(size), strict=True):
            parameter.data -= 0.1 * gradient
        with FullyShardedDataParallel.summon_full_params(model):
            for parameter, right in zip(model.parameters(), alone.parameters(), strict=True):
                torch.testing.assert_close(parameter, right)


@on_ranks(2)
def test_zero_redundancy_optimizer(rank, size):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    alone = network()
    alone_optimizer = torch.optim.Adam(alone.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model, rank).backward()
        optimizer.step()
        alone_optimizer.zero_grad()
        (sum(loss_of(alone, other) for other in range(size)) / size).backward()
        alone_optimizer.step()
    for parameter, right in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(parameter, right)
    optimizer.consolidate_state_dict(to=0)


@on_ranks(2)
def test_distributed_tensors_and_tensor_parallel_layers(rank, size):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
    torch.manual_seed(1)
    left, right = torch.randn(8, 6), torch.randn(6, 4)
    product = distribute_tensor(left, mesh, [Shard(1)]) @ distribute_tensor(right, mesh, [Shard(0)])
    torch.testing.assert_close(product.full_tensor(), left @ right)
    moved = distribute_tensor(left, mesh, [Shard(0)]).redistribute(placements=[Shard(1)])
    assert torch.equal(moved.redistribute(placements=[Replicate()]).to_local(), left)
    model = parallelize_module(network(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    torch.testing.assert_close(model(batch(0)[0]), network()(batch(0)[0]))


def compiled_step(tensor):
    from torch.distributed import _functional_collectives as functional

    total = functional.all_reduce(tensor * 2, "sum", dist.group.WORLD)
    rows = functional.all_gather_tensor(total + 1, 0, dist.group.WORLD)
    return functional.reduce_scatter_tensor(rows, "sum", 0, dist.group.WORLD)


def compiled_steps(rank, size, compiler):
    tensor = torch.full((4,), float(rank + 1))
    expected = torch.full((4,), 14.0)
    assert torch.equal(compiled_step(tensor), expected)
    compiled = torch.compile(compiled_step, backend=compiler, fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(tensor), expected)


@pytest.mark.parametrize("compiler", ["aot_eager", "inductor"])
def test_functional_collectives_compiled(compiler):
    if compiler == "inductor" and shutil.which("g++") is None:
        pytest.skip("inductor needs g++")
    run_ranks(compiled_steps, 2, compiler)


def checkpointed(rank, size, folder):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
    whole = torch.arange(24.0).reshape(6, 4)
    checkpoint.save({"weight": distribute_tensor(whole, mesh, [Shard(0)])}, checkpoint_id=folder)
    state = {"weight": distribute_tensor(torch.zeros(6, 4), mesh, [Shard(1)])}
    checkpoint.load(state, checkpoint_id=folder)
    assert torch.equal(state["weight"].full_tensor(), whole)


def test_distributed_checkpoint():
    with tempfile.TemporaryDirectory() as folder:
        run_ranks(checkpointed, 2, folder)


def checked_in_detail(rank, size):
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert tensor.sum().item() == 3 * size
    group = dist.new_group([0, 1])
    dist.barrier(group=group)
    with pytest.raises(RuntimeError, match="mismatch|differ|Detected"):
        if rank == 0:
            dist.all_reduce(tensor)
        else:
            dist.broadcast(tensor, 0)


def in_detail(rank, size):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    store = dist.distributed_c10d._get_default_store()
    dist.destroy_process_group()
    dist.init_process_group(BACKEND, store=dist.PrefixStore("detail", store), rank=rank, world_size=size)
    checked_in_detail(rank, size)


def test_debug_level_detail():
    run_ranks(in_detail, 2)
