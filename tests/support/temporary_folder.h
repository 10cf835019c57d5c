// A folder for the files of a test, and files that cannot be written on, as on a full disk.
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace cohort::testing {

/// A folder of the running test, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = "cohort-XXXXXX";  // of a program that is no test of GoogleTest
    if (test != nullptr)
      name = std::string("cohort-") + test->test_suite_name() + "-" + test->name() + "-XXXXXX";
    for (char& character : name) character = character == '/' ? '_' : character;
    path_ = std::filesystem::path(::testing::TempDir()) / name;
    std::string text = path_.string();
    if (::mkdtemp(text.data()) == nullptr) throw std::runtime_error("no temporary folder " + text);
    path_ = text;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

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

/// While it lives, no file of this process grows beyond so many bytes: writing more is the error EFBIG.
class LargestFile {
 public:
  explicit LargestFile(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LargestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  LargestFile(const LargestFile&) = delete;
  LargestFile& operator=(const LargestFile&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace cohort::testing
