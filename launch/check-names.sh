#!/usr/bin/env bash
# Says in a sentence what would slow programs down where localhost has no address; otherwise nothing. Called by
# quickstart.sh and tests/run.sh.
#
# hwloc's plugin for displays, which MPI loads in programs that start without mpirun-env.sh, asks for localhost ten
# times. With a name server that does not answer, that is a minute and more for each start. The name of the host
# itself may be unknown: nothing waits for it.
#
#   launch/check-names.sh
if ! timeout 1 getent ahosts localhost >/dev/null; then
  echo "names: localhost has no address here, so some programs may start slowly: add the line '127.0.0.1 localhost' to" \
    "/etc/hosts, or set HWLOC_COMPONENTS=-gl" >&2
fi
