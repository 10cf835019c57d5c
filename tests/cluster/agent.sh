#!/usr/bin/env bash
# mpirun calls this where it would call ssh: agent.sh HOST COMMAND... boots a virtual host and
# runs the command there. The host has one daemon of mpirun and lives as long as the cluster.
set -euo pipefail
host=$1
shift
exec ip netns exec "$host" unshare --uts --ipc --mount --pid --fork --kill-child --mount-proc \
  "$(dirname "${BASH_SOURCE[0]}")/host.sh" "$host" "$*"
