# shellcheck shell=bash
# Sourced by the checks. `enter_root "$@"` goes to the tree that is checked: the first
# argument, or the one that these scripts belong to. `sources FOLDER...` lists the C++
# files below those of the folders that exist.

enter_root() { cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}" || exit; }

sources() {
  local folder
  for folder; do
    [[ ! -d $folder ]] || find "$folder" -name '*.h' -o -name '*.h.in' -o -name '*.cpp' -o -name '*.cu'
  done | LC_ALL=C sort
}
