#!/usr/bin/env bash
# Workers on virtual hosts that find each other through a folder, without MPI.
#
#   tests/cluster/rendezvous_over_hosts.sh PROGRAM HOSTS RANKS_PER_HOST
set -euo pipefail
hosts=$(dirname "${BASH_SOURCE[0]}")/hosts.sh
program=$1

"$hosts" check || exit

work=$(mktemp -d /tmp/cohort-rendezvous.XXXXXX)
trap 'rm -rf "$work"' EXIT
"$hosts" run --hosts "$2" --ranks-per-host "$3" --share "$work" -- "$program" "$work" "$2"
