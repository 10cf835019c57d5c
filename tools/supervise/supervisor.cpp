#include "supervisor.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

#include "remote/supervised_task.h"

namespace cohort::supervise {

void say(std::string_view text) {
  const std::string line = fmt::format("cohort-supervise: {}\n", text);
  // Nobody is left to hear of an error.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

Signals::Signals() {
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD})
    ::sigaddset(&taken, signal);
  ::pthread_sigmask(SIG_BLOCK, &taken, &before_);
  queue_.reset(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!queue_) throw Unavailable("the system does not hand over signals: {}", std::strerror(errno));
}

Signals::~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::vector<int> Signals::wait(std::optional<std::chrono::milliseconds> limit, std::vector<pollfd> others) {
  others.push_back({queue_.get(), POLLIN, 0});
  ::poll(others.data(), others.size(), limit ? static_cast<int>(limit->count()) : -1);
  std::vector<int> signals;
  signalfd_siginfo one{};
  while (::read(queue_.get(), &one, sizeof one) == static_cast<ssize_t>(sizeof one))
    signals.push_back(static_cast<int>(one.ssi_signo));
  return signals;
}

namespace {

/// How often what other hosts say is looked at.
constexpr std::chrono::milliseconds kBetweenPolls{50};

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, Team team)
    : options_(std::move(options)),
      team_(std::move(team)),
      job_(options_.tasks),
      standbys_(team_.hosts, team_.standby_hosts) {
  if (team_.others) others_ = std::make_unique<Hosts>(std::move(*team_.others));
  for (const remote::TaskListeners& one : team_.listeners) add(one, false);
  for (const remote::TaskListeners& one : team_.listeners_of_standbys) add(one, true);
}

Supervisor::~Supervisor() {
  signal_all(SIGKILL);
  for (const OwnTask& task : own_)
    if (task.runs()) ::waitpid(task.pid(), nullptr, 0);
}

void Supervisor::add(const remote::TaskListeners& listeners, bool standby) {
  const ClusterTask& task = listeners.address.task;
  own_.emplace_back(remote::TaskPlace{.task = task,
                                      .addresses = team_.addresses,
                                      .secret = team_.secret,
                                      .network_listener = listeners.network.get(),
                                      .local_listener = listeners.local.get(),
                                      .memory = listeners.memory.get(),
                                      .standby = standby},
                    listeners.address.host, team_.standby_hosts[index_of(task)] != kNoHost);
}

std::size_t Supervisor::index_of(const ClusterTask& task) const {
  const auto found = std::ranges::find(options_.tasks, task);
  COHORT_CHECK(found != options_.tasks.end());
  return static_cast<std::size_t>(found - options_.tasks.begin());
}

int Supervisor::run() {
  for (OwnTask& task : own_) task.start(options_.command, reads_input(task));
  while (!is_done()) {
    for (const int signal : wait())
      if (signal != SIGCHLD) pass_on(signal);
    reap();
    hear_servers();
    if (others_) others_->poll(*this);
    act_in_time();
  }
  if (leader_is_lost_) return 1;
  return leads() ? job_.exit_status() : 0;
}

OwnTask& Supervisor::own_task(const ClusterTask& task) {
  const auto found = std::ranges::find(own_, task, &OwnTask::task);
  COHORT_CHECK(found != own_.end());
  return *found;
}

std::vector<int> Supervisor::wait() {
  std::vector<pollfd> lines;
  for (const OwnTask& task : own_) task.add_to(lines);
  return signals_.wait(until_next_action(), std::move(lines));
}

bool Supervisor::is_done() const {
  if (phase_ == Phase::kRunning) return false;
  if (std::ranges::any_of(own_, &OwnTask::runs)) return false;
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
  const std::string what = fmt::format("{} {}", task.describe(), describe(ending));
  task.has_ended();
  const bool is_lost = ending.signal != 0 && !interrupted_;
  if (phase_ == Phase::kRunning && is_lost && task.restarts() < options_.restarts) {
    say(fmt::format("{}; it is started again, {} of {} times", what, task.restarts() + 1, options_.restarts));
    task.start_again(options_.command, reads_input(task));
    return;
  }
  if (phase_ == Phase::kRunning && !ending.good()) {
    say(fmt::format(
        "{}{}{}", what,
        is_lost ? fmt::format("; it is not started again, for --restarts is {}", options_.restarts) : "",
        task.is_standby() ? fmt::format("; {} goes on without it", remote::name_of(task.task())) : ""));
  }
  if (task.is_standby()) return;
  if (ending.signal != 0) stop_listening_for(task.task());
  settle(team_.host, task.task(), ending);
}

/// Who looks for a server that is not started again is to find its standby.
void Supervisor::stop_listening_for(const ClusterTask& task) {
  if (team_.standby_hosts[index_of(task)] == kNoHost) return;
  std::erase_if(team_.listeners, [&](const remote::TaskListeners& one) { return one.address.task == task; });
}

void Supervisor::settle(int host, const ClusterTask& task, const Ending& ending) {
  if (!leads()) {
    others_->report_end(task, ending);
    return;
  }
  const std::size_t index = index_of(task);
  if (standbys_.host_of(index) != host) return;  // where it was before its standby took over
  if (ending.signal != 0 && phase_ == Phase::kRunning && goes_on_elsewhere(index)) return;
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

/// Whether the standby of a task that is lost takes over.
bool Supervisor::goes_on_elsewhere(std::size_t task) {
  if (standbys_.state_of(task) != Standbys::State::kComplete) return false;
  standbys_.take_over(task);
  tell(standbys_.host_of(task),
       {.server = options_.tasks[task].id, .word = remote::SupervisorWord::kTakeOver, .number = 0});
  return true;
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
    if (task.task().type != kServerJob) task.signal(signal);
}

void Supervisor::signal_all(int signal) {
  for (const OwnTask& task : own_) task.signal(signal);
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

void Supervisor::on_task_end(int host, const ClusterTask& task, const Ending& ending) {
  const std::size_t index = index_of(task);
  if (phase_ == Phase::kRunning && ending.signal != 0 && standbys_.state_of(index) != Standbys::State::kNone)
    say(what_becomes_of(index));
  settle(host, task, ending);
}

void Supervisor::on_phase(Phase phase) { enter(phase); }

void Supervisor::on_host_lost(int host, const std::string& why) {
  if (phase_ != Phase::kRunning) return;  // that is how the others end
  if (!leads()) {
    say(fmt::format("{}: it has led the job, so all tasks here are ended", why));
    leader_is_lost_ = true;
    enter(Phase::kFailed);
    return;
  }
  standbys_.lose_host(host);
  say(fmt::format("{}: {}", why, losses_with(host)));
  for (std::size_t i = 0; i < options_.tasks.size() && phase_ == Phase::kRunning; ++i)
    if (standbys_.host_of(i) == host && !job_.has_ended(options_.tasks[i]))
      settle(host, options_.tasks[i], {.signal = SIGKILL});
}

std::string Supervisor::losses_with(int host) const {
  std::vector<std::string> lost;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < options_.tasks.size(); ++i) {
    if (job_.has_ended(options_.tasks[i])) continue;
    const std::string name = remote::name_of(options_.tasks[i]);
    if (standbys_.host_of(i) != host) {
      if (standbys_.standby_host_of(i) == host)
        parts.push_back(fmt::format("the standby of {} is lost with it", name));
    } else if (standbys_.state_of(i) == Standbys::State::kNone) {
      lost.push_back(name);
    } else {
      parts.push_back(what_becomes_of(i));
    }
  }
  if (!lost.empty())
    parts.insert(parts.begin(),
                 fmt::format("{} {} lost with it", fmt::join(lost, ", "), lost.size() == 1 ? "is" : "are"));
  return parts.empty() ? "no task is lost with it" : fmt::format("{}", fmt::join(parts, "; "));
}

/// Of a server that has a standby, and is lost.
std::string Supervisor::what_becomes_of(std::size_t server) const {
  const std::string name = remote::name_of(options_.tasks[server]);
  const std::string& other = others_->name_of(standbys_.standby_host_of(server));
  switch (standbys_.state_of(server)) {
    case Standbys::State::kComplete:
      return fmt::format("{} goes on at host {}, where its standby has all of its variables", name, other);
    case Standbys::State::kIncomplete:
      return fmt::format("{} is lost, for its standby at host {} has not all of its variables", name, other);
    default: return fmt::format("{} is lost, for host {} of its standby is lost, too", name, other);
  }
}

void Supervisor::hear_servers() {
  for (OwnTask& task : own_)
    for (const ServerWord& word : task.hear()) tell(0, word);
}

void Supervisor::tell(int host, const ServerWord& word) {
  if (host == team_.host)
    on_server_word(host, word);
  else
    others_->tell(host, word);
}

void Supervisor::on_server_word(int host, const ServerWord& word) {
  const ClusterTask task{std::string(kServerJob), word.server};
  switch (word.word) {
    case remote::SupervisorWord::kAlone:
      if (leads() && standbys_.may_go_alone(index_of(task), host))
        tell(host, {.server = word.server, .word = remote::SupervisorWord::kGranted, .number = word.number});
      return;
    case remote::SupervisorWord::kCopied:
      if (leads()) standbys_.copied(index_of(task), host);
      return;
    case remote::SupervisorWord::kGranted: return own_task(task).pass_on(word);
    case remote::SupervisorWord::kTakeOver: return take_over(own_task(task));
  }
  throw Internal("a server and its supervisor have no word {}", static_cast<int>(word.word));
}

void Supervisor::take_over(OwnTask& task) {
  if (phase_ != Phase::kRunning || !task.is_standby()) return;
  task.take_over();
  if (task.runs()) return;
  say(fmt::format("{} is started, for its standby has ended", remote::name_of(task.task())));
  task.start(options_.command, false);
}

}  // namespace cohort::supervise
