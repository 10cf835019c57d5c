#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>

#include <filesystem>
#include <fstream>

#include "../strategy/strategies.h"
#include "base/timeline_spans.h"
#include "checkpoint/format/file.h"
#include "disk.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointTest : public ::testing::Test {
 protected:
  /// Saves what `add` adds.
  template <class Add>
  std::string saved(Add add, const Strategy& strategy = get_strategy()) {
    Checkpoint checkpoint(strategy);
    add(checkpoint);
    return checkpoint.save(folder_.path().string(), next_step_++);
  }

  template <class Add>
  static void restore(const std::string& path, Add add, const Strategy& strategy = get_strategy()) {
    Checkpoint checkpoint(strategy);
    add(checkpoint);
    checkpoint.restore(path).assert_consumed();
  }

  const TemporaryFolder folder_;
  std::int64_t next_step_ = 0;
};

Variable variable_of(const std::vector<float>& values) {
  return Variable({.initial_value = vector_of(values)});
}

Variable on_read(VariableAggregation aggregation) {
  return Variable({.initial_value = Tensor::from({0.0F, 0.0F}),
                   .synchronization = VariableSynchronization::kOnRead,
                   .aggregation = aggregation});
}

TEST_F(CheckpointTest, IsASpanOfTheTimeline) {
  int value = 1;
  const auto add = [&](Checkpoint& checkpoint) { checkpoint.add("value", value); };
  TimelineSpans& spans = TimelineSpans::of_this_process();
  spans.keep(true);
  restore(saved(add), add);
  std::vector<std::string> names;
  for (const FinishedSpan& span : spans.take(100)) names.push_back(span.name);
  spans.keep(false);
  EXPECT_THAT(names, ElementsAre("save checkpoint", "restore checkpoint"));
}

TEST_F(CheckpointTest, HasTheProgramsOwnState) {
  std::int64_t step = 7;
  bool is_warm = true;
  double rate = 0.1;
  std::string text("a\0b", 3);
  std::string no_text;
  const Tensor tensor = tensor_of<std::int16_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor no_rows = Tensor::zeros({0, 3}, DType::kFloat16);
  const auto add = [&](Checkpoint& checkpoint) {
    checkpoint.add("step", step);
    checkpoint.add("is_warm", is_warm);
    checkpoint.add("rate", rate);
    checkpoint.add("text", text);
    checkpoint.add("no/text", no_text);
    checkpoint.add("tensor", tensor);
    checkpoint.add("no rows", no_rows);
  };
  const std::string path = saved(add);
  EXPECT_THAT(verify_checkpoint(path), IsEmpty());
  step = 0;
  is_warm = false;
  rate = 0;
  text = "longer than before";
  no_text = "some";
  tensor.fill(0);
  restore(path, add);
  EXPECT_EQ(step, 7);
  EXPECT_TRUE(is_warm);
  EXPECT_EQ(rate, 0.1);
  EXPECT_EQ(text, std::string("a\0b", 3));
  EXPECT_EQ(no_text, "");
  EXPECT_THAT(numbers(tensor), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(CheckpointTest, OfOneStrategyIsRestoredByAnother) {
  const auto save_with = [&](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable variable = variable_of({3, 8});
    return saved([&](Checkpoint& checkpoint) { checkpoint.add("v", variable); }, strategy);
  };
  const std::string path = save_with(mirrored(3));
  for (const int replicas : {1, 2, 4}) {
    const Strategy strategy = mirrored(replicas);
    const auto scope = strategy.scope();
    const Variable variable = variable_of({0, 0});
    restore(
        path, [&](Checkpoint& checkpoint) { checkpoint.add("v", variable); }, strategy);
    for (const Tensor& component : variable.components()) EXPECT_THAT(numbers(component), ElementsAre(3, 8));
  }
}

/// Saves an ON_READ variable of which each of `replicas` has {id + 1, 2}, restores it with others, and
/// returns what each of them has.
class OnReadInCheckpoint : public CheckpointTest {
 protected:
  std::vector<std::vector<double>> restored_by(int replicas, int others, VariableAggregation aggregation) {
    std::string path;
    {
      const Strategy strategy = mirrored(replicas);
      const auto scope = strategy.scope();
      const Variable variable = on_read(aggregation);
      strategy.run([&](ReplicaContext& replica) {
        variable.assign(Tensor::from({static_cast<float>(replica.replica_id_in_sync_group() + 1), 2.0F}));
      });
      path = saved([&](Checkpoint& checkpoint) { checkpoint.add("v", variable); }, strategy);
    }
    const Strategy strategy = mirrored(others);
    const auto scope = strategy.scope();
    const Variable variable = on_read(aggregation);
    restore(
        path, [&](Checkpoint& checkpoint) { checkpoint.add("v", variable); }, strategy);
    std::vector<std::vector<double>> components;
    for (const Tensor& component : variable.components()) components.push_back(numbers(component));
    return components;
  }
};

TEST_F(OnReadInCheckpoint, KeepsASum) {
  EXPECT_THAT(restored_by(3, 2, VariableAggregation::kSum),
              ElementsAre(ElementsAre(3, 3), ElementsAre(3, 3)));
}

TEST_F(OnReadInCheckpoint, GivesEveryReplicaTheMean) {
  EXPECT_THAT(restored_by(3, 2, VariableAggregation::kMean),
              ElementsAre(ElementsAre(2, 2), ElementsAre(2, 2)));
}

TEST_F(OnReadInCheckpoint, GivesEveryReplicaTheFirstOnes) {
  EXPECT_THAT(restored_by(3, 2, VariableAggregation::kOnlyFirstReplica),
              ElementsAre(ElementsAre(1, 2), ElementsAre(1, 2)));
}

TEST_F(OnReadInCheckpoint, NeedsAnAggregation) {
  const Strategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  Checkpoint checkpoint(strategy);
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [&] { checkpoint.add("v", on_read(VariableAggregation::kNone)); }),
              HasSubstr("aggregation none"));
}

TEST_F(CheckpointTest, Case125_ShardsAreRestoredAsOthers) {
  const auto shards = [](int count, std::int64_t rows) {
    std::vector<Variable> variables;
    variables.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      variables.emplace_back(VariableOptions{.initial_value = Tensor::zeros({rows}, DType::kFloat32)});
    return ShardedVariable(std::move(variables));
  };
  const ShardedVariable four = shards(4, 1);
  four.assign(Tensor::from({0.0F, 1.0F, 2.0F, 3.0F}));
  const std::string path = saved([&](Checkpoint& checkpoint) { checkpoint.add("table", four); });

  const ShardedVariable two = shards(2, 2);
  restore(path, [&](Checkpoint& checkpoint) { checkpoint.add("table", two); });
  EXPECT_THAT(numbers(two.variables()[0].read()), ElementsAre(0, 1));
  EXPECT_THAT(numbers(two.variables()[1].read()), ElementsAre(2, 3));
  const Variable one = variable_of({9, 9, 9, 9});
  restore(path, [&](Checkpoint& checkpoint) { checkpoint.add("table", one); });
  EXPECT_THAT(numbers(one.read()), ElementsAre(0, 1, 2, 3));
}

TEST_F(CheckpointTest, ReportsWhatIsMissingAndWhatIsLeftOver) {
  float a = 1;
  float b = 2;
  const std::string path = saved([&](Checkpoint& checkpoint) {
    checkpoint.add("a", a);
    checkpoint.add("b", b);
  });
  float c = 3;
  a = 0;
  Checkpoint checkpoint;
  checkpoint.add("a", a);
  checkpoint.add("c", c);
  const RestoreStatus status = checkpoint.restore(path);
  EXPECT_EQ(status.step(), 0);
  EXPECT_THAT(status.missing(), ElementsAre("c"));
  EXPECT_THAT(status.left_over(), ElementsAre("b"));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { status.assert_consumed(); }),
              AllOf(HasSubstr(path), HasSubstr("does not have c"), HasSubstr("program does not have b")));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { status.assert_existing_restored(); }),
              AllOf(HasSubstr("does not have c"), ::testing::Not(HasSubstr("have b"))));
  status.expect_partial();
  EXPECT_EQ(a, 1);
  EXPECT_EQ(c, 3);
}

TEST_F(CheckpointTest, RestoresWhatIsMadeLater) {
  float a = 1;
  const std::string path = saved([&](Checkpoint& checkpoint) { checkpoint.add("a", a); });
  Checkpoint checkpoint;
  const RestoreStatus status = checkpoint.restore(path);
  EXPECT_THAT(status.left_over(), ElementsAre("a"));
  a = 5;
  checkpoint.add("a", a);
  EXPECT_EQ(a, 1);
  status.assert_consumed();
}

TEST_F(CheckpointTest, RestoresWhatIsMadeLaterThoughTheCheckpointIsRemoved) {
  float a = 1;
  float b = 2;
  const std::string path = saved([&](Checkpoint& checkpoint) {
    checkpoint.add("a", a);
    checkpoint.add("b", b);
  });
  Checkpoint checkpoint;
  checkpoint.add("a", a);
  const RestoreStatus status = checkpoint.restore(path);
  std::filesystem::remove_all(path);
  b = 5;
  checkpoint.add("b", b);
  EXPECT_EQ(b, 2);
  status.assert_consumed();
}

TEST_F(CheckpointTest, WarnsOfWhatNobodyAskedFor) {
  float a = 1;
  const std::string path = saved([&](Checkpoint& checkpoint) { checkpoint.add("a", a); });
  ::testing::internal::CaptureStderr();
  { (void)Checkpoint().restore(path); }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("program does not have a"));
  ::testing::internal::CaptureStderr();
  { Checkpoint().restore(path).expect_partial(); }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
}

TEST_F(CheckpointTest, OfOtherShapesAndDTypesChangesNothing) {
  std::int64_t number = 1;
  const Tensor tensor = Tensor::from({1.0F, 2.0F});
  float last = 1;
  const std::string path = saved([&](Checkpoint& checkpoint) {
    checkpoint.add("a", last);
    checkpoint.add("number", number);
    checkpoint.add("tensor", tensor);
  });
  double other_number = 2;
  const Tensor other_tensor = Tensor::from({5.0F, 6.0F, 7.0F});
  last = 9;
  Checkpoint checkpoint;
  checkpoint.add("a", last);
  checkpoint.add("number", other_number);
  checkpoint.add("tensor", other_tensor);
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { checkpoint.restore(path); }),
              AllOf(HasSubstr("'number' was saved as int64[] and is float64[]"),
                    HasSubstr("'tensor' was saved as float32[2] and is float32[3]")));
  EXPECT_EQ(last, 9);
}

TEST_F(CheckpointTest, ThatIsDamagedChangesNothing) {
  float a = 1;
  float z = 1;
  const auto add = [&](Checkpoint& checkpoint) {
    checkpoint.add("a", a);
    checkpoint.add("z", z);
  };
  const std::string path = saved(add);
  const std::string file = path + "/values-00000-of-00001.safetensors";
  std::string bytes = checkpoint::read_text(file, 1000);
  bytes.back() ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  a = 5;
  EXPECT_THAT(message_of(ErrorCode::kDataLoss, [&] { restore(path, add); }),
              AllOf(HasSubstr("value 'z' is damaged"), HasSubstr(file)));
  EXPECT_EQ(a, 5);
}

TEST_F(CheckpointTest, ThatCannotBeWrittenLeavesWhatThereIs) {
  const Tensor tensor = Tensor::full({1000}, DType::kFloat32, 1);
  const auto add = [&](Checkpoint& checkpoint) { checkpoint.add("tensor", tensor); };
  const std::string path = saved(add);
  {
    const LargestFile limit(2000);
    EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { saved(add); }),
                AllOf(HasSubstr("/values-00000-of-00001"), HasSubstr("File too large")));
  }
  EXPECT_THAT(list_checkpoints(folder_.path().string()), ::testing::SizeIs(1));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("step-1.unfinished")));
  EXPECT_THAT(verify_checkpoint(path), IsEmpty());
  EXPECT_THAT(verify_checkpoint(saved(add)), IsEmpty());
}

TEST_F(CheckpointTest, WhoseNameDoesNotReachTheDiskIsNone) {
  float a = 1;
  const auto add = [&](Checkpoint& checkpoint) { checkpoint.add("a", a); };
  const std::string path = saved(add);
  {
    const BrokenDisk broken(folder_.path().string(), 1);
    EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { saved(add); }),
                AllOf(HasSubstr("the folder '" + folder_.path().string()), HasSubstr("Input/output error")));
  }
  EXPECT_THAT(list_checkpoints(folder_.path().string()), ::testing::SizeIs(1));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("step-1.unfinished")));
  next_step_ = 1;
  EXPECT_THAT(verify_checkpoint(saved(add)), IsEmpty());
}

TEST_F(CheckpointTest, RefusesNames) {
  float a = 1;
  Checkpoint checkpoint;
  checkpoint.add("a", a);
  for (const char* name : {"", "a", "__metadata__", "\xff"})
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { checkpoint.add(name, a); }),
                ::testing::Not(IsEmpty()));
}

TEST_F(CheckpointTest, IsNotSavedInsideReplicas) {
  const Strategy strategy = mirrored(2);
  Checkpoint checkpoint(strategy);
  EXPECT_THROW(strategy.run([&] { checkpoint.save(folder_.path().string(), 0); }), WrongContext);
}

}  // namespace
}  // namespace cohort::testing
