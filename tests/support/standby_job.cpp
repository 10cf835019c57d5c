#include "standby_job.h"

#include <poll.h>
#include <sys/wait.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "remote/supervised_task.h"
#include "remote/task_processes.h"

namespace cohort::test {
namespace {

using remote::SupervisorLine;
using remote::SupervisorWord;

constexpr std::chrono::seconds kLongestCopy{60};

int wait_for(pid_t& pid) {
  int status = 0;
  ::waitpid(std::exchange(pid, -1), &status, 0);
  return status;
}

}  // namespace

StandbyJob::StandbyJob(int workers, int servers, Reach reach)
    : secret_(remote::random_secret()), servers_(static_cast<std::size_t>(servers)) {
  const auto listen_as = [](const ClusterTask& task, bool standby) {
    return Process{.task = task,
                   .standby = standby,
                   .listeners = remote::listen_for(task, remote::Interfaces::kLoopback)};
  };
  tasks_.push_back(listen_as({"chief", 0}, false));
  for (int i = 0; i < std::max(workers, 1); ++i) tasks_.push_back(listen_as({"worker", i}, false));
  for (const Process& task : tasks_) addresses_.push_back(task.listeners.address);
  for (int i = 0; i < servers; ++i) {
    Server& server = servers_[static_cast<std::size_t>(i)];
    server.primary = listen_as({"ps", i}, false);
    server.standby = listen_as({"ps", i}, true);
    remote::Address address = server.primary.listeners.address;
    if (reach == Reach::kNetwork) address.local.clear();
    const std::vector<std::string>& more = server.standby.listeners.address.network;
    address.network.insert(address.network.end(), more.begin(), more.end());
    addresses_.push_back(address);
  }
  for (Server& server : servers_) {
    start(server.primary);
    start(server.standby);
  }
  for (int i = 1; i <= workers; ++i) start(tasks_[static_cast<std::size_t>(i)]);
  supervisor_ = std::thread([this] { listen(); });
}

StandbyJob::~StandbyJob() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  supervisor_.join();
  for (Server& server : servers_) {
    kill(server.primary);
    kill(server.standby);
  }
  for (Process& task : tasks_) kill(task);
}

remote::TaskPlace StandbyJob::place_of(const Process& process) const {
  return {.task = process.task,
          .addresses = addresses_,
          .secret = secret_,
          .network_listener = process.listeners.network.get(),
          .local_listener = process.listeners.local.get(),
          .memory = process.listeners.memory.get(),
          .standby = process.standby};
}

void StandbyJob::start(Process& process) {
  remote::TaskPlace place = place_of(process);
  watch::Fd end_of_process;
  if (process.task.type == "ps") {
    std::tie(process.line, end_of_process) = remote::make_supervisor_line();
    place.supervisor = end_of_process.get();
  }
  process.pid = remote::start_process(place);
}

void StandbyJob::kill(Process& process) {
  if (process.pid < 0) return;
  ::kill(process.pid, SIGKILL);
  wait_for(process.pid);
}

void StandbyJob::listen() {
  while (true) {
    std::vector<pollfd> polled;
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      for (Server& server : servers_) {
        if (stopped_) continue;
        hear(server);
        polled.push_back({server.primary.line.get(), POLLIN, 0});
      }
    }
    // Lines are made anew, and ended; so the wait is short.
    ::poll(polled.data(), polled.size(), 1);
  }
}

void StandbyJob::hear(Server& server) {
  const SupervisorLine line(server.primary.line.get());
  while (const auto word = line.receive()) {
    if (server.taken_over) continue;
    server.complete = *word == SupervisorWord::kCopied;
    if (*word == SupervisorWord::kAlone) line.send(SupervisorWord::kGranted);
    heard_.notify_all();
  }
}

void StandbyJob::wait_until_complete(int server) {
  std::unique_lock lock(mutex_);
  const bool complete = heard_.wait_for(lock, kLongestCopy,
                                        [&] { return servers_[static_cast<std::size_t>(server)].complete; });
  ASSERT_TRUE(complete) << "the standby of ps " << server << " has no complete copy";
}

bool StandbyJob::is_complete(int server) {
  const std::lock_guard lock(mutex_);
  return servers_[static_cast<std::size_t>(server)].complete;
}

void StandbyJob::close_listeners_of(int server) {
  servers_[static_cast<std::size_t>(server)].primary.listeners = {};
}

void StandbyJob::stop_supervisor() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

bool StandbyJob::lose_host_of(int server) {
  const std::lock_guard lock(mutex_);
  Server& lost = servers_[static_cast<std::size_t>(server)];
  kill(lost.primary);
  hear(lost);
  lost.primary.listeners = {};
  if (!lost.complete) return false;
  lost.taken_over = true;
  SupervisorLine(lost.standby.line.get()).send(SupervisorWord::kTakeOver);
  return true;
}

void StandbyJob::take_over(int server) {
  const std::lock_guard lock(mutex_);
  Server& lost = servers_[static_cast<std::size_t>(server)];
  lost.taken_over = true;
  SupervisorLine(lost.standby.line.get()).send(SupervisorWord::kTakeOver);
}

void StandbyJob::restart_server(int server) {
  const std::lock_guard lock(mutex_);
  Server& restarted = servers_[static_cast<std::size_t>(server)];
  kill(restarted.primary);
  restarted.complete = false;
  start(restarted.primary);
}

void StandbyJob::restart_standby(int server) {
  const std::lock_guard lock(mutex_);
  Server& followed = servers_[static_cast<std::size_t>(server)];
  kill(followed.standby);
  hear(followed);
  followed.complete = false;
  start(followed.standby);
}

void StandbyJob::stop_standby(int server) {
  ::kill(servers_[static_cast<std::size_t>(server)].standby.pid, SIGSTOP);
}
void StandbyJob::continue_standby(int server) {
  ::kill(servers_[static_cast<std::size_t>(server)].standby.pid, SIGCONT);
}

int StandbyJob::wait_for_server(int server) {
  return wait_for(servers_[static_cast<std::size_t>(server)].primary.pid);
}
int StandbyJob::wait_for_standby(int server) {
  return wait_for(servers_[static_cast<std::size_t>(server)].standby.pid);
}

}  // namespace cohort::test
