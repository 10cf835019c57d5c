#include <cohort/value/variable_creator_scope.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/call_purpose.h>
#include <cohort/value/detail/variable_owner.h>
#include <cohort/value/detail/variable_state.h>
#include <cohort/value/variable.h>
#include <cohort/value/variable_options.h>

#include "variable_kinds.h"

namespace cohort {

namespace {

Tensor initial_value(const VariableOptions& options) {
  if (!options.initial_value) return Tensor::zeros(options.shape, options.dtype);
  if (options.shape.rank() > 0 && options.shape != options.initial_value->shape()) {
    throw InvalidArgument("variable '{}': shape {} contradicts the initial value {}", options.name,
                          to_string(options.shape), describe(*options.initial_value));
  }
  return *options.initial_value;
}

/// The rules of components that are kept equal by communication.
void require_mirrorable(const VariableOptions& options, DType dtype, const VariableOwner& owner) {
  if (options.synchronization == VariableSynchronization::kNone) {
    throw InvalidArgument(
        "variable '{}': {} mirrors its variables, which synchronization none does not allow; use auto, "
        "on_write or on_read",
        options.name, owner.strategy_name());
  }
  if (options.aggregation == VariableAggregation::kMean && !is_floating(dtype)) {
    throw InvalidArgument("variable '{}' is {}: the mean aggregation needs a floating dtype", options.name,
                          to_string(dtype));
  }
}

std::vector<Tensor> copies_of(const Tensor& value, std::span<const Device> devices) {
  std::vector<Tensor> copies;
  copies.reserve(devices.size());
  for (const Device device : devices) {
    copies.push_back(Tensor::uninitialized(value.shape(), value.dtype(), device));
    copies.back().copy_from(value);
  }
  return copies;
}

/// The variable to colocate with, null for none.
const VariableState* neighbour(const VariableOptions& options, const VariableOwner& owner) {
  if (options.colocate_with == nullptr) return nullptr;
  const VariableState* state = options.colocate_with->state().get();
  if (state->owner() == &owner) return state;
  throw InvalidArgument("variable '{}' cannot be colocated with variable '{}', which does not belong to {}",
                        options.name, options.colocate_with->name(), owner.strategy_name());
}

/// The device of each component.
std::vector<Device> devices_for(const VariableOptions& options, const VariableOwner& owner) {
  const auto devices = owner.variable_devices();
  if (neighbour(options, owner) == nullptr) {
    if (options.devices.empty()) return {devices.begin(), devices.end()};
    if (options.devices.size() == devices.size()) return options.devices;
    throw InvalidArgument("variable '{}' names {} devices, but {} gives it {} components", options.name,
                          options.devices.size(), owner.strategy_name(), devices.size());
  }
  std::vector<Device> result;
  for (const Tensor& component : options.colocate_with->components()) result.push_back(component.device());
  return result;
}

/// `options` as the variable keeps them: all choices made, without the values that its components hold.
VariableOptions settled(VariableOptions options) {
  options.trainable = options.trainable.value_or(options.synchronization != VariableSynchronization::kOnRead);
  options.initial_value.reset();
  options.colocate_with = nullptr;
  return options;
}

std::shared_ptr<VariableState> make_plain(const VariableOptions& options) {
  return std::make_shared<VariableState>(settled(options), nullptr,
                                         std::vector{initial_value(options).clone()});
}

std::shared_ptr<VariableState> make_single_copy(const VariableOptions& options, VariableOwner& owner,
                                                std::vector<Tensor> component) {
  if (owner.local_replicas() == 1)
    return std::make_shared<VariableState>(settled(options), owner.share(), std::move(component));
  return std::make_shared<AggregatingVariable>(settled(options), owner.share(), std::move(component));
}

std::shared_ptr<VariableState> make_mirrored(VariableOptions options, VariableOwner& owner,
                                             std::vector<Tensor> components) {
  if (options.synchronization == VariableSynchronization::kAuto)
    options.synchronization = VariableSynchronization::kOnWrite;
  if (options.synchronization == VariableSynchronization::kOnRead)
    return std::make_shared<SyncOnReadVariable>(settled(options), owner.share(), std::move(components));
  return std::make_shared<MirroredVariable>(settled(options), owner.share(), std::move(components));
}

std::shared_ptr<VariableState> make_elsewhere(const VariableOptions& options, const Tensor& initial,
                                              VariableOwner& owner) {
  auto variable =
      owner.variable_keeper()->make(settled(options), initial, neighbour(options, owner), owner.share());
  owner.adopt(variable);
  return variable;
}

/// A name without the numbers that make it unique: `weights` for `weights_1`.
std::string_view canonical(std::string_view name) {
  const auto is_digit = [](unsigned char character) { return std::isdigit(character) != 0; };
  const auto stem_end = std::find_if_not(name.rbegin(), name.rend(), is_digit);
  const bool numbered = stem_end != name.rbegin() && stem_end != name.rend() && *stem_end == '_';
  return numbered ? canonical(name.substr(0, static_cast<std::size_t>(name.rend() - stem_end) - 1)) : name;
}

/// How the names of a variable are compared. Replicas may number theirs, as in `weights_1`: each thread makes
/// a name that is unique to it.
enum class Naming { kExact, kUpToNumbers };

/// What those that make a variable together must agree on: what decides which collectives it makes, and its
/// name, without which two variables of one form could be made in another order and swap their values.
std::uint64_t fingerprint_of_creation(const VariableOptions& options, const Tensor& initial, Naming naming) {
  Fingerprint fingerprint;
  fingerprint.add(fingerprint_of("make a variable"))
      .add(static_cast<std::uint64_t>(options.synchronization))
      .add(static_cast<std::uint64_t>(options.aggregation))
      .add(static_cast<std::uint64_t>(initial.dtype()))
      .add(static_cast<std::uint64_t>(initial.shape().rank()));
  for (const std::int64_t extent : initial.shape().extents())
    fingerprint.add(static_cast<std::uint64_t>(extent));
  if (!options.name_may_differ)
    fingerprint.add(naming == Naming::kExact ? std::string_view(options.name) : canonical(options.name));
  return fingerprint.value();
}

auto creation(const VariableOptions& options, const Tensor& initial, Naming naming, Caller caller,
              Device device = {}) {
  return PurposeOf(fingerprint_of_creation(options, initial, naming), caller, device, [&options, &initial] {
    return PurposeWords{fmt::format("makes variable {} ({}, synchronization {}, aggregation {}{})",
                                    options.name, describe(initial), to_string(options.synchronization),
                                    to_string(options.aggregation),
                                    options.name_may_differ ? ", name_may_differ" : "")};
  });
}

bool is_mirrored(const VariableOwner& owner) {
  return owner.variable_placement() == VariablePlacement::kMirrored;
}

/// What a worker brings to the collective in which a variable is made.
struct Beginning {
  Tensor initial;
  std::vector<Device> devices;
};

Beginning beginning_of(const VariableOptions& options, const VariableOwner& owner) {
  Tensor initial = initial_value(options);
  if (is_mirrored(owner)) require_mirrorable(options, initial.dtype(), owner);
  return {std::move(initial), devices_for(options, owner)};
}

/// `prepare()`; where it throws, `abort(error)` tells those who would wait for the collective to come.
template <class Prepare, class Abort>
auto prepared(Prepare prepare, Abort abort) {
  try {
    return prepare();
  } catch (const std::exception&) {
    abort(std::current_exception());
    throw;
  }
}

std::shared_ptr<VariableState> make_for(VariableOwner& owner, const VariableOptions& options, Naming naming) {
  // The server that keeps it finds out by itself what does not fit.
  if (owner.variable_placement() == VariablePlacement::kElsewhere)
    return make_elsewhere(options, initial_value(options), owner);
  const auto [initial, devices] = prepared([&] { return beginning_of(options, owner); },
                                           [&](const auto& error) { owner.abort_workers(error); });
  auto purpose = creation(options, initial, naming, Caller::kWorker);
  std::vector<Tensor> components = copies_of(owner.from_chief(initial, purpose), devices);
  auto variable = is_mirrored(owner) ? make_mirrored(options, owner, std::move(components))
                                     : make_single_copy(options, owner, std::move(components));
  owner.adopt(variable);
  return variable;
}

std::shared_ptr<VariableState> make_in_replica(const ContextMode& mode, VariableOptions& options) {
  const Tensor initial =
      prepared([&] { return initial_value(options); },
               [&](const auto& error) { mode.strategy->abort_replicas(mode.local_replica, error); });
  const auto purpose =
      creation(options, initial, Naming::kUpToNumbers, Caller::kReplica, mode.device.value_or(Device()));
  MergeRequest request{"variable creation", typeid(VariableOptions), &options,
                       [&owner = *mode.strategy](std::span<void* const> by_replica) -> std::shared_ptr<void> {
                         return make_for(owner, *static_cast<const VariableOptions*>(by_replica[0]),
                                         Naming::kUpToNumbers);
                       },
                       purpose};
  return std::static_pointer_cast<VariableState>(mode.merge_point->meet(mode.local_replica, request));
}

/// The last of a variable's creators: chooses its kind and makes its components, for all replicas at once.
std::shared_ptr<VariableState> make_variable(VariableOptions options) {
  const ContextMode& mode = current_mode();
  if (mode.strategy == nullptr) return make_plain(options);
  if (mode.kind == ContextKind::kReplica) return make_in_replica(mode, options);
  return make_for(*mode.strategy, options, Naming::kExact);
}

thread_local const VariableCreatorScope* innermost_scope = nullptr;

}  // namespace

VariableCreatorScope::VariableCreatorScope(VariableCreator creator)
    : creator_(std::move(creator)), outer_(std::exchange(innermost_scope, this)) {
  if (creator_) return;
  innermost_scope = outer_;
  throw InvalidArgument("VariableCreatorScope: the creator is an empty function");
}

VariableCreatorScope::~VariableCreatorScope() { innermost_scope = outer_; }

const VariableCreatorScope* VariableCreatorScope::innermost() noexcept { return innermost_scope; }

Variable VariableCreatorScope::create(const VariableCreatorScope* scope, VariableOptions options) {
  if (scope == nullptr) return Variable(make_variable(std::move(options)));
  const NextCreator next = [outer = scope->outer_](VariableOptions changed) {
    return create(outer, std::move(changed));
  };
  return scope->creator_(next, std::move(options));
}

InheritedCreators::InheritedCreators(const VariableCreatorScope* innermost) noexcept
    : replaced_(std::exchange(innermost_scope, innermost)) {}

InheritedCreators::~InheritedCreators() { innermost_scope = replaced_; }

}  // namespace cohort
