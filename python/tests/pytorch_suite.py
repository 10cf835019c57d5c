"""Runs the distributed tests that PyTorch's wheel ships, with gloo or with Cohort, and writes how each ended.

    python pytorch_suite.py gloo|cohort|in-place-of-gloo --ranks 3 --out FILE [--only REGEX] [--limit SECONDS]

It needs the package expecttest. `cohort` is the backend as a plugin. Many tests are for gloo alone, by its name: with
`in-place-of-gloo` they get Cohort under that name. Each line of the file is a test and `passed`, `failed` or `skipped`.

    python pytorch_suite.py --compare GLOO_FILE COHORT_FILE ...

lists tests that pass with gloo and with Cohort in none of its runs; the exit status says whether there are any. Of
those that a plugin is not given, `--names GLOO_FILE --unless COHORT_FILE` runs in gloo's place.
"""

import argparse
import multiprocessing
import os
import re
import sys
import tempfile
import unittest


def replace_gloo():
    """Makes Cohort what PyTorch takes for gloo."""
    import cohort_torch
    import torch.distributed as dist

    plugin = dist.Backend._BackendPlugin(cohort_torch._create_backend, True)
    dist.Backend._plugins["GLOO"] = plugin


def prepare(which, ranks):
    os.environ["BACKEND"] = "gloo" if which == "in-place-of-gloo" else which
    os.environ["WORLD_SIZE"] = str(ranks)
    os.environ.setdefault("INIT_METHOD", "file")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def run_with_environment(environment, function, arguments, keywords):
    """In a process of the server, which has the environment that there was when it started."""
    os.environ.clear()
    os.environ.update(environment)
    function(*arguments, **keywords)


def case(which):
    from torch.testing._internal import common_distributed

    for feature in ("ddp", "subgroup", "plugin"):
        common_distributed.DistTestCases.backend_feature[feature].add("cohort")
    if which != "gloo":
        import cohort_torch  # noqa: F401
    if which == "in-place-of-gloo":
        replace_gloo()
    from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

    class DistributedTests(TestDistBackend, DistributedTest._DistTestBase):
        def call_dist_op(self, *arguments, **keywords):
            # The profiler sees the calls as Cohort's; the other run looks for them.
            if which == "in-place-of-gloo":
                keywords["expect_event"] = False
            super().call_dist_op(*arguments, **keywords)

        def setUp(self):
            super().setUp()
            # Forked from a server that has PyTorch loaded already, which saves most of the time.
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(["pytorch_suite_case"])

            def process(target, name, args, kwargs):
                arguments = (dict(os.environ), target, args, kwargs)
                return context.Process(target=run_with_environment, name=name, args=arguments)

            self._start_processes(process)

    DistributedTests.__module__ = "pytorch_suite_case"
    DistributedTests.__qualname__ = "DistributedTests"
    return DistributedTests


class Record(unittest.TextTestResult):
    def __init__(self, *arguments, out, **options):
        super().__init__(*arguments, **options)
        self.out = out

    def write(self, test, outcome):
        print(test.id().rsplit(".", 1)[-1], outcome, file=self.out, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.write(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write(test, "skipped")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.write(test, "failed")

    addError = addFailure


def run(options):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    os.environ["PYTORCH_SUITE"] = options.which
    prepare(options.which, options.ranks)
    import pytorch_suite_case

    names = unittest.TestLoader().getTestCaseNames(pytorch_suite_case.DistributedTests)
    names = [name for name in names if re.search(options.only, name)]
    if options.names:
        with open(options.names) as listed:
            wanted = {line.split()[0] for line in listed if line.split()[1:] == ["passed"]}
        if options.unless:
            wanted -= {name for name, outcome in outcomes(options.unless).items() if outcome == "passed"}
        names = [name for name in names if name in wanted]
    suite = unittest.TestSuite(pytorch_suite_case.DistributedTests(name) for name in names)
    with open(options.out, "w") as out, tempfile.TemporaryDirectory() as folder:
        os.environ["TEMP_DIR"] = folder

        def record(*arguments, **keywords):
            return Record(*arguments, out=out, **keywords)

        result = unittest.TextTestRunner(resultclass=record, verbosity=2).run(suite)
    return 0 if result.wasSuccessful() else 1


def outcomes(path):
    with open(path) as lines:
        return dict(line.split() for line in lines)


def compare(gloo, *cohort):
    ours = {}
    for path in cohort:
        ours |= {name: outcome for name, outcome in outcomes(path).items() if ours.get(name) != "passed"}
    worse = [name for name, outcome in outcomes(gloo).items() if outcome == "passed" and ours.get(name) != "passed"]
    passed = sum(outcome == "passed" for outcome in ours.values())
    print(f"{passed} pass with Cohort; pass with gloo and not with Cohort: {len(worse)}")
    for name in worse:
        print(f"  {name} {ours.get(name, 'not run')}")
    return 1 if worse else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("which", nargs="?", choices=["gloo", "cohort", "in-place-of-gloo"])
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--out", default="/dev/stdout")
    parser.add_argument("--only", default="")
    parser.add_argument("--names", help="a file of an earlier run: only tests that passed there")
    parser.add_argument("--unless", help="a file of an earlier run: without the tests that passed there")
    parser.add_argument("--compare", nargs="+")
    options = parser.parse_args()
    return compare(*options.compare) if options.compare else run(options)


if __name__ == "__main__":
    sys.exit(main())
