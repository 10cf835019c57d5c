// What only processes can show of the figures that choices go by: all agree, on one node
// and over several; and what they must have in common before they can choose alike.
#include <chrono>

#include <gmock/gmock.h>

#include "chain.h"
#include "rank_values.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::session;

std::string described(std::span<const TuningFigure> figures) {
  std::string text;
  for (const TuningFigure& figure : figures)
    text += fmt::format("{}={} {}\n", figure.name, figure.value, to_string(figure.source));
  return text;
}

/// Of the workers of this node, whose figures may differ from those of another one.
std::vector<std::string> of_this_node(const std::vector<std::string>& blobs) {
  std::vector<std::string> chosen;
  for (const WorkerInfo& worker : session().workers()) {
    if (worker.node == session().self().node) chosen.push_back(blobs[static_cast<std::size_t>(worker.rank)]);
  }
  return chosen;
}

TEST(Tuning, IsAgreedByTheFirstLargeCallAndKept) {
  const auto communicator = make_communicator();
  communicator->all_reduce(filled(10, 1), ReduceOp::kSum);
  EXPECT_THAT(communicator->tuning(), IsEmpty()) << "small calls need no probe";

  const Tensor tensor = own_values(200'000);
  meet();
  const auto start = std::chrono::steady_clock::now();
  communicator->all_reduce(tensor, ReduceOp::kSum);
  // Far above 50 ms, for machines with other work and more ranks than cores.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_TRUE(bitwise_equal(tensor, filled(200'000, sum_of_ranks())));

  const std::string first = described(communicator->tuning());
  EXPECT_FALSE(first.empty());
  EXPECT_THAT(of_this_node(session().exchange(first)), Each(first));

  const auto later = make_communicator();
  later->broadcast(tensor, 0);
  later->all_reduce(tensor, ReduceOp::kSum);
  EXPECT_EQ(described(later->tuning()), first) << "one probe per process and shape of group";
  EXPECT_EQ(described(session().tuning()), first);
}

TEST(Tuning, IsAgreedByAsynchronousCallsAsWell) {
  const auto communicator = make_communicator();
  const Tensor tensor = own_values(200'000);
  Work first = communicator->all_reduce_async(tensor, ReduceOp::kSum);
  const Tensor other = own_values(300'000);
  Work second = communicator->all_reduce_async(other, ReduceOp::kSum);
  second.wait();
  first.wait();
  EXPECT_TRUE(bitwise_equal(tensor, filled(200'000, sum_of_ranks())));
  EXPECT_TRUE(bitwise_equal(other, filled(300'000, sum_of_ranks())));
}

// The last one: this program's workers differ from now on.
TEST(Tuning, NeedsTheSameRegisteredAlgorithmsOnAllWorkers) {
  if (session().size() == 1) GTEST_SKIP();
  const int last = session().size() - 1;
  if (session().rank() == last) register_algorithm(std::make_shared<testing::Chain>());
  std::string text = "no error";
  try {
    static_cast<void>(make_communicator());
  } catch (const InvalidArgument& error) {
    text = error.what();
  }
  EXPECT_THAT(text, AllOf(HasSubstr(describe(session().workers()[static_cast<std::size_t>(last)])),
                          HasSubstr("chain (all_reduce)"), HasSubstr("no registered algorithms")));
  EXPECT_THAT(session().exchange(text), Each(text));
}

}  // namespace
}  // namespace cohort
