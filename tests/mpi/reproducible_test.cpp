// Reductions over ranks give the bits of a plain loop over the members, whatever carries them: the
// node's engine or messages between nodes, also where COHORT_ALGORITHM asks for MPI's own reductions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "communicator_contracts.h"
#include "rank_values.h"

namespace cohort {
namespace {

using testing::session;

std::unique_ptr<Communicator> make_reproducible() {
  return session().make_communicator({.timeout_seconds = 20, .reproducible = true});
}

TEST(ReproducibleOverRanks, FewElements) { testing::check_rank_order(*make_reproducible()); }
TEST(ReproducibleOverRanks, EverySize) { testing::check_rank_order_of_sizes(*make_reproducible()); }
TEST(ReproducibleOverRanks, Packs) { testing::check_rank_order_of_packs(*make_reproducible()); }

TEST(ReproducibleOverRanks, OtherCollectivesMayBeInFlight) {
  const auto communicator = make_reproducible();
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  for (int call = 0; call < 6; ++call) {
    tensors.push_back(own_values(50'000));
    works.push_back(call % 2 == 0 ? communicator->all_reduce_async(tensors.back(), ReduceOp::kSum)
                                  : communicator->broadcast_async(tensors.back(), 0));
  }
  for (std::size_t call = works.size(); call-- > 0;) {
    works[call].wait();
    EXPECT_TRUE(bitwise_equal(tensors[call], filled(50'000, call % 2 == 0 ? sum_of_ranks() : 1)));
  }
}

TEST(ReproducibleOverRanks, AllWorkersMustAskForIt) {
  if (session().size() < 3) GTEST_SKIP();
  const int odd = session().size() / 2;
  std::string text = "no error";
  try {
    static_cast<void>(session().make_communicator({.reproducible = session().rank() != odd}));
  } catch (const InvalidArgument& error) {
    text = error.what();
  }
  EXPECT_THAT(text, ::testing::HasSubstr(describe(session().workers()[static_cast<std::size_t>(odd)]) +
                                         " asks for reproducible = false"));
  EXPECT_THAT(session().exchange(text), ::testing::Each(text));
  EXPECT_NO_THROW(make_reproducible()->barrier()) << "the session goes on";
}

}  // namespace
}  // namespace cohort
