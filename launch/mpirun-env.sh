# shellcheck shell=bash
# Sourced before mpirun is used on one machine: a workstation, a container, a CI runner.
# Variables instead of flags, because other MPI libraries ignore them.

# Open MPI refuses to start as root, the usual user in a container, unless told twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Permits more workers than cores (Open MPI 4, then 5). With enough cores nothing changes,
# binding included; with too few, Open MPI yields a waiting worker's core by itself.
export OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

# Without this, hwloc looks for displays at each start, and so for the address of localhost, ten times: a minute and
# more where /etc/hosts has none and the name server does not answer.
export HWLOC_COMPONENTS=${HWLOC_COMPONENTS:--gl}
