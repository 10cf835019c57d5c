// Files for the tests of datasets that read them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <cohort/input/dataset.h>

#include "temporary_folder.h"

namespace cohort::testing {

/// The bytes of a file that is there.
inline std::string bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The bytes of a number, in the machine's order or, `swapped`, in the other one.
template <class T>
std::string number_bytes(T value, bool swapped = false) {
  std::string bytes(reinterpret_cast<const char*>(&value), sizeof(T));
  return swapped ? std::string(bytes.rbegin(), bytes.rend()) : bytes;
}

/// The raw bytes of a tensor, as text.
inline std::string text_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), tensor.bytes()};
}

/// One pass over a dataset.
template <class Element>
std::vector<Element> all_of(const Dataset<Element>& dataset) {
  std::vector<Element> elements;
  for (const Element& element : dataset) elements.push_back(element);
  return elements;
}

/// One pass over records of bytes.
inline std::vector<std::string> texts_of(const Dataset<Tensor>& dataset) {
  std::vector<std::string> texts;
  for (const Tensor& element : dataset) texts.push_back(text_of(element));
  return texts;
}

}  // namespace cohort::testing
