// Creators see every variable that is made while their scope is open on this thread: they may change its
// options, look at it, or return another one instead. The innermost is asked first; the last `next` is the
// strategy. Replicas start with the creators of the thread that called `run`, and open scopes of their own.
//
//     const VariableCreatorScope prefixed([](const NextCreator& next, VariableOptions options) {
//       options.name = "encoder/" + options.name;
//       return next(std::move(options));
//     });
#pragma once

#include <functional>

#include <cohort/value/variable.h>

namespace cohort {

using NextCreator = std::function<Variable(VariableOptions options)>;
using VariableCreator = std::function<Variable(const NextCreator& next, VariableOptions options)>;

/// Every variable made while it lives is made by `creator`. Scopes nest and end in reverse order, on the
/// thread that opened them.
class VariableCreatorScope {
 public:
  explicit VariableCreatorScope(VariableCreator creator);
  ~VariableCreatorScope();

  VariableCreatorScope(const VariableCreatorScope&) = delete;
  VariableCreatorScope& operator=(const VariableCreatorScope&) = delete;

  /// The innermost scope of this thread; null when none is open.
  [[nodiscard]] static const VariableCreatorScope* innermost() noexcept;

 private:
  friend class InheritedCreators;
  friend class Variable;
  [[nodiscard]] static Variable create(const VariableCreatorScope* scope, VariableOptions options);

  VariableCreator creator_;
  const VariableCreatorScope* outer_;
};

/// While it lives, this thread has the creators of another one, which keeps them open. Internal.
class InheritedCreators {
 public:
  explicit InheritedCreators(const VariableCreatorScope* innermost) noexcept;
  ~InheritedCreators();

  InheritedCreators(const InheritedCreators&) = delete;
  InheritedCreators& operator=(const InheritedCreators&) = delete;

 private:
  const VariableCreatorScope* replaced_;
};

}  // namespace cohort
