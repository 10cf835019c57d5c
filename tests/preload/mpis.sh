# shellcheck shell=bash
# shellcheck disable=SC2034  # what it sets is for who sources it
# Sourced by the suites: which MPI they use, and what they install for it.
#
#   choose_mpi NAME|FOLDER    sets mpicc, mpif77, mpif90 and mpirun, the commands of Debian's openmpi or mpich or those in
#                             FOLDER/bin, and `mpi`, a name for files
#   install_packages NAME...  installs the Debian packages that are missing

install_packages() {
  local installed missing alternative value
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p') || true
  mapfile -t missing < <(printf '%s\n' "$@" | grep -vxF "$installed")
  ((${#missing[@]})) || return 0
  if [[ -z $(type -t apt-get) ]] || ((EUID != 0)); then
    echo "missing: ${missing[*]}; they are Debian's packages, installed as root" >&2
    return 1
  fi
  echo "installing ${missing[*]}"
  # A second MPI must not change what mpicc, mpirun and mpi.h mean to others on this machine.
  local -A values=()
  for alternative in mpi "mpi-$(uname -m)-linux-gnu" mpirun; do
    value=$(update-alternatives --query "$alternative" 2>/dev/null | sed -n 's/^Value: //p') || true
    [[ -z $value ]] || values[$alternative]=$value
  done
  DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing[@]}" </dev/null
  for alternative in "${!values[@]}"; do
    value=$(update-alternatives --query "$alternative" | sed -n 's/^Value: //p')
    [[ $value == "${values[$alternative]}" ]] || update-alternatives --set "$alternative" "${values[$alternative]}"
  done
}

choose_mpi() {
  local folder="" suffix=""
  case $1 in
    openmpi) install_packages openmpi-bin libopenmpi-dev gfortran >&2; suffix=.openmpi ;;
    mpich) install_packages mpich libmpich-dev gfortran >&2; suffix=.mpich ;;
    */*) folder=$(realpath "$1")/bin/ ;;
    *) echo "unknown MPI '$1': openmpi, mpich, or a folder" >&2; return 2 ;;
  esac
  mpicc=${folder}mpicc$suffix mpif77=${folder}mpif77$suffix mpif90=${folder}mpif90$suffix mpirun=${folder}mpirun$suffix
  mpi=$(tr -c 'A-Za-z0-9.\n' - <<<"${1#/}")
  if ! command -v "$mpicc" >/dev/null || ! command -v "$mpirun" >/dev/null; then
    echo "there is no $mpicc, or no $mpirun" >&2
    return 2
  fi
}
