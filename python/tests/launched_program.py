"""Started by mpirun or srun, which give ranks but no meeting place: every rank checks a few sums and says so.

    launched_program.py ADDRESS [--stop] [--bandwidth]

ADDRESS is where rank 0 listens. With --stop, rank 1 is stopped in the middle, and the others must name it. See
test_launchers.py and test_hosts.py.
"""

import datetime
import os
import signal
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist

if torch.__version__ < (2, 15):
    import cohort_torch  # noqa: F401, later ones find the backend by its name


def rank_and_size():
    for rank, size in [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")]:
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    raise SystemExit("neither mpirun nor srun has started this")


def check_sums(rank, size):
    for elements in (1, 1000, 300_000):
        tensor = torch.full((elements,), float(rank + 1))
        dist.all_reduce(tensor)
        assert (tensor == size * (size + 1) / 2).all()
        rows = torch.empty(size * elements)
        dist.all_gather_into_tensor(rows, torch.full((elements,), float(rank)))
        assert torch.equal(rows, torch.arange(float(size)).repeat_interleave(elements))
    dist.send(torch.full((5000,), float(rank)), (rank + 1) % size) if rank % 2 == 0 else None
    received = torch.empty(5000)
    dist.recv(received, (rank - 1) % size) if rank % 2 else None
    assert rank % 2 == 0 or (received == rank - 1).all()


def print_bandwidth(rank):
    """Of 64 MiB, beside gloo's in turns."""
    groups = {name: dist.new_group(backend=name) for name in ("gloo", "cohort")}
    tensor = torch.zeros(16 << 20)
    times = {name: [] for name in groups}
    for _ in range(4):
        for name, group in groups.items():
            dist.barrier()
            begin = time.perf_counter()
            dist.all_reduce(tensor, group=group)
            times[name].append(time.perf_counter() - begin)
    for name in groups if rank == 0 else ():
        seconds = statistics.median(times[name][1:])
        print(f"{name}: 64 MiB in {seconds * 1e3:.0f} ms, {tensor.nbytes * 8 / seconds / 1e9:.2f} Gbit/s", flush=True)


def meet_a_stopped_rank(rank):
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=0.5))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.all_reduce(torch.ones(3))


def main():
    rank, size = rank_and_size()
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=60)
    store = dist.TCPStore(sys.argv[1], 29501, size, rank == 0, limit)
    dist.init_process_group("cohort", store=store, rank=rank, world_size=size, timeout=limit)
    check_sums(rank, size)
    print(f"rank {rank} of {size} on {socket.gethostname()};", flush=True)
    dist.barrier()
    if "--bandwidth" in sys.argv:
        print_bandwidth(rank)
    if "--stop" in sys.argv:
        meet_a_stopped_rank(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
