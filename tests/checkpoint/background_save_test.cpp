// Checkpoints that are written while the program goes on. The workers are threads of this process.
#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "disk.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A worker's values of all kinds, and their Checkpoint.
class Program {
 public:
  explicit Program(Bootstrap& worker)
      : strategy_(worker, kPatient, cpu_devices(2)), scope_(strategy_.scope()), checkpoint_(strategy_) {
    checkpoint_.add("large", large_);
    checkpoint_.add("number", number_);
    checkpoint_.add("text", text_);
    checkpoint_.add("total", total_);
  }

  Checkpoint& checkpoint() { return checkpoint_; }

  /// Gives every value another one, together with all workers.
  void train(double number) {
    StrategyExtended& extended = strategy_.extended();
    if (extended.workers() > 1) extended.workers_communicator().barrier();
    strategy_.run([&] { total_.assign(Tensor::scalar(static_cast<float>(number))); });
    large_.assign(Tensor::full({1000, 3}, DType::kFloat32, number));
    number_ = number;
    text_ = std::to_string(number);
  }

  void expect(double number) {
    for (const Tensor& component : large_.components()) EXPECT_THAT(numbers(component), Each(number));
    EXPECT_EQ(number_, number);
    EXPECT_EQ(text_, std::to_string(number));
    EXPECT_EQ(total_.read().item<double>(), number * strategy_.num_replicas_in_sync());
  }

 private:
  MultiWorkerMirroredStrategy strategy_;
  StrategyScope scope_;
  const Variable large_{{.initial_value = Tensor::zeros({1000, 3}, DType::kFloat32)}};
  const Variable total_{{.initial_value = Tensor::scalar(0.0F),
                         .synchronization = VariableSynchronization::kOnRead,
                         .aggregation = VariableAggregation::kSum}};
  double number_ = 0;
  std::string text_;
  Checkpoint checkpoint_;
};

class BackgroundSave : public ::testing::TestWithParam<int> {
 protected:
  template <class Check>
  void on_every_worker(Check check) {
    for_each_worker(GetParam(), check);
  }
  [[nodiscard]] std::string folder() const { return folder_.path().string(); }
  [[nodiscard]] std::string path(int step) const { return folder() + "/step-" + std::to_string(step); }

  const TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Workers, BackgroundSave, ::testing::Values(1, 2, 3, 4),
                         ::testing::PrintToStringParamName());

TEST_P(BackgroundSave, HasTheValuesOfItsCall) {
  HeldDisk held;
  std::atomic<int> trained = 0;
  on_every_worker([&](Bootstrap& worker) {
    Program program(worker);
    program.train(1);
    EXPECT_EQ(program.checkpoint().save_async(folder(), 1), path(1));
    EXPECT_FALSE(std::filesystem::exists(path(1)));
    program.train(2);
    program.train(3);
    if (++trained == GetParam()) HeldDisk::let_go();
    program.checkpoint().wait();
    EXPECT_THAT(verify_checkpoint(path(1)), IsEmpty());
    program.expect(3);
    program.checkpoint().restore(path(1)).assert_consumed();
    program.expect(1);
  });
}

TEST_P(BackgroundSave, WaitsForTheOneBefore) {
  HeldDisk held;
  on_every_worker([&](Bootstrap& worker) {
    Program program(worker);
    for (const int step : {1, 2, 3, 4}) {
      program.train(step);
      if (step > 1) HeldDisk::let_go();
      program.checkpoint().save_async(folder(), step);
      if (step > 1) {
        EXPECT_TRUE(std::filesystem::exists(path(step - 1)));
      }
    }
    program.train(5);
    program.checkpoint().save(folder(), 5);
    EXPECT_TRUE(std::filesystem::exists(path(4)));
    for (const int step : {2, 5, 1, 4, 3}) {
      program.checkpoint().restore(path(step)).assert_consumed();
      program.expect(step);
    }
  });
}

TEST_P(BackgroundSave, FailsAtTheNextCallOnAllWorkers) {
  const std::string last = std::to_string(GetParam() - 1);
  const std::string file = "values-0000" + last + "-of-0000" + std::to_string(GetParam()) + ".safetensors";
  std::optional<BrokenDisk> broken;
  on_every_worker([&](Bootstrap& worker) {
    Program program(worker);
    program.train(1);
    Checkpoint& checkpoint = program.checkpoint();
    const std::string good = checkpoint.save(folder(), 1);
    const std::vector<std::function<void()>> next_calls{
        [&] { checkpoint.wait(); }, [&] { checkpoint.save(folder(), 9); },
        [&] { checkpoint.save_async(folder(), 9); }, [&] { checkpoint.restore(good); }};
    for (const auto& next_call : next_calls) {
      if (worker.rank() == 0) broken.emplace(file);
      program.train(2);
      checkpoint.save_async(folder(), 2);
      program.train(3);
      const std::string text = message_of(ErrorCode::kUnavailable, next_call);
      EXPECT_THAT(text, AllOf(HasSubstr("step-2.unfinished/" + file), HasSubstr("Input/output error")));
      if (GetParam() > 1) {
        EXPECT_THAT(text, HasSubstr("worker " + last + " (host"));
      }
      program.expect(3);
      checkpoint.wait();  // the error has been told
      program.train(3);   // the first worker has removed what was written
      EXPECT_THAT(list_checkpoints(folder()), SizeIs(1));
      EXPECT_FALSE(std::filesystem::exists(path(2) + ".unfinished"));
    }
    program.train(4);
    checkpoint.save_async(folder(), 2);
    program.train(5);
    checkpoint.restore(path(2)).assert_consumed();
    program.expect(4);
    checkpoint.restore(good).assert_consumed();
    program.expect(1);
  });
}

TEST_P(BackgroundSave, OfAManagerLeavesTheNewestThatAreComplete) {
  on_every_worker([&](Bootstrap& worker) {
    Program program(worker);
    CheckpointManager manager(program.checkpoint(), folder(), {.max_to_keep = 1});
    for (const int step : {1, 2, 3}) {
      program.train(step);
      manager.save_async(step);
    }
    program.checkpoint().wait();
    EXPECT_THAT(list_checkpoints(folder()), SizeIs(2));
    EXPECT_EQ(manager.restore_latest().step, 3);
    program.expect(3);
    manager.save(4);
    EXPECT_THAT(list_checkpoints(folder()), SizeIs(1));
    manager.save_async(5);
  });
  EXPECT_THAT(verify_checkpoint(path(5)), IsEmpty());
}

TEST(BackgroundSaveOfOneWorker, IsWaitedForByTheEnd) {
  const TemporaryFolder folder;
  const auto save_and_end = [&](std::int64_t step) {
    float number = 1;
    Checkpoint checkpoint;
    checkpoint.add("number", number);
    checkpoint.save_async(folder.path().string(), step);
  };
  save_and_end(1);
  EXPECT_THAT(list_checkpoints(folder.path().string()), SizeIs(1));
  const BrokenDisk broken(".safetensors");
  ::testing::internal::CaptureStderr();
  save_and_end(2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("was not saved"), HasSubstr("step-2.unfinished/values-00000-of-00001")));
}

}  // namespace
}  // namespace cohort::testing
