#include "supervisor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

#include "remote/introduction.h"
#include "say.h"

namespace cohort::supervise {
namespace {

constexpr std::string_view kServer = "ps";
/// How often what other hosts say is looked at.
constexpr std::chrono::milliseconds kBetweenPolls{50};

std::string describe(const remote::Address& address, pid_t pid) {
  return fmt::format("{} (host {}, pid {})", remote::name_of(address.task), address.host, pid);
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, Team team)
    : options_(std::move(options)), team_(std::move(team)), job_(options_.tasks) {
  if (team_.others) others_ = std::make_unique<Hosts>(std::move(*team_.others));
  for (const remote::TaskListeners& one : team_.listeners) {
    own_.push_back({.place = {.task = one.address.task,
                              .addresses = team_.addresses,
                              .secret = team_.secret,
                              .network_listener = one.network.get(),
                              .local_listener = one.local.get(),
                              .memory = one.memory.get()}});
  }
}

Supervisor::~Supervisor() {
  signal_all(SIGKILL);
  for (const OwnTask& task : own_)
    if (task.pid != 0) ::waitpid(task.pid, nullptr, 0);
}

int Supervisor::run() {
  for (OwnTask& task : own_) start(task);
  while (!is_done()) {
    for (const int signal : signals_.wait(until_next_action()))
      if (signal != SIGCHLD) pass_on(signal);
    reap();
    if (others_) others_->poll(*this);
    act_in_time();
  }
  if (leader_is_lost_) return 1;
  return leads() ? job_.exit_status() : 0;
}

bool Supervisor::is_done() const {
  if (phase_ == Phase::kRunning) return false;
  if (std::ranges::any_of(own_, [](const OwnTask& task) { return task.pid != 0; })) return false;
  // Who leads stays until the others have gone, so that none of them takes the end for a loss.
  return !others_ || !leads() || others_->connected() == 0;
}

std::optional<std::chrono::milliseconds> Supervisor::until_next_action() const {
  std::optional<std::chrono::milliseconds> wait;
  if (others_) wait = kBetweenPolls;
  for (const auto& time : {terminate_at_, kill_at_, notice_at_}) {
    if (!time) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*time - Clock::now());
    wait = std::max(std::min(wait.value_or(left), left), std::chrono::milliseconds(0));
  }
  return wait;
}

void Supervisor::start(OwnTask& task) {
  task.pid = start_process(options_.command, task.place, task.place.task == job_.chief());
}

void Supervisor::reap() {
  while (true) {
    siginfo_t news{};
    // What the process has started is ended before its number is free again.
    if (::waitid(P_ALL, 0, &news, WEXITED | WNOHANG | WNOWAIT) != 0 || news.si_pid == 0) return;
    const auto task = std::ranges::find(own_, news.si_pid, &OwnTask::pid);
    if (task != own_.end()) ::kill(-news.si_pid, SIGKILL);
    ::waitpid(news.si_pid, nullptr, 0);
    if (task == own_.end()) continue;
    const bool exited = news.si_code == CLD_EXITED;
    on_own_end(*task, {.status = exited ? news.si_status : 0, .signal = exited ? 0 : news.si_status});
  }
}

void Supervisor::on_own_end(OwnTask& task, const Ending& ending) {
  const std::string what =
      fmt::format("{} {}", describe(address_of(task.place, task.place.task), task.pid), describe(ending));
  task.pid = 0;
  if (phase_ == Phase::kRunning && !interrupted_ && ending.signal != 0 &&
      task.place.restarts < options_.restarts) {
    ++task.place.restarts;
    say(fmt::format("{}; it is started again, {} of {} times", what, task.place.restarts, options_.restarts));
    start(task);
    return;
  }
  if (phase_ == Phase::kRunning && !ending.good()) {
    const bool is_lost = ending.signal != 0 && !interrupted_;
    say(fmt::format(
        "{}{}", what,
        is_lost ? fmt::format("; it is not started again, for --restarts is {}", options_.restarts) : ""));
  }
  settle(task.place.task, ending);
}

void Supervisor::settle(const ClusterTask& task, const Ending& ending) {
  if (!leads()) {
    others_->report_end(task, ending);
    return;
  }
  job_.end(task, ending);
  if (task == job_.chief()) notice_at_ = Clock::now() + options_.until_notice;
  if (phase_ != Phase::kRunning) return;
  if (job_.has_failed()) {
    say(fmt::format("{} has failed, so all other tasks are ended", remote::name_of(task)));
    enter(Phase::kFailed);
  } else if (job_.is_over()) {
    enter(Phase::kOver);
  }
}

void Supervisor::enter(Phase phase) {
  phase_ = phase;
  notice_at_.reset();
  if (others_ && leads()) others_->announce(phase);
  terminate_at_ = Clock::now();
  if (phase == Phase::kOver) *terminate_at_ += options_.until_servers;
}

void Supervisor::pass_on(int signal) {
  if (asks_to_end(signal)) interrupted_ = true;
  // Parameter servers are needed until the others have ended, who may save what they hold.
  for (const OwnTask& task : own_)
    if (task.pid != 0 && task.place.task.type != kServer) ::kill(-task.pid, signal);
}

void Supervisor::signal_all(int signal) {
  for (const OwnTask& task : own_)
    if (task.pid != 0) ::kill(-task.pid, signal);
}

void Supervisor::act_in_time() {
  const Clock::time_point now = Clock::now();
  if (terminate_at_ && *terminate_at_ <= now) {
    signal_all(SIGTERM);
    terminate_at_.reset();
    kill_at_ = now + options_.until_killed;
  }
  if (kill_at_ && *kill_at_ <= now) {
    signal_all(SIGKILL);
    kill_at_.reset();
  }
  if (notice_at_ && *notice_at_ <= now) {
    notice_at_.reset();
    name_stragglers();
  }
}

void Supervisor::name_stragglers() {
  std::vector<std::string> names;
  for (const ClusterTask& task : job_.stragglers()) names.push_back(remote::name_of(task));
  say(fmt::format("{} has ended; the job goes on until {} has, too", remote::name_of(job_.chief()),
                  fmt::join(names, ", ")));
}

void Supervisor::on_task_end(const ClusterTask& task, const Ending& ending) { settle(task, ending); }

void Supervisor::on_phase(Phase phase) { enter(phase); }

void Supervisor::on_host_lost(int host, const std::string& why) {
  if (phase_ != Phase::kRunning) return;  // that is how the others end
  if (!leads()) {
    say(fmt::format("{}: it has led the job, so all tasks here are ended", why));
    leader_is_lost_ = true;
    enter(Phase::kFailed);
    return;
  }
  say(fmt::format("{}: its tasks are lost", why));
  for (std::size_t i = 0; i < options_.tasks.size() && phase_ == Phase::kRunning; ++i)
    if (team_.hosts[i] == host && !job_.has_ended(options_.tasks[i]))
      settle(options_.tasks[i], {.signal = SIGKILL});
}

}  // namespace cohort::supervise
