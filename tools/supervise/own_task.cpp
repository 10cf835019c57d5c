#include "own_task.h"

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
#include <utility>

#include <fmt/format.h>

#include <cohort/base/environment.h>
#include <cohort/base/error.h>

#include "cluster/sockets.h"
#include "remote/supervised_task.h"

namespace cohort::supervise {
namespace {

using watch::Fd;

/// Whether Open MPI, PMIx or srun sets the variable for each process that it starts.
bool is_of_rank(std::string_view name) {
  constexpr std::array<std::string_view, 6> kBeginnings{"OMPI_",       "PMIX_",        "PMI_",
                                                        "SLURM_STEP_", "SLURM_PROCID", "SLURM_LOCALID"};
  return std::ranges::any_of(kBeginnings, [&](std::string_view begin) { return name.starts_with(begin); });
}

/// As execve takes them; `texts` stays as it is meanwhile.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
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
  const Fd card = remote::card_file(place);
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

using remote::SupervisorLine;
using remote::SupervisorWord;

OwnTask::OwnTask(remote::TaskPlace place, std::string host, bool has_line)
    : place_(std::move(place)), host_(std::move(host)), has_line_(has_line) {}

std::string OwnTask::describe() const {
  return fmt::format("{}{} (host {}, pid {})", is_standby() ? "the standby of " : "", remote::name_of(task()),
                     host_, pid_);
}

void OwnTask::start(const Command& command, bool reads_input) {
  ++said_;
  watch::Fd end_of_process;
  if (has_line_) std::tie(line_, end_of_process) = remote::make_supervisor_line();
  place_.supervisor = end_of_process.get();
  pid_ = start_process(command, place_, reads_input);
}

void OwnTask::start_again(const Command& command, bool reads_input) {
  ++place_.restarts;
  start(command, reads_input);
}

void OwnTask::signal(int signal) const {
  if (runs()) ::kill(-pid_, signal);
}

void OwnTask::add_to(std::vector<pollfd>& polled) const {
  if (line_) polled.push_back({line_.get(), POLLIN, 0});
}

std::vector<ServerWord> OwnTask::hear() {
  std::vector<ServerWord> words;
  if (!line_) return words;
  while (const auto word = SupervisorLine(line_.get()).receive())
    words.push_back({.server = task().id, .word = *word, .number = ++said_});
  // A line whose other end is closed would end each wait at once.
  pollfd state{line_.get(), 0, 0};
  if (::poll(&state, 1, 0) == 1 && (state.revents & POLLHUP) != 0) line_.reset();
  return words;
}

void OwnTask::pass_on(const ServerWord& word) {
  if (line_ && word.number == said_) SupervisorLine(line_.get()).send(word.word);
}

void OwnTask::take_over() {
  place_.standby = false;
  if (line_) SupervisorLine(line_.get()).send(SupervisorWord::kTakeOver);
  has_line_ = false;  // of another process, which starts as a server without a standby
}

}  // namespace cohort::supervise
