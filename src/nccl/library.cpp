#include <cohort/nccl/library.h>

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "open_library.h"

namespace cohort::nccl {
namespace {

constexpr const char* kFileName = "libnccl.so.2";

std::string dl_error() {
  const char* const text = ::dlerror();
  return text == nullptr ? "unknown reason" : text;
}

/// Where the object that holds `function` was loaded from.
std::string path_of(const void* function, const std::string& otherwise) {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : otherwise;
}

/// The library, or why it cannot be used.
std::variant<OpenLibrary, std::string> try_open(const std::string& name, int flags) {
  // The loader would wait for somebody who writes to a pipe.
  std::error_code unknown;
  const std::filesystem::file_status file = std::filesystem::status(name, unknown);
  const bool is_path = name.find('/') != std::string::npos;
  if (is_path && std::filesystem::exists(file) && !std::filesystem::is_regular_file(file))
    return "is a folder, a pipe or a device";
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  if (handle == nullptr) return (flags & RTLD_NOLOAD) != 0 ? "is not loaded yet" : dl_error();
  OpenLibrary library;
  std::vector<std::string> missing;
  const auto find = [&](auto& pointer, const char* function) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(::dlsym(handle, function));
    if (pointer == nullptr) missing.emplace_back(function);
  };
#define COHORT_NCCL_FIND(function) find(library.functions.function, #function);
  COHORT_NCCL_FUNCTIONS(COHORT_NCCL_FIND)
#undef COHORT_NCCL_FIND
  if (library.functions.ncclGetVersion == nullptr) return "is not NCCL";
  library.path = path_of(reinterpret_cast<const void*>(library.functions.ncclGetVersion), name);
  const auto get_version = library.functions.ncclGetVersion;
  if (get_version(&library.version) != ncclSuccess) return "does not tell its version";
  if (library.version < NCCL_VERSION_CODE) {
    return fmt::format("is NCCL {}, older than the header {} that Cohort was built with",
                       version_text(library.version), version_text(NCCL_VERSION_CODE));
  }
  if (!missing.empty()) return fmt::format("lacks {}", fmt::join(missing, ", "));
  return library;
}

struct Candidate {
  std::string name;
  const char* what;
  int flags = 0;
};

std::vector<Candidate> capabilities() {
  if (const std::string& wanted = config().nccl_library(); !wanted.empty())
    return {{wanted, "COHORT_NCCL_LIBRARY"}};
  std::vector<Candidate> list{{kFileName, "loaded already", RTLD_NOLOAD}};
  if (const std::string beside = COHORT_NCCL_BESIDE_HEADER; !beside.empty())
    list.push_back({beside, "beside the header"});
  list.push_back({kFileName, "the system's"});
  return list;
}

OpenLibrary find_library() {
  std::vector<std::string> failures;
  for (const Candidate& candidate : capabilities()) {
    std::variant<OpenLibrary, std::string> opened = try_open(candidate.name, candidate.flags);
    if (auto* const library = std::get_if<OpenLibrary>(&opened)) {
      logging::info("NCCL {} from {} ({})", version_text(library->version), library->path, candidate.what);
      return *library;
    }
    failures.push_back(
        fmt::format("{} ({}): {}", candidate.name, candidate.what, std::get<std::string>(opened)));
  }
  throw Unavailable(
      "NCCL cannot be used. Tried: {}. Install {} {} or newer, or name it with COHORT_NCCL_LIBRARY",
      fmt::join(failures, "; "), kFileName, version_text(NCCL_VERSION_CODE));
}

}  // namespace

std::string version_text(int version_code) {
  return fmt::format("{}.{}.{}", version_code / 10000, version_code / 100 % 100, version_code % 100);
}

const OpenLibrary& open_library() {
  static const OpenLibrary library = find_library();
  return library;
}

LibraryInfo library() {
  const OpenLibrary& opened = open_library();
  return {opened.path, version_text(opened.version), version_text(NCCL_VERSION_CODE)};
}

}  // namespace cohort::nccl
