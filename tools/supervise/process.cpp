#include "process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include <cohort/base/environment.h>
#include <cohort/base/error.h>

#include "base/memory_file.h"
#include "cluster/fd.h"
#include "remote/introduction.h"
#include "remote/task_card.h"

namespace cohort::supervise {
namespace {

using watch::Fd;

Fd file_with(const std::string& text) {
  Fd file(make_memory_file("cohort-card"));
  if (!file) throw Unavailable("there is no memory for the card of a task: {}", std::strerror(errno));
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(file.get(), text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      throw Unavailable("there is no memory for the card of a task: {}", std::strerror(errno));
    at += static_cast<std::size_t>(written);
  }
  return file;
}

/// Whether Open MPI, PMIx or srun sets the variable for each process that it starts.
bool is_of_rank(std::string_view name) {
  constexpr std::array<std::string_view, 6> kBeginnings{"OMPI_",       "PMIX_",        "PMI_",
                                                        "SLURM_STEP_", "SLURM_PROCID", "SLURM_LOCALID"};
  return std::ranges::any_of(kBeginnings, [&](std::string_view begin) { return name.starts_with(begin); });
}

/// As execve takes them; `texts` stays as it is meanwhile.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// What the child of fork does, where it may call but what signal handlers may, too: everything else is
/// prepared.
struct Child {
  std::vector<char*> words;
  std::vector<char*> variables;
  std::array<int, 5> inherited;
  bool reads_input;
  pid_t supervisor;
  int failed;  ///< gets the error when the program cannot be executed

  [[noreturn]] void become_program() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != supervisor) ::_exit(1);  // it has ended before the line above
    ::setpgid(0, 0);
    if (!reads_input) {
      const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    }
    for (const int descriptor : inherited)
      if (descriptor >= 0) ::fcntl(descriptor, F_SETFD, 0);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execvpe(words.front(), words.data(), variables.data());
    const int error = errno;
    static_cast<void>(::write(failed, &error, sizeof error));
    ::_exit(127);
  }
};

}  // namespace

std::vector<std::string> variables_of_tasks(bool has_launcher) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : process_environment())
    if (name != "COHORT_TASK_FD" && !(has_launcher && is_of_rank(name)))
      variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

pid_t start_process(const Command& command, const remote::TaskPlace& place, bool reads_input) {
  const Fd card = file_with(remote::to_card(place));
  std::vector<std::string> words = command.words;
  std::vector<std::string> variables = command.variables;
  variables.push_back(fmt::format("COHORT_TASK_FD={}", card.get()));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Unavailable("the system has no pipe: {}", std::strerror(errno));
  const Fd error_out(ends[0]);
  Fd error_in(ends[1]);
  Child child{
      .words = pointers_to(words),
      .variables = pointers_to(variables),
      .inherited = {card.get(), place.network_listener, place.local_listener, place.memory, place.supervisor},
      .reads_input = reads_input,
      .supervisor = ::getpid(),
      .failed = error_in.get()};
  const pid_t pid = ::fork();
  if (pid < 0)
    throw Unavailable("no process can be started for {}: {}", remote::name_of(place.task),
                      std::strerror(errno));
  if (pid == 0) child.become_program();
  ::setpgid(pid, pid);  // whoever comes first
  error_in.reset();
  int error = 0;
  if (::read(error_out.get(), &error, sizeof error) != static_cast<ssize_t>(sizeof error)) return pid;
  ::waitpid(pid, nullptr, 0);
  throw InvalidArgument("{} cannot be started: {}", command.words.front(), std::strerror(error));
}

}  // namespace cohort::supervise
