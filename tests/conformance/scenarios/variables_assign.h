// The assignments of the scenarios: three operations on variables that begin with 10.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "variables.h"

namespace cohort::conformance {

inline constexpr double kStart = 10;

struct Operation {
  std::string_view name;
  const Variable& (Variable::*of_tensor)(const Tensor&) const;
  const Variable& (Variable::*of_number)(double) const;
  double (*result)(double before, double value);
};

inline constexpr std::array kOperations{
    Operation{"assign", &Variable::assign, &Variable::assign, [](double, double value) { return value; }},
    Operation{"assign_add", &Variable::assign_add, &Variable::assign_add,
              [](double before, double value) { return before + value; }},
    Operation{"assign_sub", &Variable::assign_sub, &Variable::assign_sub,
              [](double before, double value) { return before - value; }},
};

/// One operation on one kind of variable.
struct Assignment {
  VariableKind kind;
  Operation operation;

  [[nodiscard]] std::string scenario(std::string_view what) const {
    return fmt::format("var/{}_{}/{}", name_of(kind), operation.name, what);
  }
};

}  // namespace cohort::conformance
