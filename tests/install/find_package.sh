#!/usr/bin/env bash
# Installs a build of Cohort into a temporary prefix, builds the project beside this
# script against it, and runs the result.
#
#   find_package.sh CMAKE GENERATOR BUILD_DIR CONSUMER_DIR LAUNCHER...
set -euo pipefail

cmake=$1 generator=$2 build=$3 consumer=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
"$cmake" -G "$generator" -S "$consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix"
"$cmake" --build "$work/build"
output=$("$@" "$work/build/consumer")
echo "$output"
[[ $output == "sum of ids 1, weight -1" ]]
