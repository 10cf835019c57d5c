# A recipe for Conan 2, from the root of the tree:
#
#   conan create packages/conan --build=missing
#
# Tried with packages of Debian 12 in place of those of Conan Center (platform_requires in the profile), which could not be
# reached: it builds, and a project that takes the result by CMakeDeps runs on two ranks.
#
# The MPI library is the machine's own, as Cohort must be built with the one that programs run under; so is DLPack's header.
from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy
from conan.tools.gnu import PkgConfigDeps
import os


class CohortConan(ConanFile):
    name = "cohort"
    version = "0.1.0"
    license = "Apache-2.0"
    description = "Distribution strategies and collectives for C++ programs under MPI and Slurm"
    topics = ("mpi", "collectives", "distributed-training")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "mpi": [True, False]}
    default_options = {"shared": False, "mpi": True}

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "mpi/*", "launch/*", "preload/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def requirements(self):
        # Public: installed headers include fmt's.
        self.requires("fmt/[>=9 <13]", transitive_headers=True, transitive_libs=True)
        self.requires("spdlog/[>=1.10 <2]")
        self.requires("nlohmann_json/[>=3.11 <4]")
        self.requires("hwloc/[>=2.9 <3]")
        self.requires("highway/[>=1 <2]")
        self.requires("isa-l/[>=2.30 <3]")
        self.requires("libzip/[>=1.7 <2]")
        self.requires("openssl/[>=3 <4]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["COHORT_MPI"] = bool(self.options.mpi)
        for off in ("COHORT_CUDA", "COHORT_TORCH", "COHORT_BUILD_TESTS", "COHORT_BUILD_EXAMPLES",
                    "COHORT_BUILD_BENCHMARKS", "COHORT_BUILD_TOOLS"):
            toolchain.cache_variables[off] = False
        toolchain.generate()
        PkgConfigDeps(self).generate()  # Cohort's own find modules ask pkg-config for hwloc, isa-l and libzip
        packages = CMakeDeps(self)
        for name in ("hwloc", "isa-l", "libzip"):
            packages.set_property(name, "cmake_find_mode", "none")
        packages.set_property("highway", "cmake_file_name", "hwy")
        packages.set_property("highway", "cmake_target_name", "hwy::hwy")
        packages.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The CMake package is the one that Cohort installs: it finds MPI, and has a target for each layer.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "cohort")]
