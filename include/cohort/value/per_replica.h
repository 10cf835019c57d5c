// A PerReplica holds one value per replica of this worker; the values may differ.
// `Strategy::run` returns one and takes them apart again: an argument of type
// PerReplica<T> arrives in each replica as its own T. As an operand it is good inside a
// replica only, where it stands for that replica's value.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/value/context.h>
#include <cohort/value/distributed_values.h>

namespace cohort {

template <class T>
class PerReplica : public DistributedValues<PerReplica<T>, T> {
 public:
  static constexpr std::string_view kName = "PerReplica";

  PerReplica() = default;
  explicit PerReplica(std::vector<T> components)
      : DistributedValues<PerReplica<T>, T>(std::move(components)) {}

  /// The values of one worker's replicas, of `replicas` in all.
  PerReplica(std::vector<T> components, int replicas)
      : DistributedValues<PerReplica<T>, T>(std::move(components)), others_have_more_(replicas > 1) {}

  /// Inside a replica: its own value; outside any scope, the caller is replica 0 of 1, for which a value of
  /// one replica stands, but not one of several workers' parts.
  /// @throws WrongContext elsewhere.
  [[nodiscard]] const T& local() const& {
    const ContextMode& mode = current_mode();
    if (mode.kind == ContextKind::kReplica) return (*this)[static_cast<std::size_t>(mode.local_replica)];
    if (mode.kind == ContextKind::kDefault && this->size() <= 1 && !others_have_more_) return (*this)[0];
    throw WrongContext(
        "a PerReplica value was used as an operand, but this code is not inside a replica context; use "
        "strategy.local_results or strategy.reduce, or use it within run()");
  }
  [[nodiscard]] T local() && { return std::as_const(*this).local(); }

  /// The component that local replica `replica` gets. @throws InvalidArgument when there is no such replica.
  [[nodiscard]] const T& of_replica(std::size_t replica) const& { return (*this)[replica]; }
  [[nodiscard]] T of_replica(std::size_t replica) && { return std::as_const(*this)[replica]; }

  /// Whether other workers hold the values of more replicas. Internal.
  [[nodiscard]] bool is_part() const noexcept { return others_have_more_; }

 private:
  bool others_have_more_ = false;
};

}  // namespace cohort
