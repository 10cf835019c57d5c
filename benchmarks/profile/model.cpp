#include "profile/model.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "errors.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kHeader = "name,elements";

/// No tensor of this many elements fits into a machine, and sums of them cannot overflow.
constexpr std::size_t kMostElements = std::size_t{1} << 40;

void drop_carriage_return(std::string& line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
}

}  // namespace

std::size_t Model::elements() const {
  return std::accumulate(gradients.begin(), gradients.end(), std::size_t{0});
}

Model read_model(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError("--model {}: cannot be read ({})", path, std::strerror(errno));
  return parse_model(file, path);
}

Model parse_model(std::istream& text, const std::string& path) {
  std::string line;
  std::getline(text, line);
  drop_carriage_return(line);
  if (line != kHeader) {
    throw UsageError("--model {}: the first line is '{}' instead of '{}'", path, line.substr(0, 40), kHeader);
  }
  Model model{.name = std::filesystem::path(path).stem().string(), .gradients = {}};
  for (int number = 2; std::getline(text, line); ++number) {
    drop_carriage_return(line);
    const std::size_t comma = line.rfind(',');
    const char* begin = line.data() + (comma == std::string::npos ? line.size() : comma + 1);
    const char* end = line.data() + line.size();
    std::size_t elements = 0;
    const auto [stopped, status] = std::from_chars(begin, end, elements);
    if (status != std::errc() || stopped != end || elements == 0 || elements > kMostElements) {
      throw UsageError("--model {}, line {}: '{}' is not a name, a comma and a number of elements", path,
                       number, line.substr(0, 40));
    }
    model.gradients.push_back(elements);
  }
  if (model.gradients.empty()) throw UsageError("--model {}: no tensors in it", path);
  std::reverse(model.gradients.begin(), model.gradients.end());
  return model;
}

}  // namespace cohort::bench
