#!/usr/bin/env bash
# What cohort-info says of GPUs and NCCL, over the stand-ins for both.
#
#   cohort_info_gpus.sh COHORT_INFO JSON_VALUE NCCL_VERSION VARIABLE=VALUE...
#
# The variables make three GPUs and the stand-in for NCCL; NCCL_VERSION is that of its header.
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
program=$1 json_value=$2 nccl_version=$3
shift 3
environment=("$@")

# info VARIABLE=VALUE... [ARGUMENT...]: cohort-info with more variables.
info() {
  local more=()
  while (($#)) && [[ $1 == *=* ]]; do
    more+=("$1")
    shift
  done
  succeeds env "${environment[@]}" "${more[@]}" "$program" "$@"
}
says() { grep -q "$1" "$scratch/out" || fail "no '$1' in: $(cat "$scratch/out")"; }
json() { "$json_value" "$@" <"$scratch/out" | paste -sd' '; }

echo "text: each GPU, and NCCL"
info GPU_STAND_IN_MEMORY=2147483648
says '^  cuda:0 .*stand-in.*2048 MiB, compute capability 9.0, at 0000:01:00.0, reaches the memory of cuda:1 cuda:2$'
says '^  cuda:2 .* at 0000:03:00.0, reaches the memory of cuda:0 cuda:1$'
same "GPUs" 3 "$(grep -c '^  cuda:[0-9]' "$scratch/out")"
says "^  NCCL $nccl_version from .*nccl_stand_in"

echo "json: the same"
info --format json
same "GPUs, names" "3 cuda:0 cuda:2" "$(json /gpus/list /gpus/list/0/name /gpus/list/2/name)"
same "of the last one" "0000:03:00.0 9.0 1073741824 2 cuda:0 true null" "$(json /gpus/list/2/bus_id \
  /gpus/list/2/compute_capability /gpus/list/2/memory_bytes /gpus/list/2/peers /gpus/list/2/peers/0 \
  /gpus/list/2/memory_pools /gpus/why_none)"
same "NCCL" "$nccl_version null" "$(json /nccl/version /nccl/why_none)"

echo "what a process sees: a part of them, GPUs that do not reach each other, none"
info CUDA_VISIBLE_DEVICES=2
same "GPUs" 1 "$(grep -c '^  cuda:[0-9]' "$scratch/out")"
says "^  cuda:0 .* at 0000:03:00.0, reaches no other GPU's memory$"
info GPU_STAND_IN_NO_PEERS=1
says "^  cuda:1 .* reaches no other GPU's memory$"
info CUDA_VISIBLE_DEVICES=
says '^  no GPU   no CUDA-capable device is detected$'
info CUDA_VISIBLE_DEVICES= --format json
same "GPUs, reason" "0 no CUDA-capable device is detected" "$(json /gpus/list /gpus/why_none)"

echo "why NCCL is not there"
info COHORT_NCCL_LIBRARY=/nowhere/libnccl.so.2
says '^  none: NCCL cannot be used. Tried: /nowhere/libnccl.so.2 (COHORT_NCCL_LIBRARY): .*COHORT_NCCL_LIBRARY$'
info NCCL_STAND_IN_VERSION=21801 --format json
same "path, version" "null null" "$(json /nccl/path /nccl/version)"
[[ $(json /nccl/why_none) == *'is NCCL 2.18.1, older than the header'* ]] || fail "no reason: $(cat "$scratch/out")"
