#include "excerpt.h"

#include <iterator>

#include <fmt/format.h>

namespace cohort::detail {

std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string result;
  for (const char character : text.substr(0, kLongest)) {
    const auto code = static_cast<unsigned char>(character);
    if (code < 0x20 || code == 0x7f)
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", code);
    else
      result += character;
  }
  if (text.size() > kLongest) result += "...";
  return result;
}

}  // namespace cohort::detail
