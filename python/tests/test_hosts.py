"""Two virtual hosts (tests/cluster/hosts.sh, which needs root): ranks that mpirun or srun has started on both."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS = ROOT / "tests" / "cluster" / "hosts.sh"
PROGRAM = pathlib.Path(__file__).parent / "launched_program.py"
# Not its path alone: the script resolves links, and so would start the Python that a virtual environment is made from.
RANK = ["bash", "-c", 'exec "$@"', "rank", sys.executable, str(PROGRAM), "n0"]
CANNOT_RUN = 77


def hosts(command, *options, program, timeout=150):
    """What the ranks say, in any order, and the exit status of what has started them."""
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    arguments = [str(HOSTS), command, "--hosts", "2", "--share", str(ROOT), "--share", sys.prefix, *options, "--"]
    done = subprocess.run([*arguments, *program], capture_output=True, text=True, timeout=timeout, env=environment)
    if done.returncode == CANNOT_RUN:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    return done


def assert_all_ranks(done):
    assert done.returncode == 0, done.stdout + done.stderr
    said = sorted(re.findall(r"rank . of . on [^;]+", done.stdout))  # mpirun mixes lines that come at once
    assert said == [f"rank {rank} of 4 on n{rank // 2}" for rank in range(4)]


def test_ranks_of_mpirun_on_two_hosts():
    assert_all_ranks(hosts("run", "--ranks-per-host", "2", program=RANK))


def test_ranks_of_srun_on_two_hosts():
    step = ["srun", "--quiet", "--mpi=none", "--nodes=2", "--ntasks-per-node=2"]
    assert_all_ranks(hosts("slurm", program=[*step, *RANK]))


def test_a_stopped_rank_of_another_host_is_named():
    done = hosts("run", "--ranks-per-host", "1", program=[*RANK, "--stop"])
    assert done.returncode != 0
    # At the deadline; or, where the machine is so busy that this takes longer, by its silence.
    assert re.search(r"DistBackendError: all_reduce.*worker 1(, | \()host n1", done.stderr), done.stderr
