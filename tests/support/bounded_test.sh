#!/usr/bin/env bash
# bounded_test.sh BOUNDED PROGRAM: what `bounded` makes of tests that end, that hang and that leave processes behind.
# PROGRAM (hangs.cpp) hangs.
set -euo pipefail
bounded=$(realpath "$1") program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
fail() { echo "bounded_test: $*" >&2; cat "$log" >&2; exit 1; }

# under BOUND COMMAND...: runs it, with its outcome in $status and $log.
under() {
  status=0
  # Bash says on its own standard error by which signal a process has ended.
  { TEST_TIME_LIMIT_SECONDS=$1 "$bounded" "${@:2}" >"$log" 2>&1 || status=$?; } 2>/dev/null
}
# Processes of this test know its folder by a variable.
export FOLDER_OF_BOUNDED_TEST=$scratch
left() { grep -lsz "^FOLDER_OF_BOUNDED_TEST=$scratch\$" /proc/[0-9]*/environ | cut -d / -f 3 | grep -vx $$ || true; }
nothing_is_left() {
  local pid
  for pid in $(left); do
    # Those that this question has made have ended.
    [[ ! -e /proc/$pid ]] || fail "left: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
  done
}
says() { grep -qE -- "$1" "$log" || fail "the log does not say: $1"; }

# A test that ends: its status, and no word.
for expected in 0 3 77; do
  under 60 bash -c "exit $expected"
  ((status == expected)) || fail "status $status, not $expected"
  [[ ! -s $log ]] || fail "words"
done
for signal in KILL SEGV; do
  # shellcheck disable=SC2016  # the inner shell's own process
  under 60 bash -c 'ulimit -c 0; kill -'"$signal"' $$'
  [[ $(kill -l "$status") == "$signal" ]] || fail "status $status, not that of SIG$signal"
done
under 60 "$scratch/no_such_program"
((status == 127)) || fail "status $status of a program that is not there"
[[ $(echo word | TEST_TIME_LIMIT_SECONDS=60 "$bounded" cat) == word ]] || fail "the input does not come through"

# It hears of what ends programs.
# shellcheck disable=SC2016  # for the inner shell
under 60 bash -c 'trap "exit 5" TERM; kill -TERM $PPID; while true; do sleep 0.1; done'
((status == 5)) || fail "status $status of a test that ends by SIGTERM"

# A test that ends before its processes do: they get the time to end, and no more.
under 60 bash -c 'sleep 0.5 & exit 3'
((status == 3)) || fail "status $status, not 3"
[[ ! -s $log ]] || fail "words"
under 60 bash -c 'sleep 1000 & exit 3'
((status == 3)) || fail "status $status, not 3"
says '^bounded: bash has ended, but these of its processes live on:'
says ' sleep 1000: sleeps$'
nothing_is_left

# hangs BOUND COMMAND...: a test that hangs, with an end that cannot be taken for a success.
hangs() {
  SECONDS=0
  under "$@"
  ((SECONDS < $1 + 60)) || fail "it takes $SECONDS s"
  [[ $(kill -l "$status") == ALRM ]] || fail "status $status of a test that hangs"
  says "^bounded: no end after $1 s: "
  nothing_is_left
}

# All that it has started: in a session of its own, an orphan, and one that ignores SIGTERM.
if command -v gdb >/dev/null; then
  # shellcheck disable=SC2016  # for the inner shell
  hangs 4 bash -c '(setsid "$0" &); (trap "" TERM; exec sleep 1000) & "$0"' "$program"
  says ' bash -c .*: sleeps$'
  says ' sleep 1000: sleeps$'
  (($(grep -cE "[0-9]  $program: sleeps\$" "$log") == 2)) || fail "not both programs are listed"
  (($(grep -c '^  #.* in wait_for_nobody' "$log") == 2)) || fail "not both stacks are there"
fi

mkdir "$scratch/bin"
printf '#!%s\nPATH=%q exec %q "$@"\n' "$BASH" "$scratch/bin" "$bounded" >"$scratch/without_gdb"
chmod +x "$scratch/without_gdb"
bounded=$scratch/without_gdb
hangs 2 "$program"
says '^gdb is not installed'
says '^  thread [0-9]+ \(hangs\) sleeps: futex\('
