// How the model says that a step ends with an error.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace cohort::model {

struct Refusal {
  std::string code;  ///< the name of its ErrorCode
  bool any = false;  ///< who notices first decides on the kind
};

[[noreturn]] inline void refuse(const char* code = "invalid_argument") { throw Refusal{code}; }
inline void require(bool condition, const char* code = "invalid_argument") {
  if (!condition) refuse(code);
}
/// What replicas have to agree on.
inline void require_agreement(bool condition) {
  if (!condition) throw Refusal{"invalid_argument", true};
}

/// What each has to get right: one alone that does not is an error of which the others hear.
template <class T>
void require_each(const std::vector<T>& values, const std::function<bool(const T&)>& is_right) {
  const auto right = std::ranges::count_if(values, is_right);
  require(right > 0);
  require_agreement(right == std::ssize(values));
}

}  // namespace cohort::model
