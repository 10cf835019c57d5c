#include "option_values.h"

#include <charconv>

namespace cohort::bench {
namespace {

constexpr double kHour = 3.6e6;

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

bool parse_choice(std::string_view option, const std::string& text, std::string_view first,
                  std::string_view second) {
  if (text == first) return true;
  if (text == second) return false;
  throw UsageError("{} {}: choose {} or {}", option, text, first, second);
}

}  // namespace cohort::bench
