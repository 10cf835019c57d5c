// Files that a user names, to be read.
#pragma once

#include <string>
#include <string_view>

namespace cohort {

/// Opens `path` for reading; the caller closes the descriptor. `what` is what messages call it: `CSV file`.
/// Never waits, as opening a pipe does until somebody writes to it.
/// @throws Unavailable when it cannot be opened, InvalidArgument when it is a folder, a pipe or a device.
[[nodiscard]] int open_regular_file(const std::string& path, std::string_view what);

/// The same for what is read once from its beginning to its end, and may be a pipe. The descriptor of a pipe
/// does not wait for data.
[[nodiscard]] int open_file_or_pipe(const std::string& path, std::string_view what);

}  // namespace cohort
