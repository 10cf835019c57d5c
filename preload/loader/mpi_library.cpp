#include "mpi_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace cohort::preload {
namespace {

bool starts_with(const char* text, const char* beginning) {
  return std::strncmp(text, beginning, std::strlen(beginning)) == 0;
}

struct Search {
  const char* name;
  void* found;
};

/// Looks for the function in one of the loaded libraries and what it needs.
int look_into(dl_phdr_info* object, std::size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  if (object->dlpi_name == nullptr || *object->dlpi_name == '\0') return 0;
  void* const handle = ::dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return 0;
  void* const found = ::dlsym(handle, search.name);
  ::dlclose(handle);
  if (found == nullptr) return 0;
  Dl_info own;
  Dl_info place;
  const bool is_own = ::dladdr(reinterpret_cast<void*>(&look_into), &own) != 0 &&
                      ::dladdr(found, &place) != 0 && own.dli_fbase == place.dli_fbase;
  if (is_own) return 0;
  search.found = found;
  return 1;
}

const char* abi_of(const char* file, const char* version) {
  if (std::strstr(file, "libmpi_abi") != nullptr) return "mpi5";
  constexpr const char* kOpenMpi = "Open MPI v";
  if (starts_with(version, kOpenMpi)) {
    // The binary interface of version 1.3 and 2 was another one, and what follows version 5 is to be seen.
    const int major = std::atoi(version + std::strlen(kOpenMpi));
    return major >= 3 && major <= 5 ? "openmpi" : nullptr;
  }
  for (const char* name : {"MPICH Version", "Intel(R) MPI Library", "MVAPICH"}) {
    if (starts_with(version, name)) return "mpich";
  }
  return nullptr;
}

}  // namespace

void* find_next(const char* name) {
  if (void* const next = ::dlsym(RTLD_NEXT, name)) return next;
  Search search{name, nullptr};
  ::dl_iterate_phdr(&look_into, &search);
  return search.found;
}

MpiLibrary describe_mpi_library(void* version_function) {
  MpiLibrary library;
  Dl_info place;
  if (version_function == nullptr || ::dladdr(version_function, &place) == 0) return library;
  library.file = place.dli_fname;

  char version[8192] = {};  // the largest MPI_MAX_LIBRARY_VERSION_STRING
  int length = 0;
  reinterpret_cast<int (*)(char*, int*)>(version_function)(version, &length);
  library.abi = abi_of(library.file, version);
  const int first_line = static_cast<int>(std::strcspn(version, "\n"));
  constexpr int kRoom = sizeof library.version - 1;
  std::snprintf(library.version, sizeof library.version, "%.*s", first_line < kRoom ? first_line : kRoom,
                version);
  for (char* c = library.version; *c != '\0'; ++c)
    if (*c == '\t') *c = ' ';
  return library;
}

MpiLibrary find_mpi_library() {
  const MpiLibrary library = describe_mpi_library(find_next(kVersionFunction));
  if (library.file != nullptr) ::dlopen(library.file, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
  return library;
}

}  // namespace cohort::preload
