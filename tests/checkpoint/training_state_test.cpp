// What a training has besides its variables: optimizers, positions in datasets, random generators,
// structures.
#include <cohort/checkpoint/checkpoint.h>

#include <map>
#include <optional>
#include <random>

#include <cohort/input/dataset.h>
#include <cohort/input/distribute.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>

#include "../strategy/strategies.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TrainingState : public ::testing::Test {
 protected:
  [[nodiscard]] std::string save(Checkpoint& checkpoint) const {
    return checkpoint.save(folder_.path().string(), 1);
  }

  const TemporaryFolder folder_;
};

/// A model of two variables and its optimizer, under some strategy.
class Training {
 public:
  explicit Training(Strategy strategy) : strategy_(std::move(strategy)), scope_(strategy_.scope()) {
    const Tensor begin = Tensor::from({1.0F, 2.0F, 3.0F});
    variables_.push_back(Variable({.name = "kernel", .initial_value = begin}));
    variables_.push_back(Variable({.name = "bias", .initial_value = begin}));
    checkpoint_.emplace(strategy_);
    checkpoint_->add("kernel", variables_[0]);
    checkpoint_->add("bias", variables_[1]);
    checkpoint_->add("adam", optimizer_, variables_);
  }

  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      strategy_.run([&](ReplicaContext& replica) {
        const double part = 1.0 / replica.num_replicas_in_sync();
        optimizer_.apply_gradients({{Tensor::full({3}, DType::kFloat32, part), variables_[0]},
                                    {Tensor::full({3}, DType::kFloat32, -part), variables_[1]}});
      });
    }
  }

  [[nodiscard]] Checkpoint& checkpoint() { return *checkpoint_; }
  [[nodiscard]] const Adam& optimizer() const { return optimizer_; }
  [[nodiscard]] std::vector<std::vector<double>> values() const {
    return {numbers(variables_[0].read()), numbers(variables_[1].read())};
  }

 private:
  Strategy strategy_;
  StrategyScope scope_;
  std::vector<Variable> variables_;
  Adam optimizer_;
  std::optional<Checkpoint> checkpoint_;
};

TEST_F(TrainingState, OfAnOptimizerGoesOnUnderAnotherStrategy) {
  std::vector<std::vector<double>> undisturbed;
  {
    Training training(mirrored(2));
    training.steps(7);
    undisturbed = training.values();
  }
  std::string path;
  {
    Training training(mirrored(2));
    training.steps(4);
    path = save(training.checkpoint());
  }
  for (const int replicas : {1, 2, 4}) {
    Training training(mirrored(replicas));
    training.steps(1);  // what the restore finds does not matter
    training.checkpoint().restore(path).assert_consumed();
    EXPECT_EQ(training.optimizer().iterations(), 4);
    training.steps(3);
    EXPECT_EQ(training.values(), undisturbed) << replicas << " replicas";
  }
}

TEST_F(TrainingState, OfAnOptimizerNeedsVariablesOfDifferentNames) {
  const Variable a({.shape = {2}, .name = "same"});
  const Variable b({.shape = {2}, .name = "same"});
  Momentum optimizer;
  Checkpoint checkpoint;
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [&] {
                           checkpoint.add("momentum", optimizer, {{a, b}});
                         }),
              AllOf(HasSubstr("momentum/same/"), HasSubstr("already")));
}

/// Numbers of the elements that come from `position` on; it is where the next one is afterwards.
std::vector<double> take(const Dataset<Tensor>& dataset, DatasetPosition& position, int count) {
  std::vector<double> taken;
  auto iterator = dataset.begin_at(position);
  for (int i = 0; i < count && iterator != dataset.end(); ++i, ++iterator) {
    const auto batch = numbers(*iterator);
    taken.insert(taken.end(), batch.begin(), batch.end());
  }
  position = iterator.position();
  return taken;
}

TEST_F(TrainingState, HasThePositionInTheMiddleOfAShuffledPass) {
  const auto make = [] { return Dataset<Tensor>::range(100).shuffle({.seed = 3}).batch(7).prefetch(4); };
  DatasetPosition position{.pass = 2};
  Checkpoint checkpoint;
  checkpoint.add("position", position);
  const Dataset<Tensor> dataset = make();
  static_cast<void>(take(dataset, position, 5));
  const std::string path = save(checkpoint);
  const std::vector<double> rest = take(dataset, position, 100);
  EXPECT_THAT(rest, ::testing::SizeIs(100 - 35));
  position = {};
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(position, (DatasetPosition{.pass = 2, .elements = 5}));
  EXPECT_EQ(take(make(), position, 100), rest);
}

template <class Generator>
class RandomGeneratorState : public TrainingState {};
using Generators =
    ::testing::Types<std::mt19937, std::mt19937_64, std::minstd_rand, std::ranlux48, std::knuth_b>;
TYPED_TEST_SUITE(RandomGeneratorState, Generators);

TYPED_TEST(RandomGeneratorState, GoesOn) {
  TypeParam generator(5);
  generator.discard(1000);
  Checkpoint checkpoint;
  checkpoint.add("random", generator);
  const std::string path = this->save(checkpoint);
  const TypeParam saved = generator;
  generator.discard(3);
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(generator, saved);
}

TEST_F(TrainingState, OfARandomGeneratorIsNotThatOfAnotherKind) {
  std::mt19937 generator;
  Checkpoint checkpoint;
  checkpoint.add("random", generator);
  const std::string path = save(checkpoint);
  std::ranlux48 other;
  Checkpoint others;
  others.add("random", other);
  EXPECT_THAT(message_of(ErrorCode::kDataLoss, [&] { others.restore(path); }),
              HasSubstr("not that of this kind of random generator"));
  EXPECT_EQ(other, std::ranlux48());
}

struct History {
  std::vector<double> losses;
  std::pair<std::int64_t, float> best;
  std::map<std::string, Tensor> averages;
};
COHORT_FIELDS(History, losses, best, averages)

TEST_F(TrainingState, HasStructuresOfTheProgram) {
  History history{{0.5, 0.25}, {7, 0.125F}, {{"a", Tensor::from({1.0F, 2.0F})}, {"b", Tensor::scalar(3)}}};
  Checkpoint checkpoint;
  checkpoint.add("history", history);
  const std::string path = save(checkpoint);
  History other{{}, {}, {{"a", Tensor::from({0.0F, 0.0F})}, {"b", Tensor::scalar(0)}}};
  Checkpoint others;
  others.add("history", other);
  others.restore(path).assert_consumed();
  EXPECT_THAT(other.losses, ElementsAre(0.5, 0.25));
  EXPECT_EQ(other.best, history.best);
  EXPECT_THAT(numbers(other.averages.at("a")), ElementsAre(1, 2));
  EXPECT_EQ(other.averages.at("b").item<std::int32_t>(), 3);
}

}  // namespace
}  // namespace cohort::testing
