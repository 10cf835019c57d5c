// Workers that are processes of this host, forked by the test, and a store that they share with it: memory
// that all of them see. What a worker's function checks through GoogleTest counts for the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/rendezvous/session.h>
#include <cohort/rendezvous/store.h>

namespace cohort::rendezvous {

/// Made before the processes are forked; each of them then has it as a store of its own, which counts what
/// this process asks of it.
class SharedStore final : public Store {
 public:
  SharedStore();
  ~SharedStore() override;

  void set(const std::string& key, std::string_view value) override;
  [[nodiscard]] std::optional<std::string> get(const std::string& key) override;
  [[nodiscard]] bool wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override;
  void erase(const std::string& key) override;

  /// The functions that this process has called.
  [[nodiscard]] const std::vector<std::string>& calls() const noexcept { return calls_; }
  [[nodiscard]] std::size_t keys() const;

 private:
  struct Memory;
  class Lock;
  Memory* memory_;
  std::vector<std::string> calls_;
};

/// What the processes of a test know.
struct Worker {
  int rank = 0;
  int size = 1;
  std::shared_ptr<SharedStore> store = {};

  /// Of a session of all of them.
  [[nodiscard]] SessionOptions options(const std::string& prefix = "test/") const;
};

/// Forks so many workers and waits for their ends. A failed check or an exception in one of them is a failure
/// of the test; so is another signal than SIGKILL, which a worker may send to itself.
void run_workers(int size, const std::function<void(Worker& worker)>& body);

}  // namespace cohort::rendezvous
