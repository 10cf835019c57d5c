// Communicators with several members per worker, each a thread. LOCAL_MEMBERS says how many.
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "communicator_contracts.h"
#include "rank_values.h"
#include "thrown.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using testing::session;

int local_members() {
  const char* members = std::getenv("LOCAL_MEMBERS");
  return members == nullptr ? 2 : std::atoi(members);
}

/// Each of this worker's communicators to a thread of its own.
void on_members(const std::function<void(Communicator&)>& function,
                const CommunicationOptions& options = {.timeout_seconds = 20}) {
  const auto seats = session().make_communicators(options, local_members());
  std::vector<std::thread> threads;
  threads.reserve(seats.size());
  for (const auto& seat : seats) threads.emplace_back([&function, &seat] { function(*seat); });
  for (std::thread& thread : threads) thread.join();
}

TEST(ThreadMembers, AreNumberedWorkerByWorker) {
  const auto seats = session().make_communicators({}, local_members());
  ASSERT_EQ(seats.size(), static_cast<std::size_t>(local_members()));
  for (int number = 0; number < local_members(); ++number) {
    const Communicator& seat = *seats[static_cast<std::size_t>(number)];
    EXPECT_EQ(seat.size(), session().size() * local_members());
    EXPECT_EQ(seat.rank(), session().rank() * local_members() + number);
    EXPECT_EQ(seat.members()[static_cast<std::size_t>(seat.rank())].worker, session().rank());
  }
}

TEST(ThreadMembers, Reductions) { on_members(testing::check_reductions); }
TEST(ThreadMembers, Arithmetic) { on_members(testing::check_arithmetic); }
TEST(ThreadMembers, DataMovement) { on_members(testing::check_data_movement); }
TEST(ThreadMembers, SizesAndMemory) { on_members(testing::check_sizes_and_memory); }
TEST(ThreadMembers, Messages) { on_members(testing::check_messages); }
TEST(ThreadMembers, Async) { on_members(testing::check_async); }
TEST(ThreadMembers, Packed) { on_members(testing::check_packed); }
TEST(ThreadMembers, Arguments) { on_members(testing::check_arguments); }
TEST(ThreadMembers, Mismatch) { on_members(testing::check_mismatch); }
TEST(ThreadMembers, Missing) {
  on_members(testing::check_missing,
             {.timeout_seconds = testing::short_timeout(session().size() * local_members())});
  meet();
}

TEST(ThreadMembers, Groups) {
  on_members(testing::check_split);
  on_members(testing::check_groups_beside_each_other);
  on_members(
      [](Communicator& communicator) { testing::check_messages_stay_in_their_group(communicator, 3); });
  on_members(testing::check_split_without_agreement);
  on_members(testing::check_errors_stay_in_their_group);
  on_members(testing::check_leaving_a_group);
  meet();
}

TEST(ThreadMembers, RankOrder) {
  const CommunicationOptions options{.timeout_seconds = 20, .reproducible = true};
  on_members(testing::check_rank_order, options);
  on_members(testing::check_rank_order_of_sizes, options);
  on_members(testing::check_rank_order_of_packs, options);
}

TEST(ThreadMembers, OneThatLeavesByAnExceptionIsNamedEverywhere) {
  const int odd = session().size() * local_members() - 1;
  auto seats = session().make_communicators({.timeout_seconds = 20}, local_members());
  std::vector<std::thread> threads;
  threads.reserve(seats.size());
  for (auto& seat : seats) {
    threads.emplace_back([&seat, odd] {
      const int rank = seat->rank();
      try {
        const std::unique_ptr<Communicator> own = std::move(seat);
        if (rank == odd) throw std::runtime_error("something else went wrong");
        own->all_reduce(filled(200'000, 1), ReduceOp::kSum);
        ADD_FAILURE() << "member " << rank << ": no error";
      } catch (const Aborted& error) {
        EXPECT_THAT(error.what(), HasSubstr("left the communicator"));
        EXPECT_EQ(error.origin().member, odd) << error.what();
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(rank, odd) << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  meet();
}

TEST(ThreadMembers, AllWorkersMustHaveAsMany) {
  EXPECT_THROW(static_cast<void>(session().make_communicators({}, 0)), InvalidArgument);
  if (session().size() < 3) GTEST_SKIP();
  const int odd = session().size() - 1;
  std::string text = "no error";
  try {
    static_cast<void>(session().make_communicators({}, session().rank() == odd ? 3 : 2));
  } catch (const InvalidArgument& error) {
    text = error.what();
  }
  EXPECT_THAT(text, HasSubstr(describe(session().workers()[static_cast<std::size_t>(odd)]) +
                              " makes one with 3 members"));
  EXPECT_THAT(session().exchange(text), ::testing::Each(text));
  on_members([](Communicator& communicator) { communicator.barrier(); });
}

}  // namespace
}  // namespace cohort
