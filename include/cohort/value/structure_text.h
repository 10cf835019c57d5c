// What messages say of a structure. The text is put together only when it is asked for; until then, this is
// the structure with its type erased, which it borrows.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>

#include <fmt/format.h>

#include <cohort/value/structure.h>

namespace cohort {

class Variable;

namespace detail {

template <class S>
void describe_to(std::string& text, const S& structure) {
  const char* separator = "";
  const auto add = [&](const auto& element) {
    text += separator;
    separator = ", ";
    describe_to(text, element);
  };
  if constexpr (std::is_same_v<S, Variable>)
    text += fmt::format("{} (variable number {}), ", structure.name(), structure.state()->number());
  if constexpr (requires { structure.components().front(); }) {  // distributed: the replicas' are alike
    structure.components().empty() ? void(text += "nothing")
                                   : describe_to(text, structure.components().front());
  } else if constexpr (Element<S>) {
    text += to_string(kDTypeOf<S>);
  } else if constexpr (Leaf<S>) {
    text += describe(structure);
  } else if constexpr (kIsInstance<S, std::optional>) {
    structure ? describe_to(text, *structure) : void(text += "nothing");
  } else {
    text += "{";
    if constexpr (kIsInstance<S, std::vector>) {
      for (const auto& element : structure) add(element);
    } else if constexpr (kIsInstance<S, std::map>) {
      for (const auto& [key, value] : structure) {
        if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(key)>>)
          text += fmt::format("{}{}: ", separator, static_cast<std::int64_t>(key));
        else
          text += fmt::format("{}{}: ", separator, key);
        separator = "";
        add(value);
      }
    } else if constexpr (TupleLike<S>) {
      std::apply([&](const auto&... fields) { (add(fields), ...); }, structure);
    } else {
      std::apply([&](const auto&... fields) { (add(fields), ...); }, cohort_fields(structure));
    }
    text += "}";
  }
}

template <class S>
std::string describe_structure(const void* structure) {
  std::string text;
  describe_to(text, *static_cast<const S*>(structure));
  return text;
}

}  // namespace detail

class StructureText {
 public:
  StructureText() = default;
  template <class Structure>
  explicit StructureText(const Structure& structure)
      : structure_(&structure), describe_(&detail::describe_structure<Structure>) {}

  /// For example `{images: float32[8, 28], labels: int64[8]}`.
  [[nodiscard]] std::string get() const {
    return describe_ == nullptr ? std::string() : describe_(structure_);
  }

 private:
  const void* structure_ = nullptr;
  std::string (*describe_)(const void*) = nullptr;
};

}  // namespace cohort
