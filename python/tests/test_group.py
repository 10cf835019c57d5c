"""Groups, Works, futures, timeouts, errors, a second start, forked workers of DataLoaders."""

import datetime
import os
import signal
import time

import pytest
import torch
import torch.distributed as dist
from support import BACKEND, for_all_backends, on_ranks, run_ranks


@on_ranks(2)
def test_works_and_futures(rank, size):
    tensor = torch.full((1000,), float(rank + 1))
    work = dist.all_reduce(tensor, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success()
    assert (tensor == 3).all()
    doubled = dist.all_reduce(tensor, async_op=True).get_future().then(lambda done: done.value()[0] * 2)
    assert (doubled.wait() == 12).all()
    # A callback that starts a call and waits for it. Nothing else is called meanwhile: the order of the two would depend
    # on when the callback runs.
    works = [dist.all_reduce(torch.ones(3), async_op=True) for _ in range(3)]
    last = works[-1].get_future()
    nested = last.then(lambda done: dist.all_reduce(done.value()[0], async_op=True).get_future().wait()[0])
    assert (nested.wait() == 4).all()
    for work in works:
        work.wait()
    work = dist.all_reduce(tensor, async_op=True)
    while not work.is_completed():
        pass


@on_ranks(4)
def test_groups_that_overlap(rank, size):
    low, middle, high = (dist.new_group(ranks) for ranks in ([0, 1], [1, 2], [2, 3]))
    for group, ranks in [(low, [0, 1]), (middle, [1, 2]), (high, [2, 3])]:
        if rank in ranks:
            tensor = torch.tensor([rank])
            dist.all_reduce(tensor, group=group)
            assert tensor.item() == sum(ranks)
            dist.broadcast(tensor, src=ranks[1], group=group)
    mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    for name, expected in [("data", rank % 2 * 2 + 2), ("model", rank // 2 * 4 + 1)]:
        tensor = torch.tensor([rank])
        dist.all_reduce(tensor, group=mesh[name].get_group())
        assert tensor.item() == expected


@on_ranks(3)
def test_a_thread_waits_for_a_message_while_another_is_in_a_barrier(rank, size):
    import threading

    if rank == 0:
        received = torch.empty(4)
        waiter = threading.Thread(target=lambda: dist.recv(received, 1))
        waiter.start()
        dist.barrier()
        waiter.join()
        assert (received == 1).all()
    else:
        dist.barrier()
        if rank == 1:
            dist.send(torch.ones(4), 0)


@on_ranks(2)
def test_wait_with_a_time_limit_gives_up_and_may_be_repeated(rank, size):
    other = dist.new_group([0, 1])
    tensor = torch.ones(3)
    if rank == 0:
        work = dist.all_reduce(tensor, async_op=True)
        with pytest.raises(RuntimeError, match="not finished"):
            work.wait(datetime.timedelta(milliseconds=50))
        dist.barrier(group=other)
        work.wait()
    else:
        dist.barrier(group=other)
        dist.all_reduce(tensor)
    assert (tensor == 2).all()


@for_all_backends
@on_ranks(3)
def test_a_monitored_barrier_names_who_is_missing(rank, size):
    dist.monitored_barrier()
    limit = datetime.timedelta(seconds=1)
    if rank == 0:
        with pytest.raises(RuntimeError, match=r"Rank 2 failed.*worker 2 \(|member 2 \(worker 2"):
            dist.monitored_barrier(timeout=limit)
    elif rank == 1:
        with pytest.raises(RuntimeError, match="monitoredBarrier"):
            dist.monitored_barrier(timeout=limit)
    # The group is usable.
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == 3
    dist.monitored_barrier()


def rank_with_another_shape(rank, size):
    with pytest.raises(RuntimeError) as error:
        dist.all_reduce(torch.ones(10 + (rank == 1)))
    return str(error.value)


def test_calls_that_differ_are_explained_on_all_ranks():
    for text in run_ranks(rank_with_another_shape, 3):
        assert "float32[11]" in text and "float32[10]" in text and "member 1" in text


def rank_with_wrong_arguments(rank, size):
    with pytest.raises(ValueError):
        dist.all_gather([torch.ones(2)], torch.ones(2))
    with pytest.raises((ValueError, RuntimeError)):
        dist.all_gather_into_tensor(torch.ones(3), torch.ones(2))
    with pytest.raises(TypeError):
        dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError) as error:
        dist.all_to_all_single(torch.empty(3), torch.ones(3), [1, 2], [2, 1])
    dist.barrier()
    return str(error.value)


def test_wrong_arguments_leave_the_group_usable():
    for text in run_ranks(rank_with_wrong_arguments, 2):
        assert "sends" in text and "member" in text


def rank_that_is_late(rank, size):
    if rank == 1:
        time.sleep(4)
        return None
    with pytest.raises(RuntimeError) as error:
        dist.all_reduce(torch.ones(3))
    return str(error.value)


def test_a_late_rank_is_named():
    text = run_ranks(rank_that_is_late, 2, timeout=2)[0]
    assert "member 1" in text and "all_reduce" in text


def rank_that_is_killed(rank, size):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(RuntimeError) as error:
        dist.all_reduce(torch.ones(3))
    return str(error.value), time.monotonic() - begin


def test_a_killed_rank_is_named_at_once():
    results = run_ranks(rank_that_is_killed, 3, fails=True)
    for rank in (0, 2):
        text, seconds = results[rank]
        assert "worker 1" in text
        assert seconds < 10


def rank_that_is_stopped(rank, size, limit):
    processes = [None] * size
    dist.all_gather_object(processes, os.getpid())
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=limit))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
        return None
    begin = time.monotonic()
    try:
        with pytest.raises(RuntimeError) as error:
            dist.all_reduce(torch.ones(3))
    finally:
        os.kill(processes[1], signal.SIGCONT)
    return str(error.value), time.monotonic() - begin


@for_all_backends
def test_a_stopped_rank_is_named_at_the_deadline():
    limit = 0.4
    results = run_ranks(rank_that_is_stopped, 3, limit, fails=True)
    for rank in (0, 2):
        text, seconds = results[rank]
        assert "member 1" in text and "all_reduce" in text and "timeout" in text
        assert limit <= seconds + 0.05 and seconds < 10


def rank_that_aborts(rank, size):
    group = dist.new_group([0, 1])
    work = None
    if rank == 0:
        work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
    dist.barrier()
    if rank == 1:
        group._get_backend(torch.device("cpu")).abort()
    if work is not None:
        with pytest.raises(RuntimeError, match="abort"):
            work.wait()
    dist.barrier()


def test_abort_ends_the_calls_of_the_group_alone():
    run_ranks(rank_that_aborts, 2)


@on_ranks(2)
def test_a_second_start_in_the_same_process(rank, size):
    store = dist.distributed_c10d._get_default_store()
    for start in range(3):
        dist.destroy_process_group()
        dist.init_process_group(
            BACKEND, store=dist.PrefixStore(f"start {start}", store), rank=rank, world_size=size
        )
        tensor = torch.ones(1000)
        dist.all_reduce(tensor)
        assert (tensor == 2).all()


class Numbers(torch.utils.data.Dataset):
    def __init__(self):
        self.numbers = torch.arange(64.0)

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        return self.numbers[index] * 2


@on_ranks(2)
def test_forked_workers_of_a_data_loader(rank, size):
    dist.all_reduce(torch.ones(3), async_op=True).wait()
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2, multiprocessing_context="fork")
    for _ in range(2):
        total = torch.zeros(1)
        for batch in loader:
            total += batch.sum()
            dist.all_reduce(batch)
        assert total.item() == 64 * 63
    dist.barrier()


@on_ranks(2)
def test_split_group_and_sequence_numbers(rank, size):
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    before = backend._get_sequence_number_for_group()
    dist.barrier()
    dist.all_reduce(torch.ones(1), async_op=True).wait()
    assert backend._get_sequence_number_for_group() == before + 2
    assert backend.name() == BACKEND


@on_ranks(2)
def test_a_backend_for_each_kind_of_device(rank, size):
    # gloo stands for NCCL, which PyTorch refuses where there is no GPU.
    store = dist.distributed_c10d._get_default_store()
    dist.destroy_process_group()
    dist.init_process_group(
        f"cpu:{BACKEND},cuda:gloo", store=dist.PrefixStore("two", store), rank=rank, world_size=size
    )
    group = dist.group.WORLD
    assert group._get_backend(torch.device("cpu")).name() == BACKEND
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert (tensor == 2).all()
    pair = dist.new_group([0, 1])
    dist.all_reduce(tensor, group=pair)
    assert (tensor == 4).all()
    dist.barrier()


@on_ranks(1)
def test_pytorchs_recorder_is_for_who_asks(rank, size):
    hooks = getattr(dist.distributed_c10d._world, "pg_flight_recorder_hooks", {})
    asked = BACKEND == "cohort" and bool(os.environ.get("TORCH_FR_BUFFER_SIZE"))
    assert bool(hooks) == asked


@on_ranks(2)
def test_tensors_of_the_shared_heap(rank, size):
    if BACKEND != "cohort":
        return
    import cohort_torch

    before = torch.ones(100000)
    with cohort_torch.use_heap():
        tensor = torch.full((100000,), float(rank + 1))
        grown = torch.cat([tensor, tensor])
    assert tensor[:10].clone().sum() == 10 * (rank + 1)
    for each in (before, tensor, grown):
        dist.all_reduce(each)
    assert (before == 2).all() and (tensor == 3).all() and (grown == 3).all()
    tensor.resize_(200000)
    del grown
    forked = torch.multiprocessing.get_context("fork").Process(target=torch.ones, args=(100000,))
    forked.start()
    forked.join()
    assert forked.exitcode == 0
