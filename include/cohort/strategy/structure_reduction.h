// A value that is to be reduced, with its type erased: what it says about the replicas, the leaves of its
// components, and where the result goes. The templates of a strategy make one of whatever a program passes,
// so that everything below them is compiled once.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <cohort/strategy/destinations.h>
#include <cohort/strategy/sum_or_mean.h>
#include <cohort/value/leaves.h>
#include <cohort/value/mirrored.h>
#include <cohort/value/per_replica.h>
#include <cohort/value/regroup.h>
#include <cohort/value/structure.h>
#include <cohort/value/structure_text.h>
#include <cohort/value/variable.h>

namespace cohort {

/// The leaves of one structure.
using LeafList = std::vector<TensorOrSlices>;

/// What a value says about the replicas' contributions.
enum class Contributions {
  kPerReplica,  ///< each has its own
  kMirrored,    ///< all have the same, as the program promises
  kPlain,       ///< nothing: it is one value of this worker
};

struct StructureReduction {
  std::vector<Contributions> contributions;  ///< by leaf
  std::vector<LeafList> components;          ///< by local replica; of a plain value, one
  std::vector<std::uint64_t> fingerprints;   ///< of the components' structures
  Destinations destinations;
  StructureText text = {};  ///< of the value
};

namespace detail {

/// The type that a reduction of a Value returns: that of one replica's component.
template <class Value>
using ReducedOf =
    std::conditional_t<std::is_same_v<Value, Variable>, Tensor, typename Selection<Value>::Component>;

template <class Structure>
[[nodiscard]] LeafList leaves_for(ReduceOp op, const Structure& structure) {
  if (op == ReduceOp::kMean) {
    for_each_leaf(
        []<class L>(const L&) {
          if constexpr (Element<L>) {
            if (is_floating(kDTypeOf<L>)) return;
            throw InvalidArgument(
                "the mean of numbers of type {} is a fraction, which that type cannot hold; pass double",
                to_string(kDTypeOf<L>));
          }
        },
        structure);
  }
  return to_leaves(structure);
}

/// The value as one structure per local replica, or as itself where it is plain.
template <class Value>
[[nodiscard]] auto components_of(const Value& value, int replicas) {
  if constexpr (Distributed<Value> || std::is_same_v<Value, Variable>) {
    return value.components();
  } else if constexpr (kHoldsDistributed<Value>) {
    require_components(value, replicas);
    std::vector<ReducedOf<Value>> components;
    components.reserve(static_cast<std::size_t>(replicas));
    for (int replica = 0; replica < replicas; ++replica)
      components.push_back(select_replica(static_cast<std::size_t>(replica), value));
    return components;
  } else {
    return std::span<const Value, 1>(&value, 1);
  }
}

[[nodiscard]] Contributions contributions_of(const Variable& variable);

template <class Value>
[[nodiscard]] Contributions contributions_of(const Value& value) {
  static_assert(Distributed<Value> || !kHoldsDistributed<Value>, "a structure says it leaf by leaf");
  if constexpr (!Distributed<Value>)
    return Contributions::kPlain;
  else if constexpr (kIsInstance<Value, Mirrored>)
    return value.size() == 1 ? Contributions::kPlain : Contributions::kMirrored;  // it is on one device only
  else
    return Contributions::kPerReplica;
}

/// The same for each leaf of a structure that holds distributed values, in the order of to_leaves. Inside
/// structures, the components of a Mirrored value are contributions, too.
template <class Value>
void add_contributions(const Value& value, std::vector<Contributions>& by_leaf) {
  const auto add = [&](const auto& leaves, Contributions contributions) {
    by_leaf.resize(by_leaf.size() + to_leaves(leaves).size(), contributions);
  };
  if constexpr (!kHoldsDistributed<Value>) {
    add(value, Contributions::kPlain);
  } else if constexpr (Distributed<Value>) {
    const bool plain = contributions_of(value) == Contributions::kPlain;
    add(value[0], plain ? Contributions::kPlain : Contributions::kPerReplica);
  } else if constexpr (kIsInstance<Value, std::optional>) {
    if (value) add_contributions(*value, by_leaf);
  } else if constexpr (kIsInstance<Value, std::vector>) {
    for (const auto& element : value) add_contributions(element, by_leaf);
  } else if constexpr (kIsMap<Value>) {
    for (const auto& [key, element] : value) add_contributions(element, by_leaf);
  } else {
    std::apply([&](const auto&... fields) { (add_contributions(fields, by_leaf), ...); }, value);
  }
}

template <class Value, class Components>
[[nodiscard]] StructureReduction structure_reduction(ReduceOp op, const Value& value,
                                                     const Components& components,
                                                     const Destinations& destinations) {
  StructureReduction reduction{{}, {}, {}, destinations, StructureText(value)};
  reduction.components.reserve(components.size());
  reduction.fingerprints.reserve(components.size());
  for (const auto& component : components) {
    reduction.components.push_back(leaves_for(op, component));
    // A variable's value is that variable's: another one of the same form is something else.
    Fingerprint identity;
    if constexpr (std::is_same_v<Value, Variable>) identity.add(value.state()->number());
    reduction.fingerprints.push_back(identity.add(structure_fingerprint(component)).value());
  }
  if constexpr (kHoldsDistributed<Value> && !Distributed<Value>)
    add_contributions(value, reduction.contributions);
  else if (!reduction.components.empty())
    reduction.contributions.assign(reduction.components.front().size(), contributions_of(value));
  return reduction;
}

}  // namespace detail
}  // namespace cohort
