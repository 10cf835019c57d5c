#include "worker_processes.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <iostream>

#include <gtest/gtest.h>

#include <cohort/base/error.h>

namespace cohort::rendezvous {

struct SharedStore::Memory {
  struct Entry {
    bool is_set = false;
    std::array<char, 256> key{};
    std::array<char, 4096> value{};
    std::size_t bytes = 0;
  };
  pthread_mutex_t mutex{};
  pthread_cond_t changed{};
  std::array<Entry, 64> entries{};

  [[nodiscard]] Entry* find(const std::string& key) {
    const auto found = std::ranges::find_if(
        entries, [&](const Entry& entry) { return entry.is_set && key == entry.key.data(); });
    return found == entries.end() ? nullptr : &*found;
  }
};

class SharedStore::Lock {
 public:
  explicit Lock(Memory* memory) : memory_(memory) { pthread_mutex_lock(&memory_->mutex); }
  ~Lock() { pthread_mutex_unlock(&memory_->mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Memory* memory_;
};

SharedStore::SharedStore() {
  void* const pages =
      ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw Unavailable("no memory for the store of the test");
  memory_ = new (pages) Memory;
  pthread_mutexattr_t of_mutex;
  pthread_mutexattr_init(&of_mutex);
  pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&memory_->mutex, &of_mutex);
  pthread_condattr_t of_condition;
  pthread_condattr_init(&of_condition);
  pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setclock(&of_condition, CLOCK_MONOTONIC);
  pthread_cond_init(&memory_->changed, &of_condition);
}

SharedStore::~SharedStore() { ::munmap(memory_, sizeof(Memory)); }

void SharedStore::set(const std::string& key, std::string_view value) {
  calls_.emplace_back("set");
  const Lock lock(memory_);
  Memory::Entry* entry = memory_->find(key);
  if (entry == nullptr) entry = std::ranges::find(memory_->entries, false, &Memory::Entry::is_set);
  COHORT_CHECK(entry != memory_->entries.end() && key.size() < entry->key.size() &&
               value.size() <= entry->value.size());
  entry->key = {};
  key.copy(entry->key.data(), key.size());
  value.copy(entry->value.data(), value.size());
  entry->bytes = value.size();
  entry->is_set = true;
  pthread_cond_broadcast(&memory_->changed);
}

std::optional<std::string> SharedStore::get(const std::string& key) {
  calls_.emplace_back("get");
  const Lock lock(memory_);
  const Memory::Entry* entry = memory_->find(key);
  if (entry == nullptr) return std::nullopt;
  return std::string(entry->value.data(), entry->bytes);
}

bool SharedStore::wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) {
  calls_.emplace_back("wait");
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  const std::chrono::nanoseconds total = std::chrono::nanoseconds(until.tv_nsec) + timeout;
  until.tv_sec += std::chrono::duration_cast<std::chrono::seconds>(total).count();
  until.tv_nsec = total.count() % 1'000'000'000;
  const Lock lock(memory_);
  const auto is_there = [&](const std::string& key) { return memory_->find(key) != nullptr; };
  while (!std::ranges::all_of(keys, is_there)) {
    if (pthread_cond_timedwait(&memory_->changed, &memory_->mutex, &until) != 0)
      return std::ranges::all_of(keys, is_there);
  }
  return true;
}

void SharedStore::erase(const std::string& key) {
  calls_.emplace_back("erase");
  const Lock lock(memory_);
  if (Memory::Entry* entry = memory_->find(key)) entry->is_set = false;
}

std::size_t SharedStore::keys() const {
  const Lock lock(memory_);
  return static_cast<std::size_t>(std::ranges::count(memory_->entries, true, &Memory::Entry::is_set));
}

SessionOptions Worker::options(const std::string& prefix) const {
  return {.store = store, .prefix = prefix, .rank = rank, .size = size, .timeout = std::chrono::seconds(60)};
}

namespace {

[[noreturn]] void be_worker(Worker worker, const std::function<void(Worker&)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    body(worker);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "worker " << worker.rank << ": " << error.what();
  }
  std::cout.flush();
  std::fflush(stdout);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

void run_workers(int size, const std::function<void(Worker& worker)>& body) {
  const auto store = std::make_shared<SharedStore>();
  std::cout.flush();
  std::fflush(stdout);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0) << std::strerror(errno);
    if (pid == 0) be_worker({rank, size, store}, body);
    pids.push_back(pid);
  }
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    ASSERT_EQ(::waitpid(pids[static_cast<std::size_t>(rank)], &status, 0),
              pids[static_cast<std::size_t>(rank)]);
    const bool ended_well = WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(ended_well) << "worker " << rank << " ended with status " << status;
  }
}

}  // namespace cohort::rendezvous
