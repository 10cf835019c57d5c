#include "option_values.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "errors.h"

namespace cohort::bench {
namespace {

constexpr double kHour = 3.6e6;
constexpr std::size_t kStep = 4;
constexpr std::string_view kExpected =
    "write MIN:MAX or one size, in bytes, with K, M or G for powers of 1024, for example 4:64M";

/// The power of 1024 that `suffix` stands for, as a shift; -1 when it stands for none.
int shift_of(std::string_view suffix) {
  if (suffix.empty()) return 0;
  if (suffix == "K" || suffix == "k") return 10;
  if (suffix == "M" || suffix == "m") return 20;
  if (suffix == "G" || suffix == "g") return 30;
  return -1;
}

std::size_t parse_size(std::string_view text, std::string_view range) {
  std::size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, status] = std::from_chars(text.data(), end, number);
  const int shift = shift_of({stopped, static_cast<std::size_t>(end - stopped)});
  if (status == std::errc::invalid_argument || shift < 0) {
    throw UsageError("--sizes {}: '{}' is not a size; {}", range, text, kExpected);
  }
  if (status == std::errc::result_out_of_range ||
      number > (std::numeric_limits<std::size_t>::max() >> shift)) {
    throw UsageError("--sizes {}: '{}' is more than this machine can address; {}", range, text, kExpected);
  }
  if (number == 0) throw UsageError("--sizes {}: a size is at least 1 byte; {}", range, kExpected);
  return number << shift;
}

}  // namespace

int parse_count(std::string_view option, const std::string& text, int most) {
  int count = 0;
  const auto [stopped, status] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (status != std::errc() || stopped != text.data() + text.size() || count < 1 || count > most) {
    throw UsageError("{} {}: write a whole number from 1 to {}", option, text, most);
  }
  return count;
}

double parse_milliseconds(std::string_view option, const std::string& text) {
  double milliseconds = 0;
  const auto [stopped, status] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  // The comparison is false for what is not a number, too.
  const bool in_range = milliseconds >= 0 && milliseconds <= kHour;
  if (status != std::errc() || stopped != text.data() + text.size() || !in_range) {
    throw UsageError("{} {}: write a number of milliseconds from 0 to {}", option, text, kHour);
  }
  return milliseconds;
}

double parse_part(std::string_view option, const std::string& text) {
  double part = 0;
  const auto [stopped, status] = std::from_chars(text.data(), text.data() + text.size(), part);
  // The comparison is false for what is not a number, too.
  const bool in_range = part > 0 && part <= 1;
  if (status != std::errc() || stopped != text.data() + text.size() || !in_range)
    throw UsageError("{} {}: write a number above 0 and up to 1, for example 0.95", option, text);
  return part;
}

bool parse_choice(std::string_view option, const std::string& text, std::string_view first,
                  std::string_view second) {
  if (text == first) return true;
  if (text == second) return false;
  throw UsageError("{} {}: choose {} or {}", option, text, first, second);
}

SizeRange parse_size_range(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::size_t first = parse_size(text.substr(0, colon), text);
  if (colon == std::string_view::npos) return {first, first};
  const SizeRange range{first, parse_size(text.substr(colon + 1), text)};
  if (range.first > range.last) {
    throw UsageError("--sizes {}: the smallest size is above the largest; write {}:{}", text,
                     format_size(range.last), format_size(range.first));
  }
  return range;
}

std::vector<std::size_t> sizes_in(SizeRange range) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = range.first; size <= range.last; size *= kStep) {
    sizes.push_back(size);
    if (size > range.last / kStep) break;  // the next step would not fit, or overflow
  }
  return sizes;
}

std::string format_size(std::size_t bytes) {
  constexpr std::string_view kSuffixes = "KMG";
  std::size_t power = 0;
  while (power < kSuffixes.size() && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++power;
  }
  return power == 0 ? fmt::format("{}", bytes) : fmt::format("{}{}", bytes, kSuffixes[power - 1]);
}

}  // namespace cohort::bench
