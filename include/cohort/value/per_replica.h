// A PerReplica holds one value per replica of this worker; the values may differ.
// `Strategy::run` returns one and takes them apart again: an argument of type
// PerReplica<T> arrives in each replica as its own T.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <ostream>
#include <span>
#include <type_traits>
#include <utility>
#include <valarray>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/value/context.h>

namespace cohort {

template <class T>
class PerReplica {
 public:
  using value_type = T;

  PerReplica() = default;
  explicit PerReplica(std::vector<T> components) : components_(contiguous(std::move(components))) {}

  [[nodiscard]] std::size_t size() const noexcept { return components_.size(); }
  [[nodiscard]] std::span<const T> components() const noexcept { return {std::begin(components_), size()}; }

  /// The value of local replica `index`. @throws InvalidArgument when there is none.
  [[nodiscard]] const T& operator[](std::size_t index) const {
    if (index >= size()) throw InvalidArgument("PerReplica has {} components, no number {}", size(), index);
    return components_[index];
  }

  /// Inside a replica: its own value; outside any scope, the caller is replica 0 of 1.
  /// @throws WrongContext elsewhere.
  [[nodiscard]] const T& local() const {
    const ContextMode& mode = current_mode();
    if (mode.kind == ContextKind::kCrossReplica || (mode.kind == ContextKind::kDefault && size() > 1)) {
      throw WrongContext(
          "a PerReplica value was used as an operand, but this code is not inside a replica context; use "
          "strategy.local_results or strategy.reduce, or use it within run()");
    }
    return (*this)[mode.kind == ContextKind::kReplica ? static_cast<std::size_t>(mode.local_replica) : 0];
  }

  friend std::ostream& operator<<(std::ostream& stream, const PerReplica& value) {
    stream << "PerReplica:{";
    for (std::size_t i = 0; i < value.size(); ++i) stream << (i == 0 ? " " : ", ") << i << ": " << value[i];
    return stream << " }";
  }

 private:
  // std::vector packs bool into bits, which nobody can refer to.
  using Components = std::conditional_t<std::is_same_v<T, bool>, std::valarray<bool>, std::vector<T>>;

  static Components contiguous(std::vector<T> components) {
    if constexpr (std::is_same_v<T, bool>) {
      Components result(components.size());
      std::copy(components.begin(), components.end(), std::begin(result));
      return result;
    } else {
      return components;
    }
  }

  Components components_;
};

}  // namespace cohort
