// Files for the tests of datasets that read them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <cohort/input/dataset.h>

namespace cohort::testing {

/// A folder of the running test, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("cohort-") + test->test_suite_name() + "-" + test->name() + "-XXXXXX";
    for (char& character : name) character = character == '/' ? '_' : character;
    path_ = std::filesystem::path(::testing::TempDir()) / name;
    std::string text = path_.string();
    if (::mkdtemp(text.data()) == nullptr) throw std::runtime_error("no temporary folder " + text);
    path_ = text;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// The path of a file of this name, which need not be there.
  [[nodiscard]] std::string path(std::string_view name) const { return (path_ / name).string(); }

  /// The path of a new file with these bytes.
  [[nodiscard]] std::string file(std::string_view name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

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
