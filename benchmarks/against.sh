#!/usr/bin/env bash
# Compares the cohort-bench of this tree with that of an older commit: builds both, runs them in turns, and prints for
# each row of the report both times and their ratio.
#
#   benchmarks/against.sh [options] COMMIT [ARGUMENT ...]
#
#   COMMIT                anything that git knows; or the path of another cohort-bench
#   ARGUMENT              of cohort-bench, which both must know; default all-reduce
#
#   --ranks N             default 2; with 1, programs start without a launcher
#   --rounds N            times that each has a turn; default 9, with --fail-below 31
#   --fail-below R        exits with 1 if a test shows that the ratio of any row is below R, as 0.95, and names these rows
#   --cohort-bench PATH   this tree's program; default build/bin/cohort-bench, which is built first
#
# Times are medians over the rounds. A ratio is the old time over the new one, so above 1 this tree is faster; it is
# taken in each round, and its median, least and greatest are printed.
#
# The test is the sign test, of how many rounds have a ratio below R, with Holm's correction for the number of rows. The
# column chance is the probability that ratios of R look like these; up to 0.01 a row is slower. One more line, all, tests
# the median over the rows of each round.
#
# The older tree lies in build/against/COMMIT, for the next time. In build/against are also log.txt, the programs'
# messages, and measurements.csv, every single time. CMAKE_BUILD_PARALLEL_LEVEL limits the jobs of the compiler.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)

refuse() { echo "against.sh: $*; see --help" >&2; exit 2; }
say() { echo "against.sh: $*" >&2; }
fail() { say "$*"; exit 1; }

ranks=2 rounds='' fail_below='' new_program=''
while (($#)); do
  case $1 in
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
    --*) (($# > 1)) || refuse "$1 needs a value" ;;
    *) break ;;
  esac
  case $1 in
    --ranks | --rounds) [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || refuse "$1 $2: write a whole number from 1 to 9999" ;;&
    --ranks) ranks=$2 ;;
    --rounds) rounds=$2 ;;
    --fail-below) [[ $2 =~ ^[0-9]+(\.[0-9]+)?$ ]] || refuse "$1 $2: write a number, for example 0.95"; fail_below=$2 ;;
    --cohort-bench) [[ -f $2 && -x $2 ]] || refuse "$1 $2: no such program"; new_program=$2 ;;
    *) refuse "unknown option $1" ;;
  esac
  shift 2
done
[[ -n $rounds ]] || rounds=$([[ -n $fail_below ]] && echo 31 || echo 9)
(($#)) || refuse "which commit?"
commit=$1
shift
(($#)) || set -- all-reduce
for argument; do
  case $argument in
    --ranks* | --rounds* | --fail-below* | --cohort-bench*) refuse "${argument%%=*} belongs before the commit" ;;
    --format* | --output* | --help | --version) refuse "${argument%%=*}: this script reads the report itself; leave it out" ;;
  esac
done
arguments=("$@")
case $1 in
  simulate | lines) refuse "$1 predicts, it measures no times" ;;
  input) refuse "input reports no times, only rates" ;;
esac

kept=$root/build/against
log=$kept/log.txt
mkdir -p "$kept"
: >"$log"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# shellcheck source=launch/mpirun-env.sh
source "$root/launch/mpirun-env.sh"

# build TREE [CMAKE_OPTION ...]: its cohort-bench, with its own flags. Clones share what ccache keeps.
build() {
  local tree=$1
  shift
  say "building $tree/build/bin/cohort-bench"
  (
    cd "$tree"
    export CCACHE_BASEDIR=$tree
    { [[ -f build/CMakeCache.txt ]] || cmake --preset release "$@"; } && cmake --build build --target cohort-bench
  ) >>"$log" 2>&1 </dev/null || { tail -n 20 "$log" >&2; fail "it cannot be built; everything is in $log"; }
}

git_here() { git -C "$root" "$@"; }

# Of the older commit, whose tree is unpacked once. It comes from git's archive, so git need not remember it.
old_program() {
  local id tree
  git_here rev-parse --git-dir >/dev/null 2>&1 || refuse "no such program as $commit, and this tree has no history to find it in"
  id=$(git_here rev-parse --verify --quiet "$commit^{commit}") ||
    refuse "git knows no commit $commit, and there is no such program"
  grep -q 'add_executable(cohort-bench' <<<"$(git_here show "$id:benchmarks/CMakeLists.txt" 2>/dev/null)" ||
    refuse "commit $commit has no cohort-bench"
  git_here cat-file -e "$id:CMakePresets.json" 2>/dev/null || refuse "commit $commit has no CMakePresets.json to build it by"
  tree=$kept/${id:0:12}
  if [[ ! -d $tree ]]; then
    rm -rf "$tree.new"
    mkdir "$tree.new"
    git_here archive "$id" | tar -x -C "$tree.new"
    mv "$tree.new" "$tree"
  fi
  build "$tree" -DCOHORT_BUILD_TESTS=OFF -DCOHORT_BUILD_EXAMPLES=OFF
  old=$tree/build/bin/cohort-bench
  old_name=$(git_here log -1 --format='%h of %cs, "%s"' "$id")
}

if [[ $commit == */* && -f $commit && -x $commit ]]; then
  old=$commit old_name=$commit
else
  old_program
fi
new=$new_program new_name=$new_program
if [[ -z $new ]]; then
  build "$root"
  new=$root/build/bin/cohort-bench new_name="this tree"
fi

launcher=()
if ((ranks > 1)); then
  launcher=(mpirun -n "$ranks")
  # As compare.sh binds them.
  if [[ $(mpirun --version 2>/dev/null) =~ Open\ MPI|OpenRTE ]]; then
    launcher+=(--map-by core --bind-to core:overload-allowed)
  fi
fi

# The time that one run may take; far above what any needs.
limit=1800

# run WHICH PROGRAM ROUND: its rows go to measurements.csv.
run() {
  local which=$1 program=$2 round=$3
  echo "# $which, round $round" >>"$log"
  if ! timeout "$limit" "${launcher[@]}" "$program" "${arguments[@]}" --format csv </dev/null >"$scratch/out" 2>"$scratch/err"; then
    cat "$scratch/err" >>"$log"
    grep '^cohort-bench: ' "$scratch/err" >&2 || tail -n 5 "$scratch/err" >&2
    fail "the $which program failed in round $round; everything is in $log"
  fi
  cat "$scratch/err" >>"$log"
  awk -f "$here/against/rows.awk" -v which="$which" -v round="$round" "$scratch/out" >>"$kept/measurements.csv" ||
    fail "the $which program's report has no times that this script knows: $(head -n 1 "$scratch/out")"
}

# Even if all ratios were below the bound, chance would do that in 1 of 2^rounds cases, and there are many rows.
require_enough_rounds() {
  [[ -n $fail_below ]] || return 0
  local rows least
  rows=$(awk -F, 'NR > 1 && !seen[$3]++ { count++ } END { print count + (count > 1) }' "$kept/measurements.csv")
  least=$(awk -v rows="$rows" 'BEGIN { for (least = 1; rows / 2 ^ least > 0.01; least++); print least }')
  ((rounds >= least)) || refuse "--rounds $rounds: with --fail-below $rows tests need at least $least rounds to show anything"
}

# A peer would only cost time.
case $1 in
  all-* | reduce* | broadcast | barrier | gather | scatter | profile)
    [[ " $* " == *" --peer"* ]] || arguments+=(--peer none) ;;
esac

echo "which,round,row,unit,time" >"$kept/measurements.csv"
for ((round = 1; round <= rounds; ++round)); do
  say "round $round of $rounds"
  # Whoever is first in a round finds the machine as the other left it, so they take turns in that, too.
  if ((round % 2)); then
    run old "$old" "$round"
    run new "$new" "$round"
    ((round > 1)) || require_enough_rounds
  else
    run new "$new" "$round"
    run old "$old" "$round"
  fi
done

echo "cohort-bench $*, $ranks rank$( ((ranks == 1)) || echo s), $rounds round$( ((rounds == 1)) || echo s)"
echo "old: $old_name"
echo "new: $new_name"
echo
awk -f "$here/against/table.awk" -v fail_below="$fail_below" "$kept/measurements.csv"
