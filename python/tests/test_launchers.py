"""Programs that launchers start: torchrun with restarts, and ranks that end without destroying their group."""

import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).parent / "elastic_program.py"


def torchrun(*arguments):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d"]
    command += ["--rdzv-endpoint=localhost:0", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_killed_rank_and_a_restart():
    done = torchrun("--max-restarts=1", str(PROGRAM))
    assert done.returncode == 0, done.stderr
    assert "attempt 1: 2.0" in done.stdout, done.stdout + done.stderr


def test_ranks_may_end_without_destroying_their_group():
    done = torchrun("--max-restarts=1", str(PROGRAM), "--leave")
    assert done.returncode == 0, done.stderr
    assert "attempt 1: 2.0" in done.stdout


def test_the_backend_is_found_by_its_name_alone():
    program = (
        "import torch.distributed as dist, tempfile, os\n"
        "store = dist.HashStore()\n"
        "dist.init_process_group('cpu:cohort', store=store, rank=0, world_size=1)\n"
        "print(dist.get_backend_config(), dist.group.WORLD.name())\n"
    )
    import torch

    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 15):
        program = "import cohort_torch\n" + program
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "cohort" in done.stdout, done.stderr
