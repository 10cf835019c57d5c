#!/usr/bin/env bash
# Builds the documentation's site in build/docs/site: the guide, the pages of docs/, the examples with their output, and a
# reference of every public name. Open build/docs/site/index.html; neither a server nor a network is needed.
#
#   launch/docs.sh            installs what is missing, builds the site
#   launch/docs.sh --check    also: every warning is an error, and every link within the site is followed
#   launch/docs.sh --record   runs the examples of build/bin/ again, for docs/site/output/
#
# Doxygen comes from Debian, Sphinx and its theme from PyPI into build/docs/venv, in the versions of
# docs/site/requirements.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

check=no
case ${1:-} in
  "") ;;
  --check) check=yes ;;
  --record) exec python3 docs/site/examples.py docs/site/output/*.txt ;;
  -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
  *) echo "docs: unknown option $1; see --help" >&2; exit 2 ;;
esac

launch/setup.sh docs
docs=$PWD/build/docs
mkdir -p "$docs/doxygen"
if ! cmp -s docs/site/requirements.txt "$docs/venv/requirements.txt"; then
  python3 -m venv --clear "$docs/venv"
  "$docs/venv/bin/pip" install --quiet --requirement docs/site/requirements.txt
  cp docs/site/requirements.txt "$docs/venv/"
fi

{ cat docs/site/Doxyfile; echo "OUTPUT_DIRECTORY = \"$docs/doxygen\""; } | doxygen - >"$docs/doxygen/log" 2>&1 ||
  { cat "$docs/doxygen/log" >&2; exit 1; }
PYTHONDONTWRITEBYTECODE=1 "$docs/venv/bin/python" docs/site/assemble.py . "$docs/doxygen/xml" "$docs/source"
options=(--quiet --jobs 2 -d "$docs/doctrees")
if [[ $check == yes ]]; then
  rm -rf "$docs/site"
  [[ ! -s $docs/doxygen/log ]] || { cat "$docs/doxygen/log" >&2; exit 1; }
  options+=(--fail-on-warning --nitpicky --write-all --fresh-env)
fi
"$docs/venv/bin/sphinx-build" "${options[@]}" "$docs/source" "$docs/site"
[[ $check == no ]] || "$docs/venv/bin/python" docs/site/check_links.py "$docs/site"
echo "docs: build/docs/site/index.html"
