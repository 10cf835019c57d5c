// What the workers of a strategy do together, so that a failure of one ends in the same error on all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

  /// Another communicator of the same workers. Collective; there are several workers.
  [[nodiscard]] std::unique_ptr<Communicator> make_group() const { return communicator_->split(0); }

  /// The same workers, who meet on another communicator of theirs.
  [[nodiscard]] Workers on(Communicator& communicator) const;

  [[nodiscard]] int rank() const { return size() == 1 ? 0 : communicator_->rank(); }
  [[nodiscard]] int size() const { return communicator_ == nullptr ? 1 : communicator_->size(); }
  [[nodiscard]] bool is_first() const { return rank() == 0; }

  /// Calls `work` on each worker. Returns what it returned, by worker, on all of them.
  /// @throws on all workers, if it threw on some: the error of the first of these, which names all of them.
  std::vector<std::string> together(const std::function<std::string()>& work) const;

  /// The same with work that has no result, or that only the first worker does.
  void together_do(const std::function<void()>& work) const;
  void first_does(const std::function<void()>& work) const;

  /// Checks that all workers say the same. @throws InvalidArgument on all of them otherwise, naming two that
  /// differ and a line in which they do; as together(), where `text` throws.
  void agree(const std::function<std::string()>& text, const std::string& what) const;

 private:
  [[nodiscard]] std::string name_of(int worker) const;

  Communicator* communicator_;  ///< null for one worker
  std::uint64_t fingerprint_;
  std::string action_;
  double timeout_seconds_;
};

}  // namespace cohort::checkpoint
