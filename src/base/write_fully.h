// Writes all of a text, however many calls of the system it takes.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include <cohort/base/error.h>

#include "base/uninterrupted.h"

namespace cohort {

/// @throws Unavailable with the system's reason.
inline void write_fully(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = uninterrupted([&] { return ::write(descriptor, text.data(), text.size()); });
    if (written < 0) throw Unavailable("{}", std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace cohort
