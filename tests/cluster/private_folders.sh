# shellcheck shell=bash
# Sourced by process 1 of each virtual host, in a mount namespace of its own: where processes
# of one host meet through files, hosts must not. The folders that the user shares stay.

# The launch agent, under a name that is the same on all hosts wherever the checkout is: Open MPI splits it at blanks,
# and tests find the first process of a host by it.
# shellcheck disable=SC2034  # used by who sources this
readonly agent=/run/scripts/agent.sh

make_private_folders() {
  local folder scripts
  scripts=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
  mount -t tmpfs -o mode=755 tmpfs /run
  ln -s "$scripts" /run/scripts
  mkdir /run/tmp
  mount -t tmpfs -o mode=1777 tmpfs /run/tmp
  while read -r folder; do
    [[ $folder == /tmp/?* ]] || continue
    mkdir -p "/run$folder"
    mount --bind "$folder" "/run$folder"
  done <<<"$HOSTS_SHARED_FOLDERS"
  mount --move /run/tmp /tmp
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  unset TMPDIR  # may be shared
}
