#!/usr/bin/env bash
# What cohort-checkpoint prints, and its exit codes.
#
#   tool.sh COHORT-CHECKPOINT MAKE_CHECKPOINT
set -euo pipefail
tool=$1 make=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() { echo "tool.sh: $*" >&2; exit 1; }

# expect CODE PATTERN COMMAND...: the exit code, and a line that matches on either output.
expect() {
  local code=$1 pattern=$2 status=0
  shift 2
  "$tool" "$@" >out 2>&1 || status=$?
  ((status == code)) || fail "'$*' ended with $status instead of $code: $(cat out)"
  grep -qE -- "$pattern" out || fail "'$*' says nothing of '$pattern': $(cat out)"
}

"$make" checkpoints 5
"$make" checkpoints 10

expect 0 '^  list FOLDER ' list --help
expect 2 '^cohort-checkpoint: no command is given; see cohort-checkpoint --help$'
expect 2 "^cohort-checkpoint: there is no command 'burn'; see" burn checkpoints
expect 2 'list does not take 0 paths; see cohort-checkpoint --help' list
expect 0 '^ +5 +16 +1 +[0-9]+  checkpoints/step-5$' list checkpoints
expect 0 '^ +10 +16 ' list checkpoints
expect 1 "no checkpoints in 'nowhere'" list nowhere
expect 0 'step 10, written by 1 worker, [0-9]+ bytes in 2 files' show checkpoints/step-10
expect 0 '^  bfloat16 +bfloat16\[2, 3\] +values-00000-of-00001.safetensors$' show checkpoints/step-10
expect 1 'cannot open' show nowhere
expect 0 '^checkpoints/step-10: sound$' verify checkpoints/step-10
expect 0 '^checkpoints/step-5: sound$' verify checkpoints

expect 2 "verify has no option '--to'" verify checkpoints --to x
expect 2 'verify does not take 2 paths' verify checkpoints checkpoints

"$make" changed 10 changed
"$tool" diff checkpoints/step-5 checkpoints/step-10 >out 2>&1 || fail "equal checkpoints differ: $(cat out)"
[[ ! -s out ]] || fail "a diff of equal checkpoints says $(cat out)"
expect 1 '^float32: 1 of 6 elements differ, by at most 0\.25$' diff checkpoints/step-10 changed/step-10
expect 1 '^float64: 1 of 6 elements differ, by at most nan$' diff checkpoints/step-10 changed/step-10
expect 1 '^scalar: float64\[\] in checkpoints/step-10 and float32\[\] in changed/step-10$' diff checkpoints/step-10 changed/step-10
expect 1 '^no rows: only in checkpoints/step-10$' diff checkpoints/step-10 changed/step-10
expect 1 '^none: only in changed/step-10$' diff checkpoints/step-10 changed/step-10
[[ $(wc -l <out) == 5 ]] || fail "a diff has more lines than values that differ: $(cat out)"
expect 2 'cannot open' diff checkpoints/step-10 nowhere
expect 2 'diff does not take 1 paths' diff checkpoints/step-10

expect 0 '^all.safetensors: 16 values of step 10$' export checkpoints/step-10 --to all.safetensors
expect 0 '16 values of step 5' export checkpoints/step-5 --to all.safetensors
[[ $(head -c 400 all.safetensors | tr -d '\0') == *'"__metadata__":{"format":"pt","step":"5"}'* ]] ||
  fail "an exported file does not say its format and step"
expect 2 'needs --to FILE' export checkpoints/step-10
expect 2 "'all.txt' is neither" export checkpoints/step-10 --to all.txt
expect 0 '^all.npz: 16 values of step 10$' export checkpoints/step-10 --to all.npz
for format in safetensors npz; do
  expect 1 "'nowhere/all.$format" export checkpoints/step-10 --to nowhere/all.$format
done

# What is exported, renamed and transposed comes back by the opposite rules, and is the same.
expect 0 '^part.safetensors: 15 values of step 10$' export checkpoints/step-10 --to part.safetensors --skip text \
  --rename 'float*=f.*.weight' --transpose 'float*' --transpose int8
expect 0 '^imported/step-7: 15 values$' import part.safetensors --to imported --step 7 --rename 'f.*.weight=float*' \
  --transpose 'f.*' --transpose int8
expect 1 '^text: only in checkpoints/step-10$' diff checkpoints/step-10 imported/step-7
[[ $(wc -l <out) == 1 ]] || fail "what was exported and imported differs: $(cat out)"
expect 0 'sound$' verify imported
expect 0 '^  float32 +float32\[2, 3\]' show imported/step-7
expect 1 "there is a checkpoint 'imported/step-7' already" import part.safetensors --to imported --step 7
printf '{"f.32.weight": "dense/kernel", "f.*.weight": "*"}' >map.json
expect 0 '^imported/step-0: 3 values$' import part.safetensors --to imported --map map.json --only 'f.*' --dtype float64
expect 0 '^  dense/kernel +float64\[3, 2\]' show imported/step-0
expect 0 '^  16 +float64\[3, 2\]' show imported/step-0

expect 1 "'int8' and 'int16' would both be called|'int16' and 'int8' would both be called" \
  export checkpoints/step-10 --to x.safetensors --rename int8=int16
expect 1 "nothing that these rules are for: rename 'int9'" export checkpoints/step-10 --to x.safetensors --rename int9=x
expect 1 "nothing that is called 'int9', which --skip names" export checkpoints/step-10 --to x.npz --skip int9
expect 1 "'scalar' cannot be transposed" export checkpoints/step-10 --to x.npz --transpose scalar
expect 2 '--rename is .int8., and must be OLD=NEW' export checkpoints/step-10 --to x.npz --rename int8
expect 2 'same number of' export checkpoints/step-10 --to x.npz --rename 'int*=x'
expect 2 '--dtype is .int8., and must be float16' export checkpoints/step-10 --to x.npz --dtype int8
expect 2 'import needs --to FOLDER' import part.safetensors
expect 2 'import does not take 0 paths' import --to imported
expect 2 "--step is '-1', and must be a number from 0" import part.safetensors --to imported --step -1
expect 1 'cannot open' import nowhere.safetensors --to imported --step 1
expect 1 "'map.json' is no index of safetensors files" import map.json --to imported --step 1
printf '[]' >list.json
expect 1 "'list.json' is no map of names" import part.safetensors --to imported --step 1 --map list.json
expect 1 'is a checkpoint of Cohort' import checkpoints/step-10 --to imported --step 1
[[ ! -e imported/step-1 ]] || fail "an import that failed has left a checkpoint"

# Several files, which replace the one of before; and one, which replaces them.
mkdir shards
expect 0 '16 values' export checkpoints/step-10 --to shards/model.safetensors
expect 0 '^shards/model.safetensors.index.json: 16 values of step 10 in 4 files$' \
  export checkpoints/step-10 --to shards/model.safetensors --max-shard-size 100
shards=$(ls shards | grep -c '^model-0000[1-9]-of-0000[1-9].safetensors$')
[[ -e shards/model.safetensors.index.json && ! -e shards/model.safetensors && $shards == 4 ]] ||
  fail "of several files there are $(ls shards)"
expect 0 '^imported/step-2: 16 values$' import shards --to imported --step 2
"$tool" diff checkpoints/step-10 imported/step-2 >out 2>&1 || fail "several files have other values: $(cat out)"
expect 0 '16 values' export checkpoints/step-10 --to shards/model.safetensors --max-shard-size 200
[[ $(ls shards) == $'model-00001-of-00002.safetensors\nmodel-00002-of-00002.safetensors\nmodel.safetensors.index.json' ]] ||
  fail "larger files have left $(ls shards)"
expect 0 '16 values' export checkpoints/step-10 --to shards/model.safetensors --max-shard-size 1MiB
[[ $(ls shards) == model.safetensors ]] || fail "a single file has left $(ls shards)"
# Files of others stay.
cp shards/model.safetensors shards/model-00001-of-00001.safetensors
sed -i 's/"step":"10"/"epoch":"1"/' shards/model-00001-of-00001.safetensors
printf '{"weight_map":{"int8":"model-00001-of-00001.safetensors"}}' >shards/model.safetensors.index.json
expect 0 '^shards/model.safetensors: 16 values of step 10$' export checkpoints/step-10 --to shards/model.safetensors
[[ $(ls shards | wc -l) == 3 ]] || fail "of another program's files there are $(ls shards)"
for size in 0 x 5XB -1 1.5GB 99999999999GB; do
  expect 2 "--max-shard-size is '$size', and must be a size" export checkpoints/step-10 --to x.safetensors --max-shard-size "$size"
done
expect 2 'only .safetensors have shards' export checkpoints/step-10 --to x.npz --max-shard-size 1GB
rm -r shards imported part.safetensors list.json map.json

[[ $(ls -A) == $'all.npz\nall.safetensors\nchanged\ncheckpoints\nout' ]] || fail "export has left $(ls -A)"

# Daly's interval for a minute and a day: sqrt(2 60 86400) (1 + 0.0062 + 0.00004) - 60.
expect 0 '^save every 53 min \(3180 s\)$' advise --save-seconds 60 --mtbf 24
expect 0 '^  so +3\.8[0-9] %' advise --save-seconds 60 --mtbf 24
expect 0 '\(3180 s\)' advise --save-seconds 60 --mtbf 240 --nodes 10
expect 0 'save every 60 min \(3600 s\)' advise --save-seconds 7200 --mtbf 1
expect 0 '^one process writes the [0-9]+ bytes of checkpoints/step-5 in ' advise checkpoints/step-5 --mtbf 24
expect 0 'sound$' verify checkpoints/step-5
[[ $(ls -A checkpoints/step-5 | wc -l) == 3 ]] || fail "advise has left $(ls -A checkpoints/step-5)"
expect 2 'advise needs --mtbf' advise --save-seconds 60
expect 2 'either --save-seconds or a checkpoint' advise --mtbf 24
expect 2 'either --save-seconds or a checkpoint' advise checkpoints/step-5 --save-seconds 60 --mtbf 24
for number in 0 -1 x inf nan ''; do
  expect 2 "--mtbf is '$number', and must be a number above 0" advise --save-seconds 60 --mtbf "$number"
done
expect 2 "'--mtbf' needs a value" advise --save-seconds 60 --mtbf
expect 2 "'--mtbf' is given twice" advise --mtbf 24 --mtbf 24

# The last byte belongs to one of the smallest elements.
file=checkpoints/step-5/values-00000-of-00001.safetensors
printf '\xee' | dd of=$file bs=1 seek=$(($(stat -c %s $file) - 1)) conv=notrunc status=none
expect 1 '^checkpoints/step-5: damaged$' verify checkpoints
expect 1 "value 'uint8' is damaged" verify checkpoints/step-5
for format in safetensors npz; do
  expect 1 "value 'uint8' is damaged" export checkpoints/step-5 --to damaged.$format
  [[ ! -e damaged.$format ]] || fail "a damaged value was exported to damaged.$format"
done
expect 2 "value 'uint8' is damaged" diff checkpoints/step-5 checkpoints/step-10
expect 0 sound verify checkpoints/step-10
rm checkpoints/step-5/manifest.json
expect 1 '^ +5 +- .*manifest.json' list checkpoints

# One that cannot be judged does not hide the others.
sed 's/"version":1/"version":2/' checkpoints/step-10/manifest.json >manifest
mv manifest checkpoints/step-10/manifest.json
"$make" checkpoints 11
expect 1 '^checkpoints/step-10: .*version 2 of the format.*use a newer one$' verify checkpoints
expect 1 '^checkpoints/step-11: sound$' verify checkpoints
expect 1 '^ +10 +- .*version 2' list checkpoints
expect 0 sound verify checkpoints/step-11

# A folder that is called by another step.
mv checkpoints/step-11 checkpoints/step-12
expect 1 'is of step 11, and its folder of step 12' verify checkpoints
