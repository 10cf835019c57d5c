#!/usr/bin/env python3
"""Lists all cases that tests/run.sh runs, a line each, to compare before and after a change of the tests.

    tests/list_cases.py [BUILD_FOLDER]     default: build

A line is the name of a CTest entry, which tells ranks and layout, and, where the entry runs a GoogleTest program, one of
the cases that this program would run there: `mpi_groups.4x2 Groups.SplitByColor`. Entries with the label `soak` are
listed, too.
"""
import json
import os
import subprocess
import sys


def cases_of(program, environment, arguments):
    """The cases that a GoogleTest program runs with these settings; none where it is skipped or uses only matchers."""
    listed = subprocess.run([program, "--gtest_list_tests", *arguments], env=environment, stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=60, check=False)
    if listed.returncode == 77 or "usage" in listed.stderr.lower():  # skipped here, such as without a GPU
        return []
    if listed.returncode != 0:
        sys.exit(f"list_cases: {program} --gtest_list_tests ends with {listed.returncode}: {listed.stderr}")
    suite, cases = "", []
    for line in listed.stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if line.startswith("  "):
            cases.append(suite + name.strip())
        elif name.endswith("."):
            suite = name
    return cases


def is_google_test(program):
    with open(program, "rb") as file:
        return b"gtest_list_tests" in file.read()


def main():
    if "-h" in sys.argv or "--help" in sys.argv:
        print(__doc__.strip())
        return
    build = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else "build")
    if not os.path.isfile(os.path.join(build, "CTestTestfile.cmake")):
        sys.exit(f"list_cases: {build} is no build folder: run launch/build.sh first, or name one")
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                           check=True).stdout
    google_tests = {}
    for test in json.loads(shown)["tests"]:
        command = test.get("command")
        if command is None:
            sys.exit(f"list_cases: {test['name']} has no program: build all of {build} first")
        properties = {each["name"]: each["value"] for each in test.get("properties", [])}
        environment = dict(os.environ)
        environment.update(each.split("=", 1) for each in properties.get("ENVIRONMENT", []))
        programs = [each for each in command if each.startswith(build) and os.access(each, os.X_OK)]
        program = next((each for each in programs if os.path.isfile(each) and
                        google_tests.setdefault(each, is_google_test(each))), None)
        cases = []
        if program is not None:
            filters = [each for each in command if each.startswith("--gtest_filter=")]
            cases = cases_of(program, environment, filters)
        for case in cases or [""]:
            print(f"{test['name']} {case}".rstrip())


if __name__ == "__main__":
    main()
