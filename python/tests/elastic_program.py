"""Trains a number under torchrun; in the first attempt rank 1 is killed, or stopped. See test_launchers.py."""

import datetime
import os
import signal
import sys

import cohort_torch  # noqa: F401, by which PyTorch before 2.15 knows the backend
import torch
import torch.distributed as dist

dist.init_process_group("cohort")
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
total = torch.ones(1)
for step in range(5):
    if attempt == 0 and step == 3 and dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGSTOP if "--stop" in sys.argv else signal.SIGKILL)
    if step == 3:
        dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=0.5))
    dist.all_reduce(total)
    total /= dist.get_world_size()
# A second start in one process.
dist.destroy_process_group()
dist.init_process_group("cohort")
dist.all_reduce(total)
if dist.get_rank() == 0:
    print(f"attempt {attempt}: {total.item()}", flush=True)
if "--leave" not in sys.argv:
    dist.destroy_process_group()
