# shellcheck shell=bash
# Sourced where a bundle of gpu_bundle.sh is to run: unpacks it once, finds CUDA's libraries and NCCL, sets the paths
# and says what it found. Returns 1, with what was looked for, where the programs could not start.
#
# It is unpacked beside this file, or below TMPDIR where that cannot be written. COHORT_NCCL_LIBRARY stays as it is.

cohort_bundle_unpack() {
  local folder=$1 name
  mkdir -p "$folder.$$" || return
  LD_LIBRARY_PATH=$bundle/unpack "$bundle/unpack/zstd" -q -d --long=27 -c "$bundle/bundle.tar.zst" |
    tar -x -C "$folder.$$" || { rm -rf "$folder.$$"; return 1; }
  for name in "$folder.$$"/cohort/lib/spare/*; do
    if ! grep -q "^[[:space:]]*${name##*/} " <<<"$(/sbin/ldconfig -p 2>/dev/null)"; then mv "$name" "$folder.$$/cohort/lib/"; fi
  done
  mv -T "$folder.$$" "$folder" 2>/dev/null || rm -rf "$folder.$$"  # somebody else was first
}

# cohort_bundle_find LIBRARY: prints its path: the loader's, the toolkit's, or that of pip's packages.
cohort_bundle_find() {
  local path
  /sbin/ldconfig -p 2>/dev/null | sed -n "s/^[[:space:]]*$1 .* => //p" | head -n 1 | grep . && return
  for path in ${CUDA_HOME:+"$CUDA_HOME"/lib64/"$1"} /usr/local/cuda*/{lib64,lib,targets/x86_64-linux/lib}/"$1"; do
    if [[ -e $path ]]; then echo "$path"; return; fi
  done
  command -v python3 >/dev/null && python3 - "$1" <<'END'
import glob, sys, sysconfig
folders = sorted({*sys.path, *sysconfig.get_paths().values()})
found = [path for folder in folders for path in glob.glob(f"{glob.escape(folder)}/nvidia/**/{sys.argv[1]}", recursive=True)]
print(found[0]) if found else sys.exit(1)
END
}

cohort_bundle() {
  local bundle tree folder library path missing='' folders=''
  bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || return
  folder=$bundle/unpacked
  if [[ ! -d $folder && ! -w $bundle ]]; then folder=${TMPDIR:-/tmp}/cohort-bundle.$UID.$(<"$bundle/bundle.id"); fi
  if [[ ! -d $folder ]]; then cohort_bundle_unpack "$folder"; fi
  tree=$folder/cohort
  [[ -x $tree/build/bin/cohort-info ]] || { echo "bundle: cannot unpack $bundle into $folder: is there room?" >&2; return 1; }
  for library in libcudart.so.13 libcublas.so.13 libcublasLt.so.13 libnccl.so.2; do
    if [[ $library == libnccl* && -n ${COHORT_NCCL_LIBRARY:-} ]]; then
      path=$COHORT_NCCL_LIBRARY
    else
      path=$(cohort_bundle_find "$library") || path=''
    fi
    printf 'bundle: %-18s %s\n' "$library" "${path:-not found: not by the loader, in /usr/local/cuda, among the packages of python3}"
    case $library in
      libnccl*) if [[ -n $path ]]; then export COHORT_NCCL_LIBRARY=$path; fi ;;
      *) if [[ -n $path ]]; then folders+=${path%/*}:; else missing=yes; fi ;;
    esac
  done
  export PATH=$tree/tests:$tree/build/bin:$tree/usr/bin:$PATH
  export LD_LIBRARY_PATH=$tree/lib:$folders${LD_LIBRARY_PATH:-}
  export OPAL_PREFIX=$tree/usr OPAL_SYSCONFDIR=$tree/etc/openmpi
  local pmix=$tree/usr/lib/x86_64-linux-gnu/pmix2
  export PMIX_PREFIX=$pmix PMIX_LIBDIR=$pmix/lib PMIX_PKGLIBDIR=$pmix/lib/pmix PMIX_DATADIR=$pmix/share
  # Otherwise Open MPI's plug-ins ask for shared memory and users' credentials that a bare machine may lack.
  export PMIX_MCA_gds=hash PMIX_MCA_psec=native
  echo "bundle: $tree, $(mpirun --version 2>&1 | sed -n 1p)"
  [[ -z $missing ]] || { echo "bundle: the programs cannot start without CUDA's runtime libraries" >&2; return 1; }
}
cohort_bundle
