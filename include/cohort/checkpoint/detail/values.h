// What Checkpoint adds that is no tensor: structures, of which each part is a value of its own, and random
// generators, which are text. Internal.
#pragma once

#include <concepts>
#include <cstddef>
#include <istream>
#include <locale>
#include <map>
#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/device/dtype.h>
#include <cohort/value/structure.h>

namespace cohort::checkpoint {

/// A vector of numbers is one value.
template <class T>
inline constexpr bool kIsVectorOfParts = false;
template <class T>
inline constexpr bool kIsVectorOfParts<std::vector<T>> = !Element<T>;

template <class T>
concept WithParts =
    kIsVectorOfParts<T> || detail::kIsInstance<T, std::map> || detail::TupleLike<T> || detail::WithFields<T>;

/// Calls `function(name, part)`: names are keys of maps, and otherwise numbers from 0.
template <WithParts S, class Function>
void for_each_part(S& structure, Function function) {
  const auto each_of = [&](auto parts) {
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      (function(kIndex, std::get<kIndex>(parts)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(parts)>>{});
  };
  if constexpr (kIsVectorOfParts<S>) {
    for (std::size_t i = 0; i < structure.size(); ++i) function(i, structure[i]);
  } else if constexpr (detail::kIsInstance<S, std::map>) {
    for (auto& [key, part] : structure) function(key, part);
  } else if constexpr (detail::TupleLike<S>) {
    each_of(std::apply([](auto&... parts) { return std::tie(parts...); }, structure));
  } else {
    each_of(cohort_fields(structure));
  }
}

/// Those of the standard library are written to streams as text, and read from them.
template <class T>
concept RandomGenerator = std::uniform_random_bit_generator<T> &&
    requires(T& generator, std::istream& in, std::ostream& out) {
  in >> generator;
  out << generator;
};

template <RandomGenerator Generator>
std::string to_text(const Generator& generator) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << generator;
  return std::move(text).str();
}

/// @throws DataLoss for the text of another kind of generator; `generator` stays as it is.
template <RandomGenerator Generator>
void from_text(const std::string& text, Generator& generator) {
  std::istringstream input(text);
  input.imbue(std::locale::classic());
  Generator saved = generator;
  if (!(input >> saved) || !(input >> std::ws).eof())
    throw DataLoss("the text is not that of this kind of random generator");
  generator = saved;
}

}  // namespace cohort::checkpoint
