#!/usr/bin/env bash
# Recorded lines that are not kept here are replayed by naming their file: lines with other numbers are read, and one
# that came out otherwise fails, by its name. The lines are made from those that are kept.
#
#   other_records.sh GOLDEN_TRAINING DATA_FOLDER
set -euo pipefail
program=$1 data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "other_records: $*" >&2; exit 1; }

grep -F '"w2/optimizer_v1/' "$data/golden2.jsonl" >"$work/kept.jsonl"
# The same call, written in another way.
sed -e 's/RMSProp(0.1,momentum=.9,centered)/RMSProp(0.1, decay=.9, momentum=0.9, centered=True)/g' \
  -e 's/Momentum(0.1,0.9)/Momentum(0.1, momentum=.9)/g' -e 's/Adam(0.1)/Adam(0.1,0.9,.999)/g' "$work/kept.jsonl" >"$work/same.jsonl"
! cmp -s "$work/kept.jsonl" "$work/same.jsonl" || fail "no line was changed"
said=$("$program" --records "$work/kept.jsonl" "$work/same.jsonl") || fail "they do not come out as recorded: $said"
[[ $said == "golden: 14 replayed, "*" 0 failed" ]] || fail "it says: $said"

sed -e 's/RMSProp(0.1,momentum=.9,centered)/RMSProp(0.1,momentum=.8,centered)/g' "$work/kept.jsonl" >"$work/other.jsonl"
! said=$("$program" --records "$work/other.jsonl") || fail "another momentum comes out alike"
[[ $said == *"golden: w2/optimizer_v1/default/RMSProp(0.1,momentum=.8,centered)"*" 1 failed" ]] || fail "it says: $said"

! said=$("$program" --records "$work/none.jsonl" 2>&1) || fail "a file that is not there is replayed"
[[ $said == *"$work/none.jsonl: cannot be read"* ]] || fail "of a file that is not there it says: $said"
! said=$("$program" "$work/kept.jsonl" 2>&1) || fail "an argument without --records is taken"
[[ $said == *"--records FILE..."* ]] || fail "of other arguments it says: $said"
