#include "base/system_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/uninterrupted.h"

namespace cohort {

std::string read_system_file(const std::string& path) {
  const int descriptor = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (descriptor < 0) return {};
  std::string text;
  std::array<char, 4096> part{};
  ssize_t bytes = 0;
  while ((bytes = uninterrupted([&] { return ::read(descriptor, part.data(), part.size()); })) > 0)
    text.append(part.data(), static_cast<std::size_t>(bytes));
  ::close(descriptor);
  return text;
}

}  // namespace cohort
