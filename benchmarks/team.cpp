#include "team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

#include "device/machine.h"

namespace cohort::bench {

class ThreadTeam::Shared {
 public:
  explicit Shared(int members) : barrier(members), contributions(static_cast<std::size_t>(members)) {}

  std::barrier<> barrier;

  /// What a member lets the others see between two barriers.
  struct alignas(64) Contribution {
    int integer = 0;
    std::uint64_t count = 0;
    std::span<const double> values;
  };
  std::vector<Contribution> contributions;
};

ThreadTeam::ThreadTeam(std::shared_ptr<Shared> shared, int member)
    : shared_(std::move(shared)), member_(member) {}

void ThreadTeam::barrier() const { shared_->barrier.arrive_and_wait(); }

int ThreadTeam::from_first(int value) const {
  shared_->contributions[static_cast<std::size_t>(member_)].integer = value;
  barrier();
  const int first = shared_->contributions.front().integer;
  barrier();
  return first;
}

void ThreadTeam::take_maximum(std::span<double> values) const {
  const std::vector<double> own(values.begin(), values.end());
  shared_->contributions[static_cast<std::size_t>(member_)].values = own;
  barrier();
  for (const Shared::Contribution& contribution : shared_->contributions) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::max(values[i], contribution.values[i]);
  }
  barrier();
}

std::uint64_t ThreadTeam::sum(std::uint64_t value) const {
  shared_->contributions[static_cast<std::size_t>(member_)].count = value;
  barrier();
  std::uint64_t total = 0;
  for (const Shared::Contribution& contribution : shared_->contributions) total += contribution.count;
  barrier();
  return total;
}

namespace {

/// Advice: where it is refused, the thread runs wherever the system puts it.
void bind_this_thread(int os_core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(os_core), &set);
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof(set), &set));
}

}  // namespace

void run_thread_team(int members, const std::function<void(int member, const Team& team)>& body) {
  const std::vector<Core> cores = allowed_cores();
  const auto shared = std::make_shared<ThreadTeam::Shared>(members);
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(members));
  for (int member = 0; member < members; ++member) {
    threads.emplace_back([&, member]() noexcept {
      bind_this_thread(cores[static_cast<std::size_t>(member) % cores.size()].os_index);
      body(member, ThreadTeam(shared, member));
    });
  }
}

}  // namespace cohort::bench
