#!/usr/bin/env python3
"""Runs mpi4py's tests without and with a library in LD_PRELOAD, and compares which pass. Called by mpi4py_suite.sh,
which tells what it does."""
import argparse
import glob
import os
import re
import shlex
import sys
import tempfile
import time

import limited_run

HERE = os.path.dirname(os.path.abspath(__file__))
TRIES = 3


def outcomes_of(folder, ranks):
    """What the files of the ranks say: outcome and reason of each test in order, and whether all came to the end."""
    outcomes, ends = {}, 0
    for rank in range(ranks):
        lines = []
        if os.path.exists(f"{folder}/{rank}"):
            with open(f"{folder}/{rank}", encoding="utf-8") as file:
                lines = [line.rstrip("\n").split("\t") for line in file]
        of_rank = {}
        for line in lines:
            if line[0] == "end":
                ends += 1
            elif len(line) == 3:
                of_rank[line[1]] = (line[0], f"rank {rank}: {line[2]}" if line[2] else "")
        for test, (outcome, why) in of_rank.items():
            # A test passes if it does so on all ranks; what began and did not end is worse than what failed.
            worse = ("passed", "skipped", "failed", "began")
            before = outcomes.get(test, ("passed", ""))
            outcomes[test] = max(before, (outcome, why), key=lambda each: worse.index(each[0]))
    return outcomes, ends == ranks


class Suite:
    def __init__(self, options):
        self.options = options

    def run_module(self, module, library, skip=0):
        """All tests of a module, also those after one that ends the ranks or never ends: outcome and reason of each."""
        o = self.options
        preload = ["env", *shlex.split(o.preload)] if library else []
        results, used = {}, 0
        while True:
            with tempfile.TemporaryDirectory() as folder:
                command = [*shlex.split(o.mpirun), "-n", str(o.ranks), *preload, o.python, f"{HERE}/mpi4py_ranks.py", folder,
                           module, str(skip)]
                kind = "with" if library else "without"
                log = f"{o.logs}/{module}.{kind}.{skip}.txt"
                ended = limited_run.run(command, log, o.timeout, o.tests)
                used += ended.seconds
                outcomes, complete = outcomes_of(folder, o.ranks)
            how = f"no end after {o.timeout} s" if ended.status is None else f"exit status {ended.status}"
            for test, (outcome, why) in outcomes.items():
                results[test] = ("stuck" if ended.status is None else "crashed", f"{why} {how}, see {log}") if outcome == "began" \
                    else (outcome, why)
            if complete:
                if ended.status != 0:
                    results[f"{module} (end)"] = ("failed", f"{how}, see {log}")
                else:
                    os.unlink(log)
                return results, used
            if not outcomes:  # nothing began: the module cannot be loaded, or all has been tried
                if not results:
                    results[f"{module} (begin)"] = ("failed", f"{how}, see {log}")
                return results, used
            skip += len(outcomes)


def main():
    parser = argparse.ArgumentParser()
    for name in ("tests", "python", "mpirun", "preload", "library", "filter", "results", "logs"):
        parser.add_argument(f"--{name}", default="")
    for name in ("timeout", "ranks"):
        parser.add_argument(f"--{name}", type=int)
    options = parser.parse_args()
    limited_run.end_all_when_ended()
    os.makedirs(options.logs, exist_ok=True)

    modules = sorted(os.path.basename(path)[:-3] for path in glob.glob(f"{options.tests}/test_*.py"))
    modules = [each for each in modules if re.search(options.filter, each)]
    if not modules:
        sys.exit(f"mpi4py_suite: no module matches '{options.filter}'")
    suite, rows, seconds = Suite(options), [], [0, 0]
    for module in modules:
        ways = [[], []]
        libraries = ["", options.library] if options.library else [""]
        for attempt in range(TRIES):
            for way, library in enumerate(libraries):
                results, used = suite.run_module(module, library)
                ways[way].append(results)
                if attempt == 0:
                    seconds[way] += used
            # Repeated while the ways differ, to know what passes now and then.
            passing = [{test for test, (outcome, _) in way[0].items() if outcome == "passed"} for way in ways[:len(libraries)]]
            if len({frozenset(each) for each in passing}) == 1:
                break
        for test in dict.fromkeys(test for way in ways for results in way for test in results):
            said = [[results.get(test, ("missing", "")) for results in way] for way in ways]
            rows.append((test, *said))
        print(f"{time.strftime('%H:%M:%S')} {module}: " + ", ".join(
            f"{sum(outcome == 'passed' for outcome, _ in way[0].values())} {kind} it"
            for way, kind in zip(ways[:len(libraries)], ("without", "with"))), file=sys.stderr, flush=True)

    count = [{}, {}]
    differing = []
    with open(options.results, "w", encoding="utf-8") as file:
        print("test", "verdict", "without", "with", "why", sep="\t", file=file)
        for test, without, with_library in rows:
            for way, said in enumerate((without, with_library)):
                if said:
                    count[way][said[0][0]] = count[way].get(said[0][0], 0) + 1
            good = [[outcome == "passed" for outcome, _ in said] for said in (without, with_library)]
            if any(len(set(each)) > 1 for each in good):
                verdict = "now and then"
            elif not with_library or good[0][0] == good[1][0]:
                verdict = "the same"
            else:
                verdict = "passes only without" if good[0][0] else "passes only with"
            why = next((why for outcome, why in with_library + without if outcome not in ("passed", "skipped") and why), "")
            if verdict != "the same":
                differing.append((verdict, test, why))
            print(test, verdict, ",".join(each for each, _ in without), ",".join(each for each, _ in with_library), why, sep="\t",
                  file=file)
    kinds = sorted({kind for each in count for kind in each})
    print(f"{'':8} " + " ".join(f"{kind:>8}" for kind in kinds) + f" {'seconds':>8}")
    for way, name in enumerate(("without", "with")):
        if count[way]:
            print(f"{name:8} " + " ".join(f"{count[way].get(kind, 0):8}" for kind in kinds) + f" {seconds[way]:8.0f}")
    for verdict, test, why in differing:
        print(f"{verdict}: {test}" + (": " + why.replace("\\n", "\n  ") if why else ""))
    print(f"results: {options.results}; what runs said that did not end well: {options.logs}")
    sys.exit(any(verdict.startswith("passes only") for verdict, _, _ in differing))


if __name__ == "__main__":
    main()
