// What the workers of a strategy do together, so that a failure of one ends in the same error on all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/strategy/strategy.h>

namespace cohort::checkpoint {

class Workers {
 public:
  /// What they do, in messages: `saves checkpoint` and its path, which may differ by worker.
  Workers(StrategyExtended& strategy, std::string_view action, const std::string& path,
          double timeout_seconds);

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const { return strategy_.workers(); }
  [[nodiscard]] bool is_first() const { return rank() == 0; }

  /// Calls `work` on each worker. Returns what it returned, by worker, on all of them.
  /// @throws on all workers, if it threw on some: the error of the first of these, which names all of them.
  std::vector<std::string> together(const std::function<std::string()>& work) const;

  /// The same with work that has no result, or that only the first worker does.
  void together_do(const std::function<void()>& work) const;
  void first_does(const std::function<void()>& work) const;

  /// Checks that all workers say the same. @throws InvalidArgument on all of them otherwise, naming two that
  /// differ and a line in which they do.
  void agree(const std::string& text, const std::string& what) const;

 private:
  [[nodiscard]] std::string name_of(int worker) const;

  StrategyExtended& strategy_;
  std::uint64_t fingerprint_;
  std::string action_;
  double timeout_seconds_;
};

}  // namespace cohort::checkpoint
