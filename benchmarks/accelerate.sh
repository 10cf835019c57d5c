#!/usr/bin/env bash
# What an MPI program gains when libcohort-mpi.so carries out its collectives: runs it without and with the library in
# turns, and says how long it took, which calls were carried out and which were left to the MPI, and why.
#
#   benchmarks/accelerate.sh [options] [PROGRAM [ARGUMENT ...]]
#
#   PROGRAM               any MPI program; by default benchmarks/mpi_collectives.c, whose table of times is compared row
#                         by row
#
#   --ranks N             default 2
#   --rounds N            times that each has a turn; default 5
#   --mpicc PATH          compiler for mpi_collectives.c; default mpicc. Its folder's mpirun or mpiexec starts PROGRAM,
#                         with the environment of launch/mpirun-env.sh
#   --library PATH        default build/lib/libcohort-mpi.so, which is built first
#   --memory yes|no       also moves buffers into shared memory (libcohort-mpi-memory.so); default no
#   --fail-below R        exits with 1 if a ratio is below R
#
# A ratio is the time without over the time with the library, so above 1 the library gains; taken in each round, and its
# median, least and greatest are printed. PROGRAM's own output goes to build/accelerate/.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)

refuse() { echo "accelerate.sh: $*; see --help" >&2; exit 2; }
say() { echo "accelerate.sh: $*" >&2; }
fail() { say "$*"; exit 1; }

ranks=2 rounds=5 mpicc=mpicc library='' memory=no fail_below=0
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
    --mpicc) mpicc=$2 ;;
    --library) [[ -f $2 ]] || refuse "$1 $2: no such file"; library=$(realpath "$2") ;;
    --memory) [[ $2 =~ ^(yes|no)$ ]] || refuse "$1 $2: yes or no"; memory=$2 ;;
    --fail-below) [[ $2 =~ ^[0-9]+(\.[0-9]+)?$ ]] || refuse "$1 $2: write a number, for example 0.97"; fail_below=$2 ;;
    *) refuse "unknown option $1" ;;
  esac
  shift 2
done
compiler=$(command -v "$mpicc") || refuse "there is no $mpicc"
launcher=''
for name in mpirun mpiexec; do
  # Debian has several MPIs beside each other, as mpicc.openmpi and mpirun.openmpi.
  candidate=$(dirname "$compiler")/$name${compiler##*/mpicc}
  if [[ -x $candidate ]]; then launcher=$candidate; break; fi
done
[[ -n $launcher ]] || refuse "beside $compiler there is neither mpirun nor mpiexec"

folder=$root/build/accelerate
mkdir -p "$folder"
if [[ -z $library ]]; then
  library=$root/build/lib/libcohort-mpi.so
  [[ -f $root/build/build.ninja ]] || fail "there is no build: run launch/quickstart.sh, or give --library"
  cmake --build "$root/build" --target preload >"$folder/log.txt" || fail "the library cannot be built: see $folder/log.txt"
fi
has_table=no
if (($# == 0)); then
  "$compiler" -O2 -o "$folder/mpi_collectives" "$here/mpi_collectives.c"
  set -- "$folder/mpi_collectives"
  has_table=yes
fi

# shellcheck source=launch/mpirun-env.sh
source "$root/launch/mpirun-env.sh"
# shellcheck source=launch/preload.sh
source "$root/launch/preload.sh"
libraries=("$library")
if [[ $memory == yes ]]; then libraries+=("${library%.so}-memory.so"); fi
preload_by "${libraries[@]}"
# turn with|without ROUND: the program's output and its seconds, in files.
turn() {
  local variables=() begin=${EPOCHREALTIME/[.,]/} status=0
  if [[ $1 == with ]]; then variables=("${preloading[@]}" COHORT_RUN_NUMBERS=1); fi
  "$launcher" -n "$ranks" env "${variables[@]}" "${@:3}" >"$folder/$1.$2.txt" 2>"$folder/$1.$2.log" || status=$?
  ((status == 0)) || fail "round $2, $1 the library: exit status $status; see $folder/$1.$2.txt and .log"
  echo $((${EPOCHREALTIME/[.,]/} - begin)) >"$folder/$1.$2.us"
}
rm -f "$folder"/with*.[0-9]*.*
for ((round = 1; round <= rounds; round++)); do
  say "round $round of $rounds"
  turn without "$round" "$@"
  turn with "$round" "$@"
done

# Lines of: row, round, time without, time with.
if [[ $has_table == yes ]]; then
  unit=us
  for ((round = 1; round <= rounds; round++)); do
    awk -v round="$round" 'NR == FNR { if (NF == 3) t[$1 " " $2] = $3; next }
      ($1 " " $2) in t { printf "%s %s\t%d\t%s\t%s\n", $1, $2, round, t[$1 " " $2], $3 }' \
      "$folder/without.$round.txt" "$folder/with.$round.txt"
  done >"$folder/times.tsv"
else
  unit=s
  for ((round = 1; round <= rounds; round++)); do
    awk -v round="$round" 'NR == FNR { t = $1; next } { printf "whole program\t%d\t%g\t%g\n", round, t / 1e6, $1 / 1e6 }' \
      "$folder/without.$round.us" "$folder/with.$round.us"
  done >"$folder/times.tsv"
fi

echo "$* on $ranks ranks, $rounds rounds; $("$launcher" --version 2>/dev/null | sed -n 1p)"
echo
status=0
awk -F '\t' -v unit="$unit" -v fail_below="$fail_below" '
  function sort(values, n,    i, j, v) {
    for (i = 2; i <= n; i++) {
      v = values[i]
      for (j = i - 1; j >= 1 && values[j] > v; j--) values[j + 1] = values[j]
      values[j + 1] = v
    }
  }
  function median_of(values, n) { sort(values, n); return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2 }
  !($1 in rounds) { rows[++count] = $1 }
  { n = ++rounds[$1]; without[$1, n] = $3; with[$1, n] = $4 }
  END {
    printf "%-26s %12s %12s  %7s %7s %9s\n", "row", "without " unit, "with " unit, "ratio", "least", "greatest"
    for (r = 1; r <= count; r++) {
      row = rows[r]
      for (n = 1; n <= rounds[row]; n++) { a[n] = without[row, n]; b[n] = with[row, n]; q[n] = a[n] / b[n] }
      m = rounds[row]
      ratio = median_of(q, m)
      printf "%-26s %12.4g %12.4g  %7.3f %7.3f %9.3f\n", row, median_of(a, m), median_of(b, m), ratio, q[1], q[m]
      logs += log(ratio)
      if (ratio < fail_below) { slow = slow " " row ";" }
    }
    if (count > 1) printf "%-26s %12s %12s  %7.3f\n", "geometric mean", "", "", exp(logs / count)
    if (slow != "") { print "below " fail_below ":" slow > "/dev/stderr"; exit 1 }
  }' "$folder/times.tsv" || status=1
echo
grep -h '^cohort: MPI_' "$folder/with.$rounds.log" || echo "no collective was called after MPI_Init by way of libcohort-mpi.so"
exit "$status"
