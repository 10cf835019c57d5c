// Text files, line by line.
#pragma once

#include <string>
#include <vector>

#include <cohort/input/dataset.h>

namespace cohort {

/// One element per line, without the newline, or the carriage return and newline, at its end. The encoding is
/// not checked. Map lines to tensors before they are batched.
/// @throws InvalidArgument without a file. When iterated: Unavailable for a file that cannot be opened.
[[nodiscard]] Dataset<std::string> text_line_dataset(std::vector<std::string> files);

}  // namespace cohort
