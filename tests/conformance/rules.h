// Why a recorded line is not replayed. docs/conformance.md explains each rule.
#pragma once

#include <span>
#include <string_view>

namespace cohort::conformance {

/// A line without meaning here: C++ has nothing that corresponds, or the compiler refuses it.
struct Rule {
  std::string_view pattern;  ///< of ids; `*` stands for anything
  std::string_view reason;
};

/// The first rule whose pattern fits, or null.
[[nodiscard]] const Rule* find_rule(std::string_view id);
[[nodiscard]] std::span<const Rule> all_rules();

[[nodiscard]] bool matches(std::string_view text, std::string_view pattern);

}  // namespace cohort::conformance
