// The last of a variable's creators: chooses its kind and makes its components, for all replicas at once.
#pragma once

#include <memory>

#include <cohort/value/detail/variable_state.h>
#include <cohort/value/variable_options.h>

namespace cohort {

[[nodiscard]] std::shared_ptr<VariableState> make_variable(VariableOptions options);

}  // namespace cohort
