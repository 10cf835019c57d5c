"""Runs a program within a hard limit of time and leaves nothing of it: for suites of others' MPI programs.

A launcher starts its ranks in process groups of their own, and they outlive it when it is killed. So everything that a
run starts inherits a variable, by which it is found in /proc and ended, whoever its parent is by then. What an ended
process had mapped in /dev/shm goes with it: MPI libraries remove these files only when they end by themselves.
"""
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MARK = "SUITE_RUN_MARK"  # Cohort refuses names of its own that it does not know
_numbers = itertools.count()
_temporaries = set()


def _marked(value):
    """The processes whose environment has the mark with a value that begins so, but this one."""
    found = []
    wanted = f"{MARK}={value}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/environ", "rb") as file:
                if any(each.startswith(wanted) for each in file.read().split(b"\0")):
                    found.append(int(name))
    return found


def _shared_files(process):
    files = set()
    with contextlib.suppress(OSError):
        with open(f"/proc/{process}/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                path = line.rstrip("\n").split(maxsplit=5)[5:]
                if path and path[0].startswith("/dev/shm/"):
                    files.add(path[0])
    return files


def end_marked(value):
    """Kills what has the mark, until there is nothing more, and removes the files that it shared."""
    files = set()
    for _ in range(200):
        processes = _marked(value)
        if not processes:
            break
        for process in processes:
            files |= _shared_files(process)
        for process in processes:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)
    for file in files:
        with contextlib.suppress(OSError):
            os.unlink(file)


def own_mark():
    """What the marks of all runs of this process begin with."""
    return f"{os.getpid()}."


class Ended:
    """How a run ended: exit status (None if it ran out of time), seconds, and what it printed."""

    def __init__(self, status, seconds, output):
        self.status, self.seconds, self.output = status, seconds, output


def run(command, output, seconds, folder=None, variables=()):
    """Runs a command, with its output in the file `output`, for at most `seconds`."""
    mark = f"{own_mark()}{next(_numbers)}."
    begin = time.monotonic()
    # Launchers that are killed leave their folders, too.
    with tempfile.TemporaryDirectory(prefix="run.", ignore_cleanup_errors=True) as temporary, open(output, "wb") as file:
        environment = {**os.environ, **dict(variables), "TMPDIR": temporary, MARK: mark}
        _temporaries.add(temporary)
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            took = time.monotonic() - begin
            end_marked(mark)
            process.wait()
    _temporaries.discard(temporary)
    with open(output, "rb") as file:
        return Ended(status, took, file.read().decode(errors="replace"))


def end_all_when_ended():
    """A run that is under way ends with this program, also when that is told to stop."""

    def stop(number, _):
        end_marked(own_mark())
        for folder in list(_temporaries):
            shutil.rmtree(folder, ignore_errors=True)
        sys.stderr.write("stopped\n")
        os._exit(128 + number)  # other threads wait for runs

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
