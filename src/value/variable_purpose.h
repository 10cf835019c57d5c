// What the collectives of a variable are for: which operation, of which variable.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/call_purpose.h>
#include <cohort/value/detail/variable_state.h>

namespace cohort {

/// What a program does to a variable, by the name of the function: `assign`.
struct VariableOperation {
  constexpr VariableOperation(const char* function)  // NOLINT(google-explicit-constructor): it is its name
      : name(function), id(fingerprint_of(name)) {}

  std::string_view name;
  std::uint64_t id;
};

class VariablePurpose final : public CallPurpose {
 public:
  /// In a replica on `device`.
  VariablePurpose(const VariableOperation& operation, const VariableState& variable, Device device)
      : VariablePurpose(operation, variable, Caller::kReplica, device) {}
  /// In cross-replica context.
  VariablePurpose(const VariableOperation& operation, const VariableState& variable)
      : VariablePurpose(operation, variable, Caller::kWorker, {}) {}

 private:
  VariablePurpose(const VariableOperation& operation, const VariableState& variable, Caller caller,
                  Device device)
      : CallPurpose(Fingerprint().add(operation.id).add(variable.number()).value(), caller, device),
        operation_(operation),
        variable_(variable) {}

  [[nodiscard]] PurposeWords own_words() const override {
    return {fmt::format("{}s {}", operation_.name, variable_.options().name),
            fmt::format("variable number {} of {}", variable_.number(), variable_.owner()->strategy_name())};
  }

  const VariableOperation& operation_;
  const VariableState& variable_;
};

}  // namespace cohort
