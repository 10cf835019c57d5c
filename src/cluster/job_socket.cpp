#include "job_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "sockets.h"

namespace cohort {
namespace {

constexpr std::string_view kPrefix = "cohort-job";

/// So that a socket's name has room for it.
constexpr std::size_t kLongestName = 48;

std::string text_of(const JobSocket& socket) {
  return fmt::format("{}/{}/{}/{}/{}", kPrefix, ::geteuid(), socket.job, socket.chief, socket.process);
}

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = name.find('/');
    parts.push_back(name.substr(0, end));
    if (end == std::string_view::npos) return parts;
    name.remove_prefix(end + 1);
  }
}

std::optional<std::int64_t> to_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// From a line of /proc/net/unix, which ends with `@NAME` where the name is abstract.
std::optional<JobSocket> socket_in(std::string_view line) {
  const std::size_t begin = line.find('@');
  if (begin == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> parts = parts_of(line.substr(begin + 1));
  if (parts.size() != 5 || parts[0] != kPrefix || to_number(parts[1]) != std::int64_t{::geteuid()})
    return std::nullopt;
  const auto chief = to_number(parts[3]);
  const auto process = to_number(parts[4]);
  if (!chief || !process) return std::nullopt;
  return JobSocket{std::string(parts[2]), *chief, *process};
}

}  // namespace

std::string job_name(std::int64_t chief, const Environment& variables) {
  for (const char* variable : {"SLURM_JOB_ID", "PMIX_NAMESPACE", "PMI_JOBID"}) {
    const auto found = variables.find(variable);
    if (found == variables.end() || found->second.empty()) continue;
    std::string name = found->second.substr(0, kLongestName);
    std::ranges::replace_if(
        name, [](unsigned char c) { return !std::isalnum(c) && c != '.' && c != '-' && c != '_'; }, '-');
    return name;
  }
  return fmt::format("{}", chief);
}

watch::Fd listen_as(const JobSocket& socket) {
  watch::Fd listener = watch::listen_local(text_of(socket));
  if (!listener) throw Unavailable("{}", std::strerror(errno));
  return listener;
}

std::vector<JobSocket> jobs_of_this_user() {
  // A connection has a line with the listener's name, too.
  std::set<std::tuple<std::string, std::int64_t, std::int64_t>> found;
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    if (const auto socket = socket_in(line)) found.emplace(socket->job, socket->chief, socket->process);
  }
  std::vector<JobSocket> sockets;
  sockets.reserve(found.size());
  for (const auto& [job, chief, process] : found) sockets.push_back({job, chief, process});
  return sockets;
}

std::string read_from(const JobSocket& socket, std::chrono::milliseconds limit) {
  const std::string name = fmt::format("job {} (process {})", socket.job, socket.process);
  const auto end = std::chrono::steady_clock::now() + limit;
  const std::optional<watch::SocketAddress> address = watch::local_address(text_of(socket));
  if (!address) throw Unavailable("{} cannot be asked: {}", name, std::strerror(ENAMETOOLONG));
  const watch::Fd descriptor = watch::connect_to(*address);
  if (!descriptor) {
    throw Unavailable("{} cannot be asked: {}", name,
                      errno == EPERM ? "who listens is of another user" : std::strerror(errno));
  }
  std::string text;
  std::array<char, 1 << 16> part{};
  while (true) {
    const ssize_t bytes = ::recv(descriptor.get(), part.data(), part.size(), 0);
    if (bytes == 0) break;
    if (bytes > 0) {
      text.append(part.data(), static_cast<std::size_t>(bytes));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) throw Unavailable("{} cannot be asked: {}", name, std::strerror(errno));
    pollfd polled{descriptor.get(), POLLIN, 0};
    if (!watch::poll_until({&polled, 1}, end))
      throw Unavailable("{} does not answer within {:.3g} s: is the process stopped?", name,
                        std::chrono::duration<double>(limit).count());
  }
  if (text.empty()) throw Unavailable("{} has ended before it answered", name);
  return text;
}

}  // namespace cohort
