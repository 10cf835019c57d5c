#include "process_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

namespace cohort::testing {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kMostProcesses = 64;
constexpr std::size_t kMostLines = 300;  // of one process
constexpr auto kMostForOne = 20s;        // of gdb's time
constexpr auto kMostForAll = 60s;

void print_line(const std::string& line) { fmt::print(stderr, "{}\n", line); }

/// Empty where the process of that file has ended meanwhile: reading fails then, even after the file was
/// opened.
std::string contents(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();  // unlike an iterator it does not throw
  return text.str();
}

std::string first_line(const std::string& path) {
  const std::string text = contents(path);
  return text.substr(0, text.find('\n'));
}

/// The numbers that a folder of /proc has entries for.
std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> numbers;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry(folder, gone), end; !gone && entry != end;
       entry.increment(gone)) {
    const std::string name = entry->path().filename();
    if (std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; }))
      numbers.push_back(std::stoi(name));
  }
  std::ranges::sort(numbers);
  return numbers;
}

double seconds_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string command_of(pid_t pid, const std::string& name) {
  constexpr std::size_t kLongest = 300;
  std::string command = contents(fmt::format("/proc/{}/cmdline", pid));
  while (!command.empty() && command.back() == '\0') command.pop_back();
  if (command.empty()) return fmt::format("[{}]", name);
  std::ranges::replace_if(
      command, [](char c) { return c == '\0' || c == '\n'; }, ' ');
  if (command.size() > kLongest) command = command.substr(0, kLongest) + " ...";
  return command;
}

/// Without a command; pid 0 when it has ended and nobody remembers it.
Process process_of(pid_t pid) {
  const std::string stat = contents(fmt::format("/proc/{}/stat", pid));
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');  // the name may have any characters
  if (open == std::string::npos || close == std::string::npos) return {};
  std::istringstream fields(stat.substr(close + 1));
  Process process{.pid = pid, .command = stat.substr(open + 1, close - open - 1)};
  std::string skipped;
  double start = 0;  // in ticks since the machine's start; field 22
  fields >> process.state >> process.parent;
  for (int field = 5; field < 20; ++field) fields >> skipped;
  fields >> process.threads >> skipped >> start;
  process.age_seconds = seconds_since_boot() - start / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return process;
}

const char* in_words(char state) {
  switch (state) {
    case 'R': return "runs";
    case 'S': return "sleeps";
    case 'D': return "in a call that cannot be interrupted";
    case 'T': return "stopped by a signal";
    case 't': return "stopped by who traces it";
    case 'Z': return "has ended, and its parent does not know";
    default: return "in an unknown state";
  }
}

/// What a hanging test is likely to be in.
std::string name_of_call(long number) {
  static const std::map<long, const char*> kNames = {
      {SYS_futex, "futex"},
      {SYS_ppoll, "ppoll"},
      {SYS_pselect6, "pselect"},
      {SYS_epoll_pwait, "epoll_wait"},
      {SYS_read, "read"},
      {SYS_readv, "readv"},
      {SYS_write, "write"},
      {SYS_writev, "writev"},
      {SYS_recvfrom, "recvfrom"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_sendto, "sendto"},
      {SYS_sendmsg, "sendmsg"},
      {SYS_accept, "accept"},
      {SYS_accept4, "accept4"},
      {SYS_connect, "connect"},
      {SYS_wait4, "wait4"},
      {SYS_waitid, "waitid"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_flock, "flock"},
      {SYS_fcntl, "fcntl"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_fsync, "fsync"},
      {SYS_openat, "openat"},
      {SYS_rt_sigtimedwait, "sigtimedwait"},
      {SYS_rt_sigsuspend, "sigsuspend"},
#ifdef SYS_poll
      {SYS_poll, "poll"},
      {SYS_select, "select"},
      {SYS_epoll_wait, "epoll_wait"},
      {SYS_pause, "pause"},
      {SYS_open, "open"},
#endif
  };
  const auto found = kNames.find(number);
  return found == kNames.end() ? fmt::format("system call {}", number) : found->second;
}

/// The call of the system that a thread is in, from the line `NUMBER ARGUMENTS STACK PC` of the kernel.
std::string call_in(const std::string& line) {
  std::istringstream words(line);
  long number = -1;
  if (!(words >> number) || number < 0) return line.empty() ? "unknown" : line;  // "running"
  std::string arguments;
  std::string argument;
  for (int i = 0; i < 4 && words >> argument; ++i) arguments += (i == 0 ? "" : ", ") + argument;
  return fmt::format("{}({})", name_of_call(number), arguments);
}

/// What the kernel says of a process's threads.
std::vector<std::string> seen_by_kernel(const Process& process) {
  std::vector<std::string> lines;
  for (const pid_t thread : numbers_in(fmt::format("/proc/{}/task", process.pid))) {
    const std::string folder = fmt::format("/proc/{}/task/{}/", process.pid, thread);
    const std::string stat = contents(folder + "stat");
    const std::size_t close = stat.rfind(')');
    const char state = close == std::string::npos ? '?' : stat[close + 2];
    lines.push_back(fmt::format("thread {} ({}) {}: {}, where the kernel is in {}", thread,
                                first_line(folder + "comm"), in_words(state),
                                call_in(first_line(folder + "syscall")), first_line(folder + "wchan")));
    std::istringstream stack(contents(folder + "stack"));  // for root only
    for (std::string frame; std::getline(stack, frame);) lines.push_back("    " + frame);
  }
  return lines;
}

/// What a command writes, until it ends or time is up.
std::string output_of(const std::vector<std::string>& command, Clock::time_point end) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "";
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string output;
  std::array<char, 4096> buffer{};
  pollfd readable{.fd = ends[0], .events = POLLIN, .revents = 0};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (::poll(&readable, 1, static_cast<int>(std::max<long>(left, 0))) <= 0) break;
    const ssize_t got = ::read(ends[0], buffer.data(), buffer.size());
    if (got <= 0) break;
    output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return output;
}

bool is_installed(const std::string& program) {
  const char* path = ::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access(fmt::format("{}/{}", folder, program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// The stacks of a process's threads; nothing where gdb does not get in. Without its library for threads,
/// which does not work across namespaces and has no part in stacks.
std::vector<std::string> seen_by_gdb(const Process& process, Clock::time_point end) {
  std::istringstream output(output_of({"gdb", "--nx", "--batch", "-iex", "set debuginfod enabled off", "-iex",
                                       "set auto-load libthread-db off", "-iex", "set width 0", "-p",
                                       std::to_string(process.pid), "-ex", "thread apply all backtrace 60"},
                                      end));
  std::vector<std::string> lines;
  for (std::string line; std::getline(output, line);) {
    if (line.starts_with("Thread ") || (line.starts_with('#') && !lines.empty())) lines.push_back(line);
  }
  return lines;
}

void print_at_most(const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) print_line("  " + lines[i]);
  if (lines.size() > kMostLines)
    print_line(fmt::format("  ... and {} lines more", lines.size() - kMostLines));
}

void send_to_all(int signal) {
  for (const Process& process : descendants()) ::kill(process.pid, signal);
}

}  // namespace

std::vector<Process> descendants() {
  std::map<pid_t, std::vector<Process>> children;
  for (const pid_t pid : numbers_in("/proc")) {
    if (const Process process = process_of(pid); process.pid != 0)
      children[process.parent].push_back(process);
  }
  std::vector<Process> found;
  std::vector<pid_t> parents{::getpid()};
  while (!parents.empty()) {
    const std::vector<Process>& own = children[parents.back()];
    parents.pop_back();
    found.insert(found.end(), own.begin(), own.end());
    for (const Process& child : own) parents.push_back(child.pid);
  }
  for (Process& process : found) process.command = command_of(process.pid, process.command);
  return found;
}

void print(const std::vector<Process>& processes) {
  print_line(
      fmt::format("  {:>8} {:>8} {:>7} {:>8}  command, state", "process", "parent", "threads", "age in s"));
  for (const Process& process : processes) {
    print_line(fmt::format("  {:>8} {:>8} {:>7} {:>8.1f}  {}: {}", process.pid, process.parent,
                           process.threads, process.age_seconds, process.command, in_words(process.state)));
  }
}

void explain(const std::vector<Process>& processes) {
  const auto end = Clock::now() + kMostForAll;
  const bool has_gdb = is_installed("gdb");
  if (!has_gdb) print_line("gdb is not installed, so there is only what the kernel knows of the threads:");
  const std::size_t count = std::min(processes.size(), kMostProcesses);
  std::vector<std::vector<std::string>> by_kernel;
  for (std::size_t i = 0; i < count; ++i) by_kernel.push_back(seen_by_kernel(processes[i]));
  // All of them at once: who is looked at must not be missed by the others meanwhile.
  send_to_all(SIGSTOP);
  for (std::size_t i = 0; i < count; ++i) {
    if (processes[i].state == 'Z') continue;
    print_line(fmt::format("process {}, {}:", processes[i].pid, processes[i].command));
    const auto stacks = has_gdb && Clock::now() < end
                            ? seen_by_gdb(processes[i], std::min(end, Clock::now() + kMostForOne))
                            : std::vector<std::string>();
    print_at_most(stacks.empty() ? by_kernel[i] : stacks);
  }
  if (processes.size() > count)
    print_line(fmt::format("... and {} processes more", processes.size() - count));
}

bool have_ended_within(std::chrono::milliseconds patience) {
  sigset_t child_ends;
  ::sigemptyset(&child_ends);
  ::sigaddset(&child_ends, SIGCHLD);
  const auto end = Clock::now() + patience;
  while (true) {
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0) return true;  // there is no child any more, and so no descendant
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    const timespec limit{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    ::sigtimedwait(&child_ends, nullptr, &limit);
  }
}

std::vector<Process> end_descendants(std::chrono::seconds patience) {
  send_to_all(SIGTERM);
  send_to_all(SIGCONT);
  if (have_ended_within(patience)) return {};
  // Again and again, for who is not killed yet starts others.
  for (int i = 0; i < 100; ++i) {
    send_to_all(SIGKILL);
    if (have_ended_within(100ms)) return {};
  }
  return descendants();
}

}  // namespace cohort::testing
