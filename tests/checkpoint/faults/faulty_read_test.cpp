// A checkpoint meets a fault at every call on files by which it is verified or restored. What cannot be read
// now is not damaged, and what is removed meanwhile is not, either.
#include <cerrno>
#include <cstring>
#include <string>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>

#include "checkpoint/format/folder.h"
#include "file_faults.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = FileFault::Kind;

class FaultyRead : public ::testing::Test {
 protected:
  FaultyRead() {
    checkpoint_.add("weights", weights_);
    checkpoint_.add("step", step_);
    save();
  }

  void save() { checkpoint_.save(folder_.path().string(), 1); }

  /// What `read` throws when it meets `fault` at its call `number`; nothing for no error. `was_hit` says
  /// whether there was such a call.
  template <class Read>
  std::string error_at(int number, const FileFault& fault, Read read, bool& was_hit) const {
    std::string error;
    FileFaults faults(path_, fault, number);
    try {
      read();
    } catch (const Unavailable& thrown) {
      error = thrown.what();
    }
    was_hit = !faults.what().empty();
    return error;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("step-1");
  Tensor weights_ = Tensor::full({500}, DType::kFloat32, 3);
  std::int64_t step_ = 5;
  Checkpoint checkpoint_;
};

TEST_F(FaultyRead, IsNoDamage) {
  const FileFault fault{.kind = Kind::kError, .error = EIO};
  const auto verify = [&] { EXPECT_THAT(checkpoint::find_damage(path_), IsEmpty()); };
  const auto restore = [&] { checkpoint_.restore(path_).assert_consumed(); };
  int errors = 0;
  bool was_hit = true;
  for (int number = 0; was_hit; ++number) {
    for (const std::string& error :
         {error_at(number, fault, restore, was_hit), error_at(number, fault, verify, was_hit)}) {
      if (error.empty()) continue;
      EXPECT_THAT(error, AllOf(HasSubstr(path_), HasSubstr(std::strerror(EIO))));
      ++errors;
    }
  }
  EXPECT_GT(errors, 10);
}

TEST_F(FaultyRead, GoesOnAfterSignalsAndShortReads) {
  for (const FileFault& fault :
       {FileFault{.kind = Kind::kError, .error = EINTR}, FileFault{.kind = Kind::kShort}}) {
    bool was_hit = true;
    for (int number = 0; was_hit; ++number) {
      weights_.fill(0);
      step_ = 0;
      const auto read = [&] {
        EXPECT_THAT(checkpoint::find_damage(path_), IsEmpty());
        checkpoint_.restore(path_).assert_consumed();
      };
      EXPECT_THAT(error_at(number, fault, read, was_hit), IsEmpty());
      EXPECT_EQ(weights_.span<float>().back(), 3);
      EXPECT_EQ(step_, 5);
    }
  }
}

TEST_F(FaultyRead, OfACheckpointThatIsRemovedSaysSo) {
  const FileFault removal{.kind = Kind::kAction,
                          .action = [&] { checkpoint::remove_checkpoint(folder_.path().string(), 1); }};
  int removed = 0;
  bool was_hit = true;
  for (int number = 0; was_hit; ++number) {
    const auto verify = [&] { EXPECT_THAT(checkpoint::find_damage(path_), IsEmpty()); };
    const std::string error = error_at(number, removal, verify, was_hit);
    if (!error.empty()) {
      EXPECT_THAT(error, AllOf(HasSubstr(path_), HasSubstr("removed while it was read")));
      ++removed;
    }
    if (was_hit) save();
  }
  EXPECT_GT(removed, 2);
}

}  // namespace
}  // namespace cohort::testing
