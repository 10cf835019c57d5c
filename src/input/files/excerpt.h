// Text of unknown origin and length, for a message.
#pragma once

#include <string>
#include <string_view>

namespace cohort::detail {

/// The first 40 characters, those that cannot be printed as \xNN, and ... in place of the others.
[[nodiscard]] std::string excerpt(std::string_view text);

}  // namespace cohort::detail
