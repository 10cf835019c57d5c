// Values of variables that lie elsewhere, as they were read first. Any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <cohort/value/detail/variable_state.h>

namespace cohort {

class ReadCache {
 public:
  /// A copy of the variable's value; nothing if it was not read yet.
  [[nodiscard]] std::optional<Tensor> find(const VariableState& variable) const;

  /// Keeps what was read. Returns a copy: of another thread's value where that was there first.
  [[nodiscard]] Tensor keep(const VariableState& variable, Tensor value);

 private:
  /// Handles that were sent to this task have states of their own.
  using Key = std::pair<const VariableOwner*, std::uint64_t>;
  [[nodiscard]] static Key key_of(const VariableState& variable) {
    return {variable.owner(), variable.number()};
  }

  mutable std::mutex mutex_;
  std::map<Key, Tensor> values_;
};

}  // namespace cohort
