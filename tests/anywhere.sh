#!/usr/bin/env bash
# Runs the quick part of the tests in the places where users have them: in clones with awkward paths, by an ordinary
# user, on machines that lack something. Prints a table; what was skipped and why is in the logs.
#
#   tests/anywhere.sh [--places NAME,NAME,...] [--tests PATTERN] [--jobs N] [--keep]
#
#   --places  some of those in the table; default: all
#   --tests   other tests than the quick part
#   --jobs    compile jobs; default: one per core
#   --keep    leaves the clones and the logs, and prints their folder; without, they stay only after a failure
#
# The commit that is checked out is cloned twice and built: as root, with a path of 150 characters that has blanks, and
# then as an ordinary user. The other places are namespaces and limits around the first clone; those that lack
# something have a build folder of their own, which a compiler cache fills: a new one, or that of CCACHE_DIR. Needs
# root and namespaces.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

refuse() { echo "anywhere: $*; see --help" >&2; exit 2; }

# What depends on the place: paths, users, hosts, programs that are started, what is installed.
quick='launcher_smoke|bounded|build_script|campaign|machine|topology|config|job_socket|process_state|other_users|store'
quick+='|limited_memory\..*|new_file|checkpoint_files|input_files|cluster_resolvers|launcher_place|remote_endpoint.*'
quick+='|rpc_processes|peer_watch_processes|mpi_(session|groups|reports)\..*|node_communicator\.[1-4]ranks|job_look'
quick+='|network_communicator\.[2-4]x[12]|shared_cores|visible_gpus|gpu_(digits|workers)\..*|nccl_(ranks|missing).*'
quick+='|cohort_.*|.*_usage|digits\..*|example\..*|dlpack_exchange\..*|torch_.*|restarts|supervised_job|must_not_compile\..*'
quick+='|cluster\.(hosts|roles\.mpirun|communicator.*|digits|slurm\.jobs)|install\..*'
from_pypi='checkpoint_in_python|summary_files\..*'  # left out where there is no network

all_places=(long user umask tmpdir no-home no-ipv6 unknown-host one-core no-torch no-cuda no-slurm no-namespaces)
places=("${all_places[@]}") tests="" jobs=$(nproc) keep=no
while (($#)); do
  case $1 in
    --places) IFS=, read -ra places <<<"${2:-}"; shift 2 ;;
    --tests) tests=${2:-}; [[ -n $tests ]] || refuse "--tests needs a pattern"; shift 2 ;;
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || refuse "--jobs needs a number"; jobs=$2; shift 2 ;;
    --keep) keep=yes; shift ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
    *) refuse "unknown option $1" ;;
  esac
done
for place in "${places[@]}"; do
  [[ " ${all_places[*]} " == *" $place "* ]] || refuse "there is no place '$place'; those are ${all_places[*]}"
done
((EUID == 0)) || refuse "it makes users and namespaces, which takes root"
unshare --mount --net --uts true 2>/dev/null || refuse "namespaces are not permitted here"

"$root/launch/setup.sh" test
work=$(mktemp -d /tmp/anywhere.XXXXXX)
chmod 755 "$work"
mkdir "$work/logs" "$work/empty" "$work/other place"
echo "raise ImportError('hidden')" >"$work/empty/__init__.py"  # an empty folder would be a module
: >"$work/nothing"
user=anywhere$$ failed=() finished=no
# shellcheck disable=SC2317  # called by the trap
cleanup() {
  if id "$user" &>/dev/null; then userdel --remove "$user" 2>/dev/null; fi
  if [[ $keep == yes || $finished == no ]] || ((${#failed[@]})); then
    echo "anywhere: the clone and the logs are in $work"
  else
    rm -rf "$work"
  fi
}
trap cleanup EXIT

# Takes what is committed.
clone() { git -c safe.directory='*' clone --quiet "$root" "$1"; }

# describe PLACE: sets how the tests are started there, what comes `before` them, and which `clone`, if not the first.
describe() {
  around=() before="" folder=$long pattern=${tests:-$quick|$from_pypi}
  case $1 in
    user)
      useradd --create-home "$user"
      folder=/home/$user/cohort
      clone "$folder"
      chown -R "$user:" "$folder"
      around=(setpriv --reuid "$user" --regid "$user" --clear-groups env -u CCACHE_DIR HOME="/home/$user" USER="$user") ;;
    umask) before="umask 077" ;;
    tmpdir) around=(env TMPDIR="$work/other place") ;;
    no-home) around=(env -u HOME) ;;
    no-ipv6)
      offline
      around=(unshare --net)
      before="ip link set lo up; echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6" ;;
    unknown-host)
      offline
      echo "127.0.0.1 localhost" >"$work/hosts"
      echo "nameserver 127.0.0.1" >"$work/resolv.conf"
      around=(unshare --net --uts --mount)
      before="ip link set lo up; hostname nowhere.invalid; $(hide "$work/hosts" /etc/hosts)
$(hide "$work/resolv.conf" /etc/resolv.conf)" ;;
    one-core) around=(taskset --cpu-list 0) ;;
    no-torch) lack "$1" /usr/lib/x86_64-linux-gnu/cmake/Torch /usr/share/cmake/Torch /usr/lib/python3/dist-packages/torch ;;
    no-cuda) lack "$1" /usr/include/nccl.h /usr/local/include/nccl.h /usr/local/cuda ;;
    no-slurm) lack "$1" /usr/sbin/slurmctld /usr/sbin/slurmd /usr/bin/srun /usr/bin/sbatch ;;
    no-namespaces) around=(setpriv --bounding-set -sys_admin) ;;
  esac
}
offline() { pattern=${tests:-$quick}; }
# hide WITH PATH: a command that puts something else in its place
hide() { [[ ! -e $2 ]] || printf 'mount --bind %q %q\n' "$1" "$(realpath "$2")"; }
# lack PLACE PATH...: these are empty; files come before the folders that they may be in
lack() {
  around=(unshare --mount)
  mkdir -p "$work/build.$1" "$folder/build"
  before=$(hide "$work/build.$1" "$folder/build")
  local path
  for path in "${@:2}"; do before+=$'\n'$(hide "$work/$([[ -d $path ]] && echo empty || echo nothing)" "$path"); done
}

# try PLACE: a line of the table
try() {
  local log=$work/logs/$1.log around before folder pattern status=0 total failures skipped
  describe "$1"
  SECONDS=0
  # shellcheck disable=SC2016  # expanded there
  (cd "$folder" && "${around[@]}" bash -ec "$before"$'\n''exec tests/run.sh --jobs "$1" --only "^($2)\$"' "$1" "$jobs" "$pattern") \
    >"$log" 2>&1 </dev/null || status=$?
  read -r failures total < <(sed -n 's/.*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 \2/p' "$log"; echo "- -")
  skipped=$(grep -c '\*\*\*Skipped' "$log") || true
  printf '%-14s %6s %7s %8s %7d  %s\n' "$1" "$total" "$failures" "$skipped" "$SECONDS" \
    "$( ((status == 0)) && echo passed || echo "failed: logs/$1.log")"
  ((status == 0)) || failed+=("$1")
}

long="$work/a path with blanks/"
long+=$(printf 'x%.0s' $(seq $((150 - ${#long}))))
clone "$long"
export CCACHE_DIR=${CCACHE_DIR:-$work/ccache}
printf '%-14s %6s %7s %8s %7s\n' place tests failed skipped seconds
for place in "${places[@]}"; do try "$place"; done
finished=yes
((${#failed[@]} == 0))
