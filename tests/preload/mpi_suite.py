#!/usr/bin/env python3
"""Runs the built programs of MPICH's test suite without and with a library in LD_PRELOAD, and compares. Called by
mpi_suite.sh, which tells what it does."""
import argparse
import concurrent.futures
import os
import re
import shlex
import sys
import threading
import time

import limited_run

PASSED, FAILED, LATE = "passed", "failed", "out of time"
TRIES = 3


class Program:
    """A line of a test list."""

    def __init__(self, part, name, ranks, arguments, variables):
        self.part, self.program, self.listed, self.arguments, self.variables = part, name, ranks, arguments, variables
        self.ranks = ranks
        self.limit = 0  # what the list asks for
        self.without, self.with_library = [], []  # outcome and seconds of each run

    @property
    def name(self):
        return " ".join([f"{self.part}/{self.program}", str(self.ranks), *self.arguments])


def listed_programs(suite, built, parts, most_ranks, strict):
    """What the lists of the suite say, each once after the number of ranks has been cut to what this machine bears."""
    programs, seen = [], set()
    for part in parts:
        for file in ("testlist", "testlist.dtp"):
            # Lists that configure makes lie among what was built.
            path = next((p for p in (f"{built}/{part}/{file}", f"{suite}/{part}/{file}") if os.path.exists(p)), None)
            if path is None:
                continue
            with open(path, encoding="utf-8") as lines:
                for line in lines:
                    words = line.split("#")[0].split()
                    if not words or words[0].startswith("!") or os.path.isdir(f"{built}/{part}/{words[0]}"):
                        continue
                    options = [word.split("=", 1) for word in words[2:] if "=" in word]
                    arguments = [value for key, value in options if key == "arg"]
                    variables = [value.split("=", 1) for key, value in options if key == "env"]
                    # An expected failure of MPICH's, programs that abort, and what the suite does not ask of another MPI.
                    if any(key in ("xfail", "resultTest") or key == "strict" and value.lower() == "false" and strict
                           for key, value in options):
                        continue
                    listed = int(words[1]) if len(words) > 1 else 2
                    ranks = min(listed, most_ranks)
                    key = (part, words[0], ranks, *arguments, str(variables))
                    if key not in seen:
                        seen.add(key)
                        programs.append(Program(part, words[0], listed, arguments, variables))
                        programs[-1].ranks = ranks
                        programs[-1].limit = max([int(value) for key, value in options if key == "timeLimit"], default=0)
    return programs


class Suite:
    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()
        self.done = 0
        os.makedirs(options.logs, exist_ok=True)

    def run(self, program, library):
        """One run of a program: its outcome, noted and returned."""
        o = self.options
        runs = program.with_library if library else program.without
        preload = ["env", *shlex.split(o.preload)] if library else []
        kind = "with" if library else "without"
        log = os.path.join(o.logs, re.sub(r"[^A-Za-z0-9._=-]+", "_", f"{program.name} {kind} {len(runs) + 1}") + ".txt")
        command = [*shlex.split(o.mpirun), "-n", str(program.ranks), *preload, f"./{program.program}", *program.arguments]
        limit = max(o.timeout, program.limit)
        ended = limited_run.run(command, log, limit, f"{o.built}/{program.part}", program.variables)
        # The suite's programs exit with 0 after errors, too, and some print nothing when they end early.
        good = ended.status == 0 and re.search(r"^\s*No Errors\s*$", ended.output, re.MULTILINE)
        outcome = PASSED if good else LATE if ended.status is None else FAILED
        runs.append((outcome, ended.seconds))
        if outcome == PASSED:
            os.unlink(log)
        else:
            with open(log, "a", encoding="utf-8") as file:
                ending = f"ended after {limit} s" if ended.status is None else f"exit status {ended.status}"
                file.write(f"\n[{ending}: cd {o.built}/{program.part} && {shlex.join(command)}]\n")
        return outcome

    def compare(self, program):
        """Runs a program each way; where it makes a difference, again, until it is clear that it always does."""
        library = self.options.library
        if self.run(program, "") != PASSED and program.listed > program.ranks:
            fewer, program.ranks = program.ranks, program.listed
            if self.run(program, "") != PASSED:
                program.ranks = fewer
            del program.without[1 if program.ranks == fewer else 0]
        if library:
            self.run(program, library)
            while len(program.without) < TRIES and always(program.without) and always(program.with_library) and differs(program):
                self.run(program, "")
                self.run(program, library)
        with self.lock:
            self.done += 1
            print(f"{time.strftime('%H:%M:%S')} {self.done:4} {program.name}: {verdict(program)}", file=sys.stderr, flush=True)


def passes(runs):
    return runs[0][0] == PASSED


def always(runs):
    """All runs passed, or none did."""
    return len({outcome == PASSED for outcome, _ in runs}) <= 1


def differs(program):
    return passes(program.without) != passes(program.with_library)


def verdict(program):
    if not (always(program.without) and always(program.with_library)):
        return "now and then"
    if not program.with_library:
        return program.without[0][0]
    if not differs(program):
        return PASSED if passes(program.without) else "fails both ways"
    if passes(program.without):
        return "fails with the library" if program.with_library[-1][0] == FAILED else "out of time with the library"
    return "passes only with the library"


def seconds(runs):
    return sum(each for _, each in runs) / len(runs) if runs else 0


def write_results(path, programs):
    with open(path, "w", encoding="utf-8") as file:
        print("program", "ranks", "verdict", "without", "with", "seconds without", "seconds with", sep="\t", file=file)
        for each in programs:
            print(" ".join([f"{each.part}/{each.program}", *each.arguments]), each.ranks, verdict(each),
                  ",".join(outcome for outcome, _ in each.without), ",".join(outcome for outcome, _ in each.with_library),
                  f"{seconds(each.without):.2f}", f"{seconds(each.with_library):.2f}", sep="\t", file=file)


def print_table(parts, programs, not_built, library):
    print(f"{'part':16} {'not built':>9} {'programs':>9} {'pass':>9}" + (f" {'with it':>9}" if library else ""))
    rows = [(part, [each for each in programs if each.part == part], sum(each.part == part for each in not_built)) for part in parts]
    for part, chosen, missing in [*rows, ("all", programs, len(not_built))]:
        if chosen or missing:
            line = f"{part:16} {missing:9} {len(chosen):9} {sum(passes(each.without) for each in chosen):9}"
            print(line + (f" {sum(passes(each.with_library) for each in chosen):9}" if library else ""))


def main():
    parser = argparse.ArgumentParser()
    for name in ("suite", "built", "mpirun", "preload", "library", "filter", "results", "logs"):
        parser.add_argument(f"--{name}", default="")
    for name in ("jobs", "timeout", "most-ranks"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("parts", nargs="+")
    options = parser.parse_args()
    limited_run.end_all_when_ended()

    listed = listed_programs(options.suite, options.built, options.parts, options.most_ranks, options.strict)
    listed = [each for each in listed if re.search(options.filter, each.name)]
    programs = [each for each in listed if os.access(f"{options.built}/{each.part}/{each.program}", os.X_OK)]
    not_built = [each for each in listed if each not in programs]
    if not programs:
        sys.exit(f"mpi_suite: no program matches '{options.filter}'")
    suite = Suite(options)
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for _ in pool.map(suite.compare, programs):
            write_results(options.results, [each for each in programs if each.without and
                                            (each.with_library or not options.library)])
    write_results(options.results, programs)

    print_table(options.parts, programs, not_built, options.library)
    print(f"{time.monotonic() - begin:.0f} s; without {sum(seconds(each.without) for each in programs):.0f} s"
          + (f", with {sum(seconds(each.with_library) for each in programs):.0f} s" if options.library else ""))
    for each in programs:
        if verdict(each) not in (PASSED, "fails both ways", FAILED, LATE):
            print(f"{verdict(each)}: {each.name}")
    print(f"results: {options.results}; what programs said that failed: {options.logs}")
    sys.exit(any(verdict(each).endswith(" with the library") and passes(each.without) for each in programs))


if __name__ == "__main__":
    main()
