#!/usr/bin/env bash
# What programs that many people run gain when libcohort-mpi.so carries out their collectives: whole runs of programs that Debian
# has packages of, by accelerate.sh, without and with the library in turns.
#
#   benchmarks/accelerate_codes.sh [options] [CODE ...]
#
#   CODE                  hpcc, lammps, pwscf or meep; by default all of them. One that is not installed is left out
#
#   --ranks N             default 2
#   --rounds N            times that each has a turn; default 5
#   --size N              how long a run takes, roughly in proportion; default 4
#
# hpcc: HPC Challenge, a system of 500 equations for each unit of size. lammps: a liquid of 4000 atoms, with its energies at every
# step. pwscf: Quantum ESPRESSO, 8 atoms of silicon with the pseudopotential Si.pz-vbc of Debian's quantum-espresso-data.
# meep: light in a bent guide. Programs and inputs lie in build/accelerate/CODE.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)

refuse() { echo "accelerate_codes.sh: $*; see --help" >&2; exit 2; }

codes=() options=() size=4 ranks=2
while (($#)); do
  case $1 in
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit ;;
    --ranks | --rounds | --size)
      [[ ${2:-} =~ ^[1-9][0-9]{0,3}$ ]] || refuse "$1 needs a whole number from 1 to 9999"
      if [[ $1 == --size ]]; then size=$2; else options+=("$1" "$2"); fi
      if [[ $1 == --ranks ]]; then ranks=$2; fi
      shift 2 ;;
    hpcc | lammps | pwscf | meep) codes+=("$1"); shift ;;
    *) refuse "unknown option or code $1" ;;
  esac
done
((${#codes[@]})) || codes=(hpcc lammps pwscf meep)

# hpcc reads hpccinf.txt, and adds to hpccoutf.txt.
input_of_hpcc() {
  local n=$((size * 500))
  sed -e "s/^1000  *Ns/$n Ns/" -e "s/^2  *Ps/1 Ps/" -e "s/^2  *Qs/$ranks Qs/" /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt
}

input_of_lammps() {
  cat >in.liquid <<END
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 1 delay 0 check yes
fix 1 all nve
thermo 1
run $((size * 300))
END
}

input_of_pwscf() {
  cat >silicon.in <<END
&control
  calculation = 'scf', prefix = 'silicon', outdir = './out', disk_io = 'none'
  pseudo_dir = '/usr/share/espresso/pseudo'
/
&system
  ibrav = 1, celldm(1) = 10.2, nat = 8, ntyp = 1, ecutwfc = $((size * 8))
/
&electrons
  conv_thr = 1.0d-8
/
ATOMIC_SPECIES
  Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
  Si 0.00 0.00 0.00
  Si 0.50 0.50 0.00
  Si 0.50 0.00 0.50
  Si 0.00 0.50 0.50
  Si 0.25 0.25 0.25
  Si 0.75 0.75 0.25
  Si 0.75 0.25 0.75
  Si 0.25 0.75 0.75
K_POINTS automatic
  4 4 4 0 0 0
END
}

input_of_meep() {
  cat >guide.ctl <<END
(set! geometry-lattice (make lattice (size 16 16 no-size)))
(set! geometry (list
  (make block (center -2 -3.5) (size 12 1 infinity) (material (make dielectric (epsilon 12))))
  (make block (center 3.5 2) (size 1 12 infinity) (material (make dielectric (epsilon 12))))))
(set! sources (list (make source (src (make continuous-src (frequency 0.15))) (component Ez) (center -7 -3.5) (size 0 1))))
(set! pml-layers (list (make pml (thickness 1.0))))
(set! resolution 10)
(define (energy) (field-energy-in-box (volume (center 0 0) (size 14 14))))
(run-until $((size * 25)) (at-every 0.1 energy))
END
}

declare -A command=(
  [hpcc]=hpcc
  [lammps]="lmp -in in.liquid -log none"
  [pwscf]="pw.x -input silicon.in"
  [meep]="meep guide.ctl"
)
declare -A package=([hpcc]=hpcc [lammps]=lammps [pwscf]="quantum-espresso quantum-espresso-data" [meep]=meep-openmpi)

# Threads beside the ranks would share their cores.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
for code in "${codes[@]}"; do
  read -ra words <<<"${command[$code]}"
  if ! command -v "${words[0]}" >/dev/null; then
    echo "accelerate_codes.sh: $code is left out: there is no ${words[0]}, which is in Debian's ${package[$code]}" >&2
    continue
  fi
  folder=$root/build/accelerate/$code
  mkdir -p "$folder"
  (cd "$folder" && "input_of_$code" && "$here/accelerate.sh" --mpicc mpicc.openmpi "${options[@]}" "${words[@]}")
  echo
done
