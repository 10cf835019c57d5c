// A method that a task offers to the others: a name, and the types that it takes and returns, in words, as
// they are compared between the tasks. A value.
#pragma once

#include <string>

#include <cohort/value/structure.h>

namespace cohort::rpc {

struct Method {
  std::string name;
  std::string signature;  ///< for example `(tensor, float64) -> tensor`

  friend bool operator==(const Method&, const Method&) = default;
};
COHORT_FIELDS(Method, name, signature)

}  // namespace cohort::rpc
