#include "slurm_end_time.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/deadline.h>
#include <cohort/base/log.h>

#include "base/uninterrupted.h"

namespace cohort {
namespace {

/// A program whose output is read, and which is ended when its time is over.
class Inquiry {
 public:
  /// @throws nothing: `failure` says why it does not run.
  Inquiry(std::vector<std::string> command, std::vector<std::string> environment) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      failure_ = std::strerror(errno);
      return;
    }
    output_ = ends[0];
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const std::vector<char*> arguments = pointers_to(command);
    const std::vector<char*> variables = pointers_to(environment);
    const int status =
        ::posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), variables.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (status == 0) return;
    process_ = -1;
    failure_ = std::strerror(status);
  }
  ~Inquiry() {
    if (output_ >= 0) ::close(output_);
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    uninterrupted([&] { return ::waitpid(process_, nullptr, 0); });
  }
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  /// Empty while nothing has gone wrong.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

  /// All that it writes; what there is until the deadline.
  [[nodiscard]] std::string read_all(const Deadline& deadline) {
    std::string text;
    std::array<char, 256> part{};
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline.at() - Deadline::Clock::now());
      pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
      if (left.count() <= 0 ||
          uninterrupted([&] { return ::poll(&ready, 1, static_cast<int>(left.count())); }) == 0) {
        failure_ = "no answer in time";
        return text;
      }
      const ssize_t count = uninterrupted([&] { return ::read(output_, part.data(), part.size()); });
      if (count <= 0) return text;
      text.append(part.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  static std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  int output_ = -1;
  pid_t process_ = -1;
  std::string failure_;
};

}  // namespace

std::optional<std::int64_t> ask_slurm_for_end_time(const Environment& variables,
                                                   std::chrono::milliseconds limit) {
  const auto job = variables.find("SLURM_JOB_ID");
  if (job == variables.end()) return std::nullopt;
  // Seconds, whatever zone the clock is in.
  std::vector<std::string> environment{"SLURM_TIME_FORMAT=%s"};
  for (const auto& [name, value] : variables) {
    if (name != "SLURM_TIME_FORMAT") environment.push_back(fmt::format("{}={}", name, value));
  }
  Inquiry squeue({"squeue", "--noheader", "--jobs=" + job->second, "--format=%e"}, std::move(environment));
  std::string text;
  if (squeue.failure().empty()) text = squeue.read_all(Deadline::after(limit));
  std::int64_t seconds = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (status == std::errc() && *end == '\n' && seconds >= 0) return seconds;
  if (!squeue.failure().empty() || text.empty()) {
    logging::warning(
        "when the job's time is over is not known: SLURM_JOB_END_TIME is not set, and squeue says "
        "nothing{}{}; "
        "give TerminationConfig::end_time",
        squeue.failure().empty() ? "" : ": ", squeue.failure());
  }
  return std::nullopt;
}

}  // namespace cohort
