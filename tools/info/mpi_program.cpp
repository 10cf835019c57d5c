// What libcohort-mpi.so would do for an MPI program that knows nothing of Cohort, without running the
// program.
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

#include "facts.h"
#include "preload/entry_points.h"
#include "preload/loader/mpi_library.h"

namespace cohort::info {
namespace {

namespace fs = std::filesystem;

constexpr std::array kCollectives = {
#define COHORT_NAME(NAME, ARGUMENTS) #NAME,
    COHORT_C_COLLECTIVES(COHORT_NAME)
#undef COHORT_NAME
};

/// In a shell's single quotes.
std::string quoted(const std::string& word) {
  return "'" + std::regex_replace(word, std::regex("'"), R"('\'')") + "'";
}

/// What the dynamic loader would load for `file`, by ldd: the paths of libraries, and the names of those that
/// it does not find. None for what is not for it, such as a script.
std::vector<std::string> libraries_of(const std::string& file) {
  const std::unique_ptr<FILE, int (*)(FILE*)> ldd(
      ::popen(("ldd " + quoted(file) + " 2>/dev/null").c_str(), "r"), &::pclose);
  if (ldd == nullptr) throw Unavailable("--mpi: ldd, which lists a program's libraries, cannot be started");
  std::string output;
  std::array<char, 4096> part{};
  while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), ldd.get()))
    output.append(part.data(), bytes);
  std::vector<std::string> libraries;
  static const std::regex found(R"(\s*(?:\S+ => )?(/.*) \(0x[0-9a-f]+\))");
  static const std::regex missing(R"(\s*(\S+) => not found)");
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, found) || std::regex_match(line, match, missing))
      libraries.push_back(match[1]);
  }
  return libraries;
}

bool is_named_as_mpi(const std::string& library) {
  static const std::regex name(R"(libmpi(|_abi|ch|cxx)\.so(\.[0-9.]+)?)");
  return std::regex_match(fs::path(library).filename().string(), name);
}

/// The library in place of which libcohort-mpi.so would be called; empty where there is none, and a bare name
/// where the dynamic loader does not find it.
std::string mpi_library_of(const std::string& file) {
  if (!fs::exists(file))
    throw InvalidArgument("--mpi {}: there is no such file; give a program's or an MPI library's path", file);
  if (!fs::is_regular_file(file))  // to open a pipe would take until someone writes to it
    throw InvalidArgument("--mpi {}: this is no regular file; give a program's or an MPI library's path",
                          file);
  if (is_named_as_mpi(file)) return fs::absolute(file).string();
  for (const std::string& library : libraries_of(fs::absolute(file).string()))
    if (is_named_as_mpi(library)) return library;
  return {};
}

/// The folder of libcohort-mpi.so: the build's, or the one that it is installed in.
fs::path preload_folder() {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& folder : {bin.parent_path() / "lib", bin.parent_path() / COHORT_INFO_PRELOAD_FOLDER})
    if (fs::exists(folder / "libcohort-mpi.so")) return folder;
  return {};
}

}  // namespace

MpiProgramFacts gather_mpi_program(const std::string& file) {
  MpiProgramFacts facts;
  facts.file = file;
  facts.calls = config().mpi_calls();
  const fs::path folder = preload_folder();
  if (!folder.empty()) facts.preload = (folder / "libcohort-mpi.so").string();
  facts.library = mpi_library_of(file);
  if (facts.library.empty()) {
    facts.why_nothing =
        "it names no MPI library. One that it loads as it runs, as Python does, is found at its first MPI "
        "call; "
        "give the file of that library to see what would happen";
    return facts;
  }
  if (facts.library.find('/') == std::string::npos) {
    facts.why_nothing = fmt::format(
        "the dynamic loader does not find its MPI library, {}; load the MPI's module, or set "
        "LD_LIBRARY_PATH, and "
        "ask again",
        facts.library);
    facts.library.clear();
    return facts;
  }
  // In a name space of its own: this program has an MPI, too.
  void* const handle = ::dlmopen(LM_ID_NEWLM, facts.library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    facts.why_nothing = fmt::format("its MPI library cannot be loaded: {}", ::dlerror());
    return facts;
  }
  const preload::MpiLibrary library =
      preload::describe_mpi_library(::dlsym(handle, preload::kVersionFunction));
  facts.version = library.version;
  if (library.abi == nullptr) {
    facts.why_nothing = "the binary interface of this MPI is not known";
  } else if (facts.preload.empty()) {
    facts.why_nothing =
        "libcohort-mpi.so is neither in the build's lib nor installed; build the target preload";
  } else if (facts.calls == "none") {
    facts.why_nothing = "COHORT_MPI_CALLS is none";
  } else {
    facts.shim = (folder / fmt::format("libcohort-mpi-{}.so", library.abi)).string();
    if (!fs::exists(facts.shim)) facts.why_nothing = fmt::format("there is no {}", facts.shim);
  }
  return facts;
}

std::string to_text(const MpiProgramFacts& facts) {
  const auto line = [](const char* name, const std::string& value) {
    return value.empty() ? std::string() : fmt::format("{:<18}{}\n", name, value);
  };
  std::string text = line("program", facts.file) + line("its MPI library", facts.library) +
                     line("version", facts.version) + line("preloaded", facts.preload) +
                     line("with", facts.shim) + line("COHORT_MPI_CALLS", facts.calls);
  if (!facts.why_nothing.empty())
    return text + fmt::format("\nNothing would change: {}.\n", facts.why_nothing);
  return text + fmt::format(
                    "\nOn communicators whose ranks are on one node, Cohort would carry out{}\n{}.\n"
                    "Other calls stay the MPI's. To run it so: cohort-run --accelerate {}\n",
                    facts.calls == "exact" ? ", where the bits of sums cannot differ," : "",
                    fmt::join(kCollectives, ", "),
                    is_named_as_mpi(facts.file) ? "PROGRAM" : quoted(facts.file));
}

std::string to_json(const MpiProgramFacts& facts) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  nlohmann::ordered_json json = {{"program", facts.file},
                                 {"library", or_null(facts.library)},
                                 {"version", or_null(facts.version)},
                                 {"preload", or_null(facts.preload)},
                                 {"shim", or_null(facts.shim)},
                                 {"calls", facts.calls},
                                 {"why_nothing", or_null(facts.why_nothing)}};
  json["collectives"] = nlohmann::ordered_json::array();
  if (facts.why_nothing.empty())
    for (const char* name : kCollectives) json["collectives"].push_back(name);
  // A file's name may be any bytes.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace cohort::info
