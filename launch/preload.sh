# shellcheck shell=bash
# shellcheck disable=SC2034  # what it sets is for who sources it
# Sourced by what starts MPI programs with libcohort-mpi.so.
#
#   preload_by LIBRARY...   sets `preloading`: the variables, as words NAME=VALUE, with which a program gets the libraries, all of one
#                           folder, before its others, and after those that LD_PRELOAD has; status 2 and a message where the loader
#                           could not find them
preload_by() {
  local folder=${1%/*} names
  if [[ $1 == *:* ]]; then
    echo "$1 cannot be preloaded: the dynamic loader ends a name at a colon; move it to a folder without one" >&2
    return 2
  fi
  names=$(IFS=:; echo "$*")
  if [[ $folder != *[[:space:]]* ]]; then
    preloading=("LD_PRELOAD=$names${LD_PRELOAD:+:$LD_PRELOAD}")
    return 0
  fi
  # A blank ends a name in LD_PRELOAD, but none in the list of folders that a bare name is looked for in.
  names=$(IFS=:; echo "${*##*/}")
  preloading=("LD_PRELOAD=$names${LD_PRELOAD:+:$LD_PRELOAD}" "LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
}
