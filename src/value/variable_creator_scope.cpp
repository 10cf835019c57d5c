#include <cohort/value/variable_creator_scope.h>

#include "make_variable.h"

namespace cohort {
namespace {

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
