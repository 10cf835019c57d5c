#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests.
#
#   tests/run.sh [--only PATTERN] [--all] [--sanitize address|thread] [--jobs N]
#
#   --only PATTERN   only the tests whose name matches this regular expression
#   --all            also the tests of endurance, label `soak`, which take hours
#   --sanitize WHAT  under a sanitizer, in a build folder of its own; `thread` runs the
#                    tests whose members are threads, for it cannot see other processes
#   --jobs N         N compile jobs; default: one per core. The tests, which wait for most of the time, are four
#                    times as many at a time
#
# Where virtual hosts or Slurm are not possible (they need root), the tests over them are
# skipped; with COHORT_REQUIRE_CLUSTER=1 that is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

refuse() { echo "tests/run.sh: $*; see --help" >&2; exit 2; }

preset=release jobs=$(nproc) selection=() left_out=(--label-exclude '^soak$')
while (($#)); do
  case $1 in
    --only) [[ -n ${2:-} ]] || refuse "--only needs a pattern"; selection=(--tests-regex "$2"); shift 2 ;;
    --all) left_out=(); shift ;;
    --sanitize)
      case ${2:-} in
        address) preset=asan ;;
        thread) preset=tsan ;;
        *) refuse "--sanitize needs address or thread" ;;
      esac
      shift 2 ;;
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || refuse "--jobs needs a number"; jobs=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done

launch/setup.sh test
launch/check-names.sh
if [[ ${COHORT_REQUIRE_CLUSTER:-0} == 1 ]]; then
  tests/cluster/hosts.sh check --rate 1gbit --slurm || refuse "the tests over virtual hosts are required, and cannot run"
fi
unset COHORT_REQUIRE_CLUSTER  # the library refuses variables of its prefix that it does not know
launch/build.sh "$preset" "$jobs"
ctest --preset "$preset" --parallel $((4 * jobs)) "${selection[@]}" "${left_out[@]}" </dev/null
