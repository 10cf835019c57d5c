// The error texts of a call's members, each of which is a thread of its own.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace cohort::testing {

/// What the members' calls threw, which has to be the same everywhere.
class Texts {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    texts_.insert(std::move(text));
  }
  [[nodiscard]] std::string only() const {
    EXPECT_EQ(texts_.size(), 1u) << ::testing::PrintToString(texts_);
    return texts_.empty() ? "" : *texts_.begin();
  }

 private:
  std::mutex mutex_;
  std::set<std::string> texts_;
};

}  // namespace cohort::testing
