// What workers tell each other without a communicator, and how that ends when one of them does not take
// part as the others do.
#include "mpi/worker_exchange.h"

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi_main.h"

namespace cohort::mpi {
namespace {

using namespace std::chrono_literals;
using cohort::testing::session;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(LibraryVersion, IsOneLine) {
  EXPECT_EQ(first_line("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr 7\n"), "MPICH Version: 4.0.2");
  EXPECT_EQ(first_line("Intel(R) MPI Library 2021.18 for Linux* OS\r\n"),
            "Intel(R) MPI Library 2021.18 for Linux* OS");
  EXPECT_EQ(first_line(""), "");
}

/// An exchange of its own, of all workers.
class OwnExchange {
 public:
  explicit OwnExchange(std::chrono::duration<double> timeout = 20s)
      : exchange_(std::in_place, environment_, comm_.get(), session().workers(), timeout) {}
  ~OwnExchange() {
    comm_.leak();  // others may have failed
  }
  OwnExchange(const OwnExchange&) = delete;
  OwnExchange& operator=(const OwnExchange&) = delete;

  WorkerExchange* operator->() { return &*exchange_; }
  /// As after the failure of a communicator.
  void note_failure() { environment_->note_failure(); }

 private:
  std::shared_ptr<MpiEnvironment> environment_ = std::make_shared<MpiEnvironment>(thread_level());
  Comm comm_ = Comm::duplicate(MPI_COMM_WORLD);
  std::optional<WorkerExchange> exchange_;
};

int last() { return session().size() - 1; }
std::string name_of(int worker) { return describe(session().workers()[static_cast<std::size_t>(worker)]); }

/// The text of the error in which `call` ends, which is of that code.
template <class Call>
std::string error_of(ErrorCode code, Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(WorkerExchange, GathersBlobsOfAnyLength) {
  OwnExchange exchange;
  for (const std::size_t bytes : {0u, 1u, 100u, 5'000u, 300'000u}) {
    const auto blob_of = [bytes](int rank) {
      return std::string(bytes + static_cast<std::size_t>(rank), static_cast<char>('a' + rank));
    };
    const std::vector<std::string> blobs =
        exchange->all_gather(RoundKind::kExchange, blob_of(session().rank()));
    ASSERT_EQ(blobs.size(), session().workers().size());
    for (int rank = 0; rank < session().size(); ++rank)
      EXPECT_EQ(blobs[static_cast<std::size_t>(rank)], blob_of(rank));
  }
  EXPECT_NO_THROW(exchange->wait_for_end());
}

TEST(WorkerExchange, NamesWhoDoesSomethingElse) {
  if (last() == 0) GTEST_SKIP();
  OwnExchange exchange;
  const std::string text = error_of(ErrorCode::kInvalidArgument, [&] {
    if (session().rank() == last())
      exchange->wait_for_end();
    else
      static_cast<void>(exchange->all_gather(RoundKind::kMakeCommunicator, "options"));
  });
  EXPECT_THAT(text, AllOf(HasSubstr(name_of(last()) + " ends its Session"),
                          HasSubstr(name_of(0) + " makes a communicator")));
  EXPECT_THAT(session().exchange(text.substr(text.find(": "))), Each(text.substr(text.find(": "))));
  error_of(ErrorCode::kInvalidArgument, [&] { exchange->wait_for_end(); });
}

TEST(WorkerExchange, NamesWhoIsMissingOnAllWorkers) {
  for (const int missing : {0, last()}) {
    if (last() == 0) GTEST_SKIP();
    OwnExchange exchange(0.3s);
    const auto start = std::chrono::steady_clock::now();
    if (session().rank() == missing) std::this_thread::sleep_for(4s);
    const std::string text = error_of(ErrorCode::kDeadlineExceeded, [&] {
      static_cast<void>(exchange->all_gather(RoundKind::kSplit, "late"));
    });
    EXPECT_THAT(text, AllOf(HasSubstr("split #1: deadline of 0.3 s passed; missing: " + name_of(missing))));
    if (session().rank() != missing) {
      EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
    }
    static_cast<void>(session().exchange(""));
  }
}

TEST(WorkerExchange, TheEndHasADeadlineAfterAFailure) {
  for (const int missing : {0, last()}) {
    if (last() == 0) GTEST_SKIP();
    OwnExchange exchange(0.3s);
    // It is enough that the first worker knows of the failure, if it is there.
    if (session().rank() == 0 || missing == 0) exchange.note_failure();
    if (session().rank() != missing) {
      const std::string text = error_of(ErrorCode::kDeadlineExceeded, [&] { exchange->wait_for_end(); });
      EXPECT_THAT(text, HasSubstr("end of the session #1: deadline of 0.3 s passed; missing: "));
      EXPECT_THAT(text, HasSubstr(name_of(missing)));
    }
    static_cast<void>(session().exchange(""));
  }
}

TEST(WorkerExchange, TheEndSaysWhoIsWaitedFor) {
  if (last() == 0) GTEST_SKIP();
  // Time itself is what is tested. On a busy machine the first worker may look too late.
  std::string said;
  for (int attempt = 0; attempt < 10 && said.empty(); ++attempt) {
    OwnExchange exchange(0.1s);
    static_cast<void>(session().exchange(""));
    ::testing::internal::CaptureStderr();
    if (session().rank() == last()) std::this_thread::sleep_for(500ms);
    EXPECT_NO_THROW(exchange->wait_for_end());
    said = session().exchange(::testing::internal::GetCapturedStderr()).front();
  }
  EXPECT_THAT(said, HasSubstr("end of the session #1: waiting for 0.1 s for "));
  EXPECT_THAT(said, HasSubstr(name_of(last())));
}

TEST(WorkerExchange, TheFirstDeadlineToPassCounts) {
  if (last() < 2) GTEST_SKIP();
  // The one in the middle does not come; the first worker alone would wait for long.
  const int missing = 1;
  OwnExchange exchange(session().rank() == 0 ? 60s : 1s);
  if (session().rank() == missing) std::this_thread::sleep_for(4s);
  const std::string text = error_of(ErrorCode::kDeadlineExceeded, [&] {
    static_cast<void>(exchange->all_gather(RoundKind::kExchange, ""));
  });
  EXPECT_THAT(text, HasSubstr("missing: " + name_of(missing)));
}

TEST(WorkerExchange, TellsTheOthersThatAWorkerHasLeft) {
  for (const int leaver : {0, last()}) {
    if (last() == 0) GTEST_SKIP();
    try {
      OwnExchange exchange;
      if (session().rank() == leaver) throw std::runtime_error("something else went wrong");
      const std::string text = error_of(
          ErrorCode::kAborted, [&] { static_cast<void>(exchange->all_gather(RoundKind::kExchange, "")); });
      EXPECT_THAT(text, HasSubstr(name_of(leaver) + " left because of an error"));
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(session().rank(), leaver) << error.what();
    }
    static_cast<void>(session().exchange(""));
  }
}

}  // namespace
}  // namespace cohort::mpi
