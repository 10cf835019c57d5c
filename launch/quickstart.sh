#!/usr/bin/env bash
# From a fresh clone to a first distributed training: installs what is missing, builds,
# trains the digits example with one and with two workers, measures an all-reduce.
#
#   launch/quickstart.sh [--jobs N]     N compile jobs; default: one per core
#
# Compiling takes about 10 minutes with one job.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

refuse() { echo "quickstart: $*; see --help" >&2; exit 2; }

jobs=$(nproc)
while (($#)); do
  case $1 in
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || refuse "--jobs needs a number"; jobs=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done

show() { printf '\n$ %s\n' "$*"; "$@"; }

"$root/launch/setup.sh" build
"$root/launch/check-names.sh"
# What is run here and named at the end, with the tools; the other examples are built by `cmake --build build`.
"$root/launch/build.sh" release "$jobs" -DCOHORT_BUILD_TESTS=OFF -- \
  digits fit cohort-bench cohort-checkpoint cohort-info cohort-supervise

# shellcheck source=launch/mpirun-env.sh
source "$root/launch/mpirun-env.sh"
bin=$root/build/bin
for workers in 1 2; do
  show mpirun -n "$workers" "$bin/digits" --strategy multi_worker_mirrored --epochs 10
done
show mpirun -n 2 "$bin/cohort-bench" all-reduce --sizes 4:64M

cat <<END

Try next, in $root:
  source launch/mpirun-env.sh                 once per shell, as root or with more workers than cores
  launch/cohort-run -n 2 build/bin/fit        a Trainer on two ranks
  build/bin/digits --help                     the other strategies and settings
  mpirun -n 4 build/bin/cohort-bench --help   the other sizes, dtypes, operators and formats
  build/bin/cohort-info                       the devices and settings that Cohort sees
  cmake --build build                         the other examples, and what \`cmake --install build\` installs
  tests/run.sh                                the tests
END
