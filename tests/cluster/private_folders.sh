# shellcheck shell=bash
# Sourced by process 1 of each virtual host, in a mount namespace of its own: where processes
# of one host meet through files, hosts must not. The folders that the user shares stay.

make_private_folders() {
  local folder
  mount -t tmpfs -o mode=755 tmpfs /run
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
