// Variables that count, of the current strategy.
#pragma once

#include <cstdint>
#include <string>

#include <cohort/value/variable.h>

namespace cohort::test {

[[nodiscard]] inline Variable counter(const std::string& name) {
  return Variable({.dtype = DType::kInt64, .name = name});
}

[[nodiscard]] inline std::int64_t value(const Variable& variable) {
  return variable.read().item<std::int64_t>();
}

}  // namespace cohort::test
