// What calls in flight have in common, without a communicator.
#include "collective/call/operation_in_flight.h"

#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;

/// Keeps a list of the operations that were waited for; the first two have ended.
class Ended {
 public:
  struct Operation : OperationInFlight {
    explicit Operation(std::uint64_t call_number) : OperationInFlight(CollectiveCall()) {
      number = call_number;
    }
  };

  void wait(const Operation& operation) { waited.push_back(operation.number); }
  [[nodiscard]] bool done(const Operation& operation) noexcept { return operation.number < 2; }

  std::vector<std::uint64_t> waited;
};

/// What `fail` throws, as the error that is sent to other members.
template <class Function>
Error told(Function fail) {
  try {
    fail();
  } catch (...) {
    return error_being_handled("member 3");
  }
  return Internal("nothing was thrown");
}

TEST(OperationsInFlight, AreAskedByTheirWorksAndUnheldAfterwards) {
  const auto impl = std::make_shared<Ended>();
  std::deque<std::shared_ptr<Ended::Operation>> operations;
  for (const std::uint64_t number : {0u, 1u, 2u})
    operations.push_back(std::make_shared<Ended::Operation>(number));
  std::optional<Work> first(std::make_shared<WorkInFlight<Ended>>(impl, operations[0]));
  std::optional<Work> second(std::make_shared<WorkInFlight<Ended>>(impl, operations[1]));
  Work third(std::make_shared<WorkInFlight<Ended>>(impl, operations[2]));
  EXPECT_EQ(find_unheld(operations), nullptr);

  second->wait();
  third.wait();
  EXPECT_THAT(impl->waited, ElementsAre(1, 2));
  EXPECT_TRUE(first->done());
  EXPECT_FALSE(third.done());

  second.reset();
  EXPECT_EQ(find_unheld(operations), operations[1]);
  first.reset();
  EXPECT_EQ(find_unheld(operations), operations[0]);
}

TEST(OperationsInFlight, TellTheirErrorsWithTheirOwner) {
  const Error ours = told([] { throw Aborted(ErrorOrigin{"all_reduce #1", 2, "n1"}, "the text"); });
  EXPECT_EQ(ours.code(), ErrorCode::kAborted);
  EXPECT_STREQ(ours.what(), "the text");
  EXPECT_EQ(ours.origin().member, 2);

  const Error memory = told([] { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code(), ErrorCode::kUnavailable);
  EXPECT_STREQ(memory.what(), "member 3 is out of memory");

  const Error foreign = told([] { throw std::runtime_error("surprise"); });
  EXPECT_EQ(foreign.code(), ErrorCode::kInternal);
  EXPECT_STREQ(foreign.what(), "member 3: surprise");
}

/// Closes when it is destroyed.
struct Closing {
  ~Closing() { error = error_of_unwinding(3, {1, "n1"}, calls_in_flight); }
  std::optional<Error>& error;
  bool calls_in_flight;
};

TEST(OperationsInFlight, AreAbortedByACloseWhileAnExceptionUnwinds) {
  std::optional<Error> error;
  { const Closing closing{error, true}; }
  EXPECT_FALSE(error.has_value());

  for (const bool calls_in_flight : {false, true}) {
    const auto fail_before_the_end = [&] {
      const Closing closing{error, calls_in_flight};
      throw std::runtime_error("surprise");
    };
    EXPECT_THROW(fail_before_the_end(), std::runtime_error);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::kAborted);
    EXPECT_EQ(error->origin().member, 3);
    EXPECT_EQ(error->origin().host, "n1");
    EXPECT_EQ(error->what(),
              std::string("member 3 (worker 1, host n1) left the communicator because of an error") +
                  (calls_in_flight ? ", with calls in flight" : ""));
  }
}

TEST(OperationsInFlight, WaitAsLongAsTheirCallSays) {
  const std::chrono::duration<double> usual(5);
  CollectiveCall call;
  EXPECT_EQ(timeout_of(call, usual).count(), 5);
  call.timeout_seconds = 0;
  EXPECT_EQ(timeout_of(call, usual).count(), 0);
}

}  // namespace
}  // namespace cohort::testing
