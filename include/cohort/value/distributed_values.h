// One value per local replica, in the order of the replicas: what PerReplica and Mirrored have in common.
// They differ in what they promise about the values, and so in where they may be used as operands: where they
// may, they stand for one of their components; elsewhere the use is an error.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <ostream>
#include <span>
#include <type_traits>
#include <utility>
#include <valarray>
#include <vector>

#include <cohort/base/error.h>

namespace cohort {

/// `Kind` is the derived class. It has a name, `kName`, and `local()`, the component that an
/// operand stands for.
template <class Kind, class T>
class DistributedValues {
 public:
  using value_type = T;

  [[nodiscard]] std::size_t size() const noexcept { return components_.size(); }
  [[nodiscard]] std::span<const T> components() const& noexcept { return {std::begin(components_), size()}; }
  [[nodiscard]] std::vector<T> components() && {
    return {std::move_iterator(std::begin(components_)), std::move_iterator(std::end(components_))};
  }

  /// The value of local replica `index`. @throws InvalidArgument when there is none.
  [[nodiscard]] const T& operator[](std::size_t index) const& {
    if (index >= size())
      throw InvalidArgument("{} has {} components, no number {}", Kind::kName, size(), index);
    return components_[index];
  }
  [[nodiscard]] T operator[](std::size_t index) && { return std::as_const(*this)[index]; }

  /// As an operand: `local()`. Of a temporary it is an operand, too, but no reference that is kept: that is
  /// `local()` itself. @throws what that throws.
  // NOLINTNEXTLINE(google-explicit-constructor): inside a replica, the value reads like the replica's own
  operator const T&() const { return static_cast<const Kind&>(*this).local(); }

  /// For example `PerReplica:{ 0: 1, 1: 2 }`.
  friend std::ostream& operator<<(std::ostream& stream, const Kind& value) {
    stream << Kind::kName << ":{";
    for (std::size_t i = 0; i < value.size(); ++i) stream << (i == 0 ? " " : ", ") << i << ": " << value[i];
    return stream << " }";
  }

 private:
  friend Kind;
  DistributedValues() = default;
  explicit DistributedValues(std::vector<T> components) : components_(contiguous(std::move(components))) {}

  // std::vector packs bool into bits, to which there are no references.
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

/// PerReplica or Mirrored.
template <class T>
concept Distributed = requires {
  typename T::value_type;
}
&&std::derived_from<T, DistributedValues<T, typename T::value_type>>;

}  // namespace cohort
