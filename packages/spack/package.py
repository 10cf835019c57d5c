# A recipe for Spack 1: in a repository of your own, this file is packages/cohort/package.py below the folder that
# `spack repo create` names (and `spack repo add` makes known). Cohort has no releases to download yet, so it is built from a checkout:
#
#   spack dev-build --source-path /path/to/cohort cohort@main +mpi
#
# Not tried: Spack cannot be had where this was written. It says in Spack's words what CMakeLists.txt asks for; names of
# packages, imports and variants were compared with Spack's own recipes of July 2026.
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Cohort(CMakePackage, CudaPackage):
    """Distribution strategies and collectives for C++ programs under MPI and Slurm."""

    license("Apache-2.0")

    version("main")

    variant("shared", default=True, description="Build shared libraries")
    variant("mpi", default=True, description="Build cohort::mpi and the tools, for programs under mpirun or srun")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("help2man", type="build", when="+mpi")

    depends_on("mpi", when="+mpi")
    depends_on("boost@1.74: +program_options", when="+mpi")
    depends_on("cuda@12:", when="+cuda")
    depends_on("fmt@9:")
    depends_on("spdlog")
    depends_on("nlohmann-json")
    depends_on("hwloc@2:")
    depends_on("highway@1:")
    depends_on("isa-l")
    depends_on("libzip")
    depends_on("openssl@3:")
    depends_on("dlpack", type="build")

    generator("ninja")

    conflicts("%gcc@:11", msg="Cohort is C++20 with coroutines; GCC 12 is the oldest that was tried")

    def cmake_args(self):
        args = [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("COHORT_MPI", "mpi"),
            self.define_from_variant("COHORT_CUDA", "cuda"),
            self.define("COHORT_TORCH", False),
            self.define("COHORT_BUILD_TESTS", False),
            self.define("COHORT_BUILD_EXAMPLES", False),
            self.define_from_variant("COHORT_BUILD_TOOLS", "mpi"),
            self.define_from_variant("COHORT_BUILD_BENCHMARKS", "mpi"),
        ]
        if self.spec.satisfies("+mpi"):
            args.append(self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc))
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args
