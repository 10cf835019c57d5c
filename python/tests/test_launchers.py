"""Programs that launchers start: torchrun with restarts, mpirun, and ranks that end without destroying their group."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from support import for_all_backends

HERE = pathlib.Path(__file__).parent
PROGRAM = HERE / "elastic_program.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d"]
TORCHRUN += ["--rdzv-endpoint=localhost:0"]


def torchrun(*arguments):
    return subprocess.run([*TORCHRUN, *arguments], capture_output=True, text=True, timeout=120)


def test_a_killed_rank_and_a_restart():
    done = torchrun("--max-restarts=1", str(PROGRAM))
    assert done.returncode == 0, done.stderr
    assert "attempt 1: 2.0" in done.stdout, done.stdout + done.stderr


@for_all_backends
def test_a_stopped_rank_is_named_and_does_not_stay():
    said = []
    with subprocess.Popen([*TORCHRUN, str(PROGRAM), "--stop"], stderr=subprocess.PIPE, text=True) as launcher:
        for line in launcher.stderr:
            said.append(line)
            if re.search(r"DistBackendError.*member 1 \(worker 1", line):
                # torchrun asks ranks to end before it kills them, 30 s later: this one cannot hear it.
                stopped = int(re.search(r"stopped: rank 1 \(.*\), pid (\d+)", "".join(said)).group(1))
                os.kill(stopped, signal.SIGCONT)
        assert launcher.wait(timeout=60) != 0
    assert any("DistBackendError" in line for line in said), "".join(said)
    with pytest.raises(ProcessLookupError):
        os.kill(stopped, 0)


def mpirun(*arguments):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["mpirun", "-np", "3", "--oversubscribe", sys.executable, str(HERE / "launched_program.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def test_ranks_of_mpirun():
    done = mpirun("localhost")
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"rank . of .", done.stdout)) == [f"rank {rank} of 3" for rank in range(3)]


@for_all_backends
def test_a_stopped_rank_of_mpirun_is_named():
    done = mpirun("localhost", "--stop")
    assert done.returncode != 0
    assert re.search(r"DistBackendError.*member 1 \(worker 1", done.stderr), done.stderr


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
    if torch.__version__ < (2, 15):
        program = "import cohort_torch\n" + program
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "cohort" in done.stdout, done.stderr
