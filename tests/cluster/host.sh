#!/usr/bin/env bash
# Process 1 of a virtual host: host.sh NAME COMMAND. The host stays after the command has
# ended, as a real one does when a daemon on it ends.
set -euo pipefail
# shellcheck source=tests/cluster/private_folders.sh
source "$(dirname "${BASH_SOURCE[0]}")/private_folders.sh"

hostname "$1"
make_private_folders
cat /proc/sys/kernel/random/uuid >/run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id

bash -c "$2"
# Bash collects the orphans that end meanwhile.
while true; do
  sleep infinity &
  wait
done
