// Files in which the kernel says something, as below /proc.
#pragma once

#include <string>

namespace cohort {

/// The whole text; empty where there is none or it may not be read.
[[nodiscard]] std::string read_system_file(const std::string& path);

}  // namespace cohort
