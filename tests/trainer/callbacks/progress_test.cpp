// What Progress writes, where, and that drawing asks for no memory.
#include <cohort/trainer/callbacks/progress.h>

#include <cstdio>
#include <string>

#include <gmock/gmock.h>

#include "../../../benchmarks/dispatch/allocations.h"
#include "scripted_training.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A stream in memory.
class Text {
 public:
  Text() : stream_(open_memstream(&text_, &length_)) {}
  ~Text() {
    std::fclose(stream_);
    std::free(text_);  // NOLINT(*-no-malloc): open_memstream says so
  }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  [[nodiscard]] std::FILE* stream() const { return stream_; }
  [[nodiscard]] std::string written() const { return {text_, length_}; }

 private:
  char* text_ = nullptr;
  std::size_t length_ = 0;
  std::FILE* stream_;
};

Logs logs(double loss) {
  Logs logs;
  logs.set("loss", loss);
  return logs;
}

/// Two of the four steps of epoch 1, or all with the epoch's end.
std::string progress_of(const ProgressOptions& options, bool ends, bool reports = true) {
  const Text text;
  ProgressOptions to_text = options;
  to_text.stream = text.stream();
  Progress progress(to_text);
  ScriptedTraining training({.epochs = 5, .steps = 4});
  training.set_reports(reports);
  progress.set_training(training);
  progress.on_epoch_begin(1, {});
  for (int batch = 0; batch < (ends ? 4 : 2); ++batch) progress.on_train_batch_end(batch, logs(0.25));
  Logs of_epoch = logs(0.125);
  of_epoch.set("val_loss", 0.5);
  if (ends) progress.on_epoch_end(1, of_epoch);
  return text.written();
}

TEST(Progress, DrawsOneLineAnew) {
  const std::string text = progress_of({.style = ProgressStyle::kLine, .seconds = 0}, false);
  EXPECT_THAT(text,
              AllOf(StartsWith("\repoch 2/5  1/4 [=====>"), HasSubstr("\repoch 2/5  2/4 [==========>")));
  EXPECT_THAT(text, AllOf(HasSubstr("  loss 0.25  "), HasSubstr("s/step  0:00 left"), Not(HasSubstr("\n"))));
}

TEST(Progress, WritesPlainLinesWhereThereIsNoTerminal) {
  const std::string text = progress_of({.seconds = 0}, false);
  EXPECT_THAT(text, AllOf(StartsWith("epoch 2/5: step 1/4, loss 0.25, "), HasSubstr("\nepoch 2/5: step 2/4"),
                          EndsWith(" left\n"), Not(HasSubstr("\r"))));
}

TEST(Progress, WritesALineForEachEpochInJobLogs) {
  const std::string text = progress_of({.seconds = 3600}, true);
  EXPECT_THAT(text, AllOf(StartsWith("epoch 2/5: 4 steps in "), EndsWith(", loss 0.125, val_loss 0.5\n")));
}

TEST(Progress, TheChiefAloneWrites) {
  EXPECT_EQ(progress_of({.style = ProgressStyle::kLine, .seconds = 0}, true, false), "");
}

TEST(Progress, AsksForNoMemory) {
  ProgressOptions options{.style = ProgressStyle::kLine, .seconds = 0};
  options.stream = std::fopen("/dev/null", "w");
  {
    Progress progress(options);
    ScriptedTraining training({.epochs = 5, .steps = 100});
    progress.set_training(training);
    progress.on_epoch_begin(0, {});
    const Logs of_batch = logs(0.25);
    progress.on_train_batch_end(0, of_batch);
    const std::size_t before = bench::allocations();
    for (int batch = 1; batch < 100; ++batch) progress.on_train_batch_end(batch, of_batch);
    EXPECT_EQ(bench::allocations() - before, 0U);
  }
  std::fclose(options.stream);
}

TEST(Progress, RefusesNegativeSeconds) { EXPECT_THROW(Progress({.seconds = -1}), InvalidArgument); }

}  // namespace
}  // namespace cohort::testing
