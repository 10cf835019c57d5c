#include "task_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/coordinator/serve.h>

#include "remote/introduction.h"
#include "remote/task_card.h"

namespace cohort::test {
namespace {

constexpr const char* kCard = "TASK_CARD";

/// The card as a file that a started program inherits.
int card_file(const remote::TaskPlace& place) {
  const std::string card = remote::to_card(place);
  const int file = ::memfd_create("card", 0);
  if (file < 0 || ::write(file, card.data(), card.size()) != static_cast<ssize_t>(card.size()))
    throw Unavailable("no card for {}", remote::name_of(place.task));
  return file;
}

std::string read_card(int file) {
  std::array<char, 1 << 16> text{};
  const ssize_t bytes = ::pread(file, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(bytes)};
}

void let_inherit(int descriptor) {
  if (descriptor >= 0) ::fcntl(descriptor, F_SETFD, 0);
}

int run_task(const remote::TaskPlace& place) {
  try {
    return serve(ParameterServerStrategy(place));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", remote::name_of(place.task), error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace

TaskProcesses::TaskProcesses(int workers, int servers)
    : cluster_({{"chief", 1}, {"worker", std::max(workers, 1)}, {"ps", servers}}) {
  for (int i = 0; i < servers; ++i) start({"ps", i});
  for (int i = 0; i < workers; ++i) start({"worker", i});
}

TaskProcesses::~TaskProcesses() {
  for (const auto& [name, pid] : pids_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

void TaskProcesses::start(const ClusterTask& task) {
  const remote::TaskPlace& place = cluster_.place(task);
  const int card = card_file(place);
  const std::string setting = std::to_string(card);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int descriptor : {card, place.network_listener, place.local_listener, place.memory})
      let_inherit(descriptor);
    ::setenv(kCard, setting.c_str(), 1);
    ::execl("/proc/self/exe", "task", static_cast<char*>(nullptr));
    ::_exit(EXIT_FAILURE);
  }
  ::close(card);
  pids_[remote::name_of(task)] = pid;
}

void TaskProcesses::signal(const ClusterTask& task, int signal) {
  ::kill(pids_.at(remote::name_of(task)), signal);
}

int TaskProcesses::wait(const ClusterTask& task) {
  const auto place = pids_.find(remote::name_of(task));
  int status = 0;
  ::waitpid(place->second, &status, 0);
  pids_.erase(place);
  return status;
}

void TaskProcesses::kill(const ClusterTask& task) {
  signal(task, SIGKILL);
  wait(task);
}

}  // namespace cohort::test

int main(int argc, char** argv) {
  if (const char* card = ::getenv(cohort::test::kCard); card != nullptr) {
    const std::string text = cohort::test::read_card(std::atoi(card));
    ::unsetenv(cohort::test::kCard);
    return cohort::test::run_task(cohort::remote::place_from_card(text));
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
