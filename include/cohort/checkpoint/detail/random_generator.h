// Random generators as text: those of the standard library are written to streams and read from them.
// Internal.
#pragma once

#include <concepts>
#include <istream>
#include <locale>
#include <ostream>
#include <random>
#include <sstream>
#include <string>

#include <cohort/base/error.h>

namespace cohort::checkpoint {

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
