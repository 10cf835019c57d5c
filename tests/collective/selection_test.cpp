// What is chosen for a call: by COHORT_ALGORITHM, and how many lanes by what was measured.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>

#include "collective/choice/selection.h"
#include "collective/network/cost_model.h"

namespace cohort {
namespace {

// COHORT_ALGORITHM: what it may be set to, and that all workers must set the same.

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

namespace cohort::network {
namespace {

// How many lanes are chosen for what was measured.

constexpr double kGamma = 0.1e-9;

/// A link of so many seconds per byte, of which one member fills only a part.
std::vector<LaneRate> rates_of(double link, double of_one_member, int most) {
  std::vector<LaneRate> rates;
  for (int lanes = 1; lanes <= most; lanes *= 2)
    rates.push_back({lanes, std::max(link, of_one_member / lanes)});
  return rates;
}

int lanes_for(double link, double of_one_member, int most = 64) {
  return choose_lanes(rates_of(link, of_one_member, most), kGamma).lanes;
}

TEST(LaneCount, IsOneWhereOneMemberFillsTheLink) {
  EXPECT_EQ(lanes_for(0.8e-9, 0.8e-9), 1) << "10 Gbit/s";
  EXPECT_EQ(lanes_for(8e-9, 8e-9), 1);
}

TEST(LaneCount, GrowsUntilTheLinkIsFull) {
  EXPECT_EQ(lanes_for(0.4e-9, 1.6e-9), 4);
  EXPECT_EQ(lanes_for(0.4e-9, 6.4e-9), 16);
  EXPECT_EQ(lanes_for(0.4e-9, 6.4e-9, 8), 8) << "the node has no more members";
}

TEST(LaneCount, SharesTheReductionWhereTheLinkIsFast) {
  EXPECT_EQ(lanes_for(0.08e-9, 0.08e-9), kBuiltInLanes) << "100 Gbit/s, which one member fills";
}

TEST(LaneCount, IsTheFewestThatIsNearTheBest) {
  const auto choose = [](std::vector<LaneRate> rates) { return choose_lanes(rates, 0).lanes; };
  EXPECT_EQ(choose({{1, 1.09}, {2, 1.0}, {4, 1.05}}), 1);
  EXPECT_EQ(choose({{1, 1.11}, {2, 1.0}, {4, 1.0}}), 2);
  EXPECT_EQ(choose({{1, 1.0}, {2, 1.3}, {4, 2.0}}), 1) << "more lanes get in each other's way";
  EXPECT_EQ(choose({{3, 7.0}}), 3);
}

TEST(LaneCount, NeedsNoMeasurementOfMoreOnceTheyGainNothing) {
  const auto may_gain = [](std::vector<LaneRate> rates) { return may_gain_from_more_lanes(rates, 0); };
  EXPECT_TRUE(may_gain({}));
  EXPECT_TRUE(may_gain({{1, 1.0}})) << "one alone says nothing";
  EXPECT_TRUE(may_gain({{1, 1.0}, {2, 0.9}}));
  EXPECT_FALSE(may_gain({{1, 1.0}, {2, 0.97}}));
  EXPECT_FALSE(may_gain({{1, 1.0}, {2, 1.2}}));
  EXPECT_TRUE(may_gain_from_more_lanes(std::vector<LaneRate>{{1, 0.08e-9}, {2, 0.08e-9}}, kGamma))
      << "the members reduce side by side";
}

TEST(LaneCount, ComesFromTheTable) {
  TuningTable table;
  EXPECT_EQ(lanes_of(table), kBuiltInLanes);
  for (const double value : {1.0, 3.0, 3.7}) {
    table.set(Figure::kLanes, value, TuningSource::kFile);
    EXPECT_EQ(lanes_of(table), static_cast<int>(value));
  }
  table.set(Figure::kLanes, 0.3, TuningSource::kFile);
  EXPECT_EQ(lanes_of(table), 1);
  table.set(Figure::kLanes, 1e300, TuningSource::kFile);
  EXPECT_GT(lanes_of(table), 1000);
}

}  // namespace
}  // namespace cohort::network
