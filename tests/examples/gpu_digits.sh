#!/usr/bin/env bash
# Trains the network on digits with CPUs and with GPUs, from the same weights and on the same batches, and
# compares the losses and accuracies that the two programs print.
#
#   gpu_digits.sh STRATEGY REPLICAS DIGITS GPU_DIGITS [VARIABLE=VALUE...] [-- LAUNCHER...]
#
# The variables are for the program on GPUs. Where it sees none, its line says so, and nothing is compared.
set -euo pipefail
strategy=$1 replicas=$2 digits=$3 gpu_digits=$4
shift 4
environment=()
while (($#)) && [[ $1 != -- ]]; do
  environment+=("$1")
  shift
done
launcher=("${@:2}")
epochs=4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }

"${launcher[@]}" env "${environment[@]}" "$gpu_digits" --strategy "$strategy" --epochs "$epochs" \
  >"$scratch/gpu" 2>"$scratch/err" || { cat "$scratch/err"; exit 1; }
"$digits" --strategy default --epochs "$epochs" >"$scratch/cpu"
cat "$scratch/gpu"

last=$(tail -n 1 "$scratch/gpu")
[[ $last == "$strategy: "* ]] || fail "no result"
[[ $replicas == any || $last == "$strategy: $replicas replica"* ]] || fail "not $replicas replicas"
[[ $(wc -l <"$scratch/gpu") == "$((epochs + 1))" ]] || fail "not $epochs epochs"

# The rounding of sums differs, and of tanh on GPUs.
paste <(grep '^epoch' "$scratch/cpu") <(grep '^epoch' "$scratch/gpu") |
  awk '{
    for (i = 1; i <= NF; ++i) if ($i == "loss" || $i == "accuracy") value[$i, ++seen[$i]] = $(i + 1)
    if (seen["loss"] != 2 || seen["accuracy"] != 2) exit 1
    loss = value["loss", 1] - value["loss", 2]
    accuracy = value["accuracy", 1] - value["accuracy", 2]
    if (loss * loss > 1e-8 * value["loss", 1] ^ 2 || accuracy * accuracy > 4e-6) exit 1
    delete seen
  }' || fail "not what CPUs compute: $(cat "$scratch/cpu")"
accuracies=$(tail -qn 1 "$scratch/cpu" "$scratch/gpu" | sed 's/.*accuracy //' | paste -sd' ')
awk -v both="$accuracies" 'BEGIN { split(both, a, " "); exit !((a[1] - a[2]) ^ 2 < 4e-5 && a[2] > 0.8) }' ||
  fail "test accuracies on CPUs and GPUs: $accuracies"
