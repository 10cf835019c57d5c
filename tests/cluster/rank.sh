#!/usr/bin/env bash
# rank.sh FOLDER PROGRAM...: becomes the program, with its output in FOLDER/rank.R. The file is
# locked until the last process that writes to it has ended, on whatever host.
set -euo pipefail
exec >>"$1/rank.$OMPI_COMM_WORLD_RANK" 2>&1
flock 1
shift
exec "$@"
