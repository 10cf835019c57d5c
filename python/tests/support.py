"""Programs of several ranks for tests: each rank is a process that calls one function of a test module."""

import datetime
import functools
import multiprocessing
import os
import queue
import socket
import sys
import tempfile
import traceback

import pytest
import torch
import torch.distributed as dist

BACKEND = os.environ.get("TEST_BACKEND", "cohort")  # the same tests with gloo, to compare
TIME_LIMIT = 120

if BACKEND == "cohort":
    import cohort_torch  # noqa: F401

# For tests with monitored_barrier, or with time limits that change later.
for_all_backends = pytest.mark.skipif(torch.__version__ < (2, 15), reason="this PyTorch has it for gloo and NCCL alone")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _rank(function, rank, size, folder, timeout, answers, arguments):
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    try:
        store = dist.FileStore(os.path.join(folder, "store"), size)
        dist.init_process_group(
            BACKEND, store=store, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=timeout)
        )
        result = function(rank, size, *arguments)
        dist.destroy_process_group()
        answers.put((rank, True, result))
    except BaseException:
        answers.put((rank, False, traceback.format_exc()))
    answers.close()
    answers.join_thread()


def run_ranks(function, size, *arguments, timeout=60.0, fails=False):
    """Calls `function(rank, size, *arguments)` on each of `size` ranks, with a process group between them.

    Returns what the ranks return, by rank. With `fails`, ranks may fail: their traceback is in their place, and None
    in that of a rank that ended without a word.
    """
    # A server that has PyTorch loaded forks them: loading it anew takes each rank seconds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support", "torch.distributed.fsdp"])
    answers = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_rank, args=(function, rank, size, folder, timeout, answers, arguments))
            for rank in range(size)
        ]
        for process in processes:
            process.start()
        results = [None] * size
        failures = []
        missing = set(range(size))
        try:
            waited = 0
            while missing and waited < TIME_LIMIT:
                try:
                    rank, ok, result = answers.get(timeout=1)
                except queue.Empty:
                    waited += 1
                    missing -= {rank for rank in missing if processes[rank].exitcode not in (None, 0)}
                    continue
                missing.discard(rank)
                results[rank] = result
                if not ok:
                    failures.append(f"rank {rank}:\n{result}")
            assert not missing, f"ranks {sorted(missing)} have not ended after {TIME_LIMIT} s"
        finally:
            for process in processes:
                if missing:
                    process.kill()
                process.join()
        if not fails:
            assert not failures, "\n".join(failures)
            ended_badly = {rank: process.exitcode for rank, process in enumerate(processes) if process.exitcode}
            assert not ended_badly, f"exit codes by rank: {ended_badly}"
        return results


def on_ranks(*sizes, timeout=60.0):
    """Makes a function of a rank a test that runs it on that many ranks."""
    def decorate(function):
        program = functools.wraps(function)(function)
        # Processes that are spawned find the function by its name.
        program_name = "rank_of_" + function.__name__
        program.__name__ = program.__qualname__ = program_name
        setattr(sys.modules[function.__module__], program_name, program)

        @pytest.mark.parametrize("size", sizes)
        def test(size):
            run_ranks(program, size, timeout=timeout)

        test.__doc__ = function.__doc__
        return test

    return decorate
