"""One rank's part of a run of a module of mpi4py's tests: writes each test's beginning and outcome at once into a file
of this rank, so that they are known after a crash as well.

    mpi4py_ranks.py FOLDER MODULE SKIP      SKIP: so many tests are left out at the beginning
"""
import os
import sys
import unittest

from mpi4py import MPI


class Result(unittest.TestResult):
    def __init__(self, file):
        super().__init__()
        self.file = file
        self.bad = False

    def note(self, what, test, why=""):
        print(what, test.id(), why.replace("\n", "\\n").replace("\t", " "), sep="\t", file=self.file, flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.bad = False
        self.note("began", test)

    def end(self, what, test, error=None):
        self.bad = what != "passed"
        self.note(what, test, self._exc_info_to_string(error, test) if error else "")

    def addSuccess(self, test):
        if not self.bad:
            self.end("passed", test)

    def addFailure(self, test, err):
        self.end("failed", test, err)

    def addError(self, test, err):
        self.end("failed", test, err)

    def addSkip(self, test, reason):
        self.bad = True
        self.note("skipped", test, reason)

    def addExpectedFailure(self, test, err):
        self.end("passed", test)

    def addUnexpectedSuccess(self, test):
        self.end("failed", test)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.end("failed", test, err)


def cases_of(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases_of(each)
        else:
            yield each


def main():
    folder, module, skip = sys.argv[1], sys.argv[2], int(sys.argv[3])
    sys.path.insert(0, os.getcwd())
    cases = list(cases_of(unittest.defaultTestLoader.loadTestsFromName(module)))
    with open(f"{folder}/{MPI.COMM_WORLD.Get_rank()}", "w", encoding="utf-8") as file:
        unittest.TestSuite(cases[skip:]).run(Result(file))
        print("end", file=file)


if __name__ == "__main__":
    main()
