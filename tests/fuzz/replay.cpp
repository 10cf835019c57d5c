// A fuzz target without libFuzzer: every file of its corpus as it is, repeated to a large
// input, and 20,000 mutated ones, the same in each run.
//
//   TARGET_replay CORPUS_FOLDER
#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fuzz_one.h"
#include "mutator.h"

namespace {

constexpr std::size_t kLargeBytes = std::size_t{1} << 18;
constexpr std::size_t kMutants = 20'000;

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string repeated(const std::string& input) {
  std::string large;
  while (!input.empty() && large.size() < kLargeBytes) large += input;
  return large;
}

/// Whether the parser takes or refuses it as it should.
bool passes(const std::string& name, const std::string& input) {
  try {
    cohort::fuzz::fuzz_one(input);
    return true;
  } catch (const std::exception& error) {
    fmt::print(stderr, "replay: {}: {}\n", name, error.what());
    std::ofstream("finding", std::ios::binary) << input;
    fmt::print(stderr, "replay: the input is in the file '{}'\n",
               std::filesystem::absolute("finding").string());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::vector<std::string> samples;
  for (const auto& path : files_of(argv[1])) {
    samples.push_back(read(path));
    if (!passes(path.filename().string(), samples.back())) return 1;
    if (!passes(path.filename().string() + " repeated", repeated(samples.back()))) return 1;
  }
  if (samples.empty()) {
    fmt::print(stderr, "replay: no file in {}\n", argv[1]);
    return 2;
  }
  cohort::fuzz::Mutator mutator(std::move(samples));
  for (std::size_t i = 0; i < kMutants; ++i)
    if (!passes(fmt::format("mutant {}", i), mutator.next())) return 1;
  return 0;
}
