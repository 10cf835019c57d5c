// Says: not a structure of tensors: use tensors, IndexedSlices, numbers, tuples, vectors, arrays, maps
// Says: optionals, or aggregates, whose fields COHORT_FIELDS(Type, fields...) names
// Says: vector<bool> has no elements to refer to; use vector<std::int8_t>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <cohort/value/structure.h>

#ifdef MISUSE
using Label = std::string;
using Flag = bool;
#else
using Label = int;
using Flag = std::int8_t;
#endif

int count_leaves(std::vector<std::pair<cohort::Tensor, Label>>& examples, std::vector<Flag>& flags) {
  int leaves = 0;
  const auto count = [&](auto&) { ++leaves; };
  cohort::for_each_leaf(count, examples);
  cohort::for_each_leaf(count, flags);
  return leaves;
}
