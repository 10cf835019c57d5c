// COHORT_ALGORITHM: what it may be set to, and that all workers must set the same.
#include "collective/choice/selection.h"

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

/// An algorithm that is never executed.
class Named final : public Algorithm {
 public:
  Named(std::string name, CollectiveKind kind, double seconds = 1, bool legal = true)
      : name_(std::move(name)), kind_(kind), seconds_(seconds), legal_(legal) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] CollectiveKind kind() const noexcept override { return kind_; }
  [[nodiscard]] bool is_legal(const CallShape& /*shape*/) const override { return legal_; }
  [[nodiscard]] double seconds(const CallShape& /*shape*/,
                               const CostConstants& /*constants*/) const override {
    return seconds_;
  }
  [[nodiscard]] Task<> execute(Peers& /*peers*/, const CollectiveCall& /*call*/) const override { co_return; }

 private:
  std::string name_;
  CollectiveKind kind_;
  double seconds_;
  bool legal_;
};

std::vector<std::shared_ptr<const Algorithm>> registered() {
  return {std::make_shared<Named>("mine", CollectiveKind::kAllReduce)};
}

std::string_view chosen(const Selection& selection, CollectiveKind kind) {
  const Selection::Choice choice =
      selection.choose({.kind = kind}, {}, [](const CallShape&, const CostConstants&) { return 2.0; });
  return choice.algorithm == nullptr ? "built-in" : choice.algorithm->name();
}

TEST(Selection, LeavesAllToTheModelByDefault) {
  const Selection selection("auto", {});
  for (const CollectiveTraits& traits : kCollectives)
    EXPECT_EQ(selection.forced(traits.kind), nullptr) << traits.name;
}

TEST(Selection, AppliesANameToTheCollectivesThatHaveIt) {
  const Selection selection("ring", {});
  EXPECT_EQ(selection.forced(CollectiveKind::kAllReduce), find_built_in("ring"));
  EXPECT_EQ(selection.forced(CollectiveKind::kBroadcast), nullptr);
}

TEST(Selection, HasOneNamePerCollective) {
  const Selection selection("pieces,all_reduce=halving_doubling,broadcast=binomial,gather=auto", {});
  EXPECT_EQ(selection.forced(CollectiveKind::kAllReduce), find_built_in("halving_doubling"));
  EXPECT_EQ(selection.forced(CollectiveKind::kBroadcast), find_built_in("binomial"));
  EXPECT_EQ(selection.forced(CollectiveKind::kGather), nullptr);
  EXPECT_EQ(selection.forced(CollectiveKind::kScatter), find_built_in("pieces"));
}

TEST(Selection, KnowsEveryBuiltInName) {
  for (const std::string_view name :
       {"pieces", "direct", "single_copy", "recursive_doubling", "ring", "halving_doubling", "binomial",
        "halving_broadcast", "scatter_all_gather", "binomial_reduce", "halving_reduce", "ring_reduce"}) {
    ASSERT_NE(find_built_in(name), nullptr) << name;
    EXPECT_NO_THROW(Selection(name, {})) << name;
  }
}

TEST(Selection, ListsTheLegalNamesWhenOneIsWrong) {
  EXPECT_THAT(
      [] { Selection("rnig", registered()); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'rnig'"), HasSubstr("auto, pieces, direct"),
                                           HasSubstr("ring"), HasSubstr("binomial"), HasSubstr("mine"))));
  EXPECT_THAT([] { Selection("all_reduce=binomial", registered()); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'binomial' for all_reduce"), HasSubstr("mine"),
                                                   Not(HasSubstr("scatter_all_gather")))));
  EXPECT_THAT([] { Selection("barrier=ring", {}); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'barrier'"), HasSubstr("all_reduce"))));
  EXPECT_THROW(Selection("", {}), InvalidArgument);
  EXPECT_THROW(Selection("ring,", {}), InvalidArgument);
}

TEST(Selection, ComparesWhatIsRegisteredWithItsOwn) {
  const auto with = [](double seconds, bool legal) {
    return Selection("auto", {std::make_shared<Named>("mine", CollectiveKind::kAllReduce, seconds, legal)});
  };
  EXPECT_EQ(chosen(with(1, true), CollectiveKind::kAllReduce), "mine");
  EXPECT_EQ(chosen(with(3, true), CollectiveKind::kAllReduce), "built-in");
  EXPECT_EQ(chosen(with(1, false), CollectiveKind::kAllReduce), "built-in") << "not legal";
  EXPECT_EQ(chosen(with(1, true), CollectiveKind::kBroadcast), "built-in") << "of another kind";
}

TEST(Selection, ForcesWhatIsRegisteredWhateverItCosts) {
  const auto slow = std::make_shared<Named>("slow", CollectiveKind::kAllReduce, 100);
  EXPECT_EQ(chosen(Selection("slow", {slow}), CollectiveKind::kAllReduce), "slow");
  EXPECT_EQ(chosen(Selection("all_reduce=ring", registered()), CollectiveKind::kAllReduce), "built-in");
}

TEST(Selection, NamesTheWorkerThatDiffers) {
  const std::vector<WorkerInfo> workers{{.rank = 0, .node = 0, .local_rank = 0, .host = "a", .pid = 1},
                                        {.rank = 1, .node = 0, .local_rank = 1, .host = "b", .pid = 2}};
  EXPECT_NO_THROW(static_cast<void>(Selection::agreed(
      workers, [](std::string_view own) { return std::vector<std::string>(2, std::string(own)); })));
  const auto differing = [&] {
    static_cast<void>(Selection::agreed(workers, [](std::string_view own) {
      return std::vector<std::string>{std::string(own), "COHORT_ALGORITHM=ring and no registered algorithms"};
    }));
  };
  EXPECT_THAT(differing, ThrowsMessage<InvalidArgument>(
                             AllOf(HasSubstr("worker 1 (host b"), HasSubstr("COHORT_ALGORITHM=ring"))));
}

TEST(Registering, RefusesNamesThatAreTakenOrNotLegal) {
  const auto registering = [](std::string name, CollectiveKind kind = CollectiveKind::kAllReduce) {
    return [name = std::move(name), kind] { register_algorithm(std::make_shared<Named>(name, kind)); };
  };
  registering("first")();
  EXPECT_THAT(registering("first"), ThrowsMessage<InvalidArgument>(HasSubstr("already")));
  EXPECT_THAT(registering("ring"), ThrowsMessage<InvalidArgument>(HasSubstr("Cohort's own")));
  EXPECT_THAT(registering("auto"), ThrowsMessage<InvalidArgument>(HasSubstr("Cohort's own")));
  EXPECT_THAT(registering("My Ring"), ThrowsMessage<InvalidArgument>(HasSubstr("lower-case")));
  EXPECT_THAT(registering("second", CollectiveKind::kBarrier),
              ThrowsMessage<InvalidArgument>(HasSubstr("barrier has no algorithms")));
}

}  // namespace
}  // namespace cohort
