// What a restore found: values that the checkpoint did not have, and values of the checkpoint that nobody
// asked for. A handle; copies denote the same restore. Its lists become shorter when values are added to the
// Checkpoint later, which are restored then.
//
// A program says which outcome it wants: `restore(path).assert_consumed()`. If it says nothing, what is left
// at the end is logged as a warning.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort {

namespace checkpoint {
struct Restored;
}

class RestoreStatus {
 public:
  /// Internal: Checkpoint makes it.
  explicit RestoreStatus(std::shared_ptr<checkpoint::Restored> restored) : restored_(std::move(restored)) {}

  /// The step of the checkpoint.
  [[nodiscard]] std::int64_t step() const;

  /// Names in the program that the checkpoint does not have; they keep their values.
  [[nodiscard]] std::vector<std::string> missing() const;

  /// Names in the checkpoint that the program does not have, or not yet.
  [[nodiscard]] std::vector<std::string> left_over() const;

  /// @throws InvalidArgument naming what is missing or left over.
  const RestoreStatus& assert_consumed() const;

  /// @throws InvalidArgument naming what is missing. Values that are left over are no error.
  const RestoreStatus& assert_existing_restored() const;

  /// No warning: the program means to restore a part.
  const RestoreStatus& expect_partial() const;

 private:
  std::shared_ptr<checkpoint::Restored> restored_;
};

}  // namespace cohort
