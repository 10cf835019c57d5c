// Text of unknown origin and length, for a message.
#pragma once

#include <string>
#include <string_view>

namespace cohort::detail {

/// The first 40 characters, with ... in place of the rest; characters that cannot be printed become \xNN.
[[nodiscard]] std::string excerpt(std::string_view text);

}  // namespace cohort::detail
