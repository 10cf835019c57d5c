// What workers tell each other without a communicator, and how that ends when one of them does not take
// part as the others do.
#include "mpi/worker_exchange.h"

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/messages.h"
#include "mpi_main.h"

namespace cohort::mpi {
namespace {

using namespace std::chrono_literals;
using cohort::testing::session;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(WorkerTree, HasEveryWorkerOnceInTheOrderOfRanks) {
  for (const int size : {1, 2, 3, 4, 5, 7, 8, 9, 64, 100}) {
    for (int rank = 0; rank < size; ++rank) {
      int next = rank + 1;
      const WorkerTree tree(rank, size);
      for (const WorkerTree::Subtree& child : tree.children()) {
        EXPECT_EQ(child.root, next);
        EXPECT_EQ(WorkerTree(child.root, size).parent(), rank);
        next = child.end;
      }
      if (rank == 0) {
        EXPECT_EQ(next, size);
      }
    }
  }
}

TEST(WorkerTree, LeadsFromEachWorkerToTheFirst) {
  EXPECT_EQ(WorkerTree(0, 8).ancestors(), std::vector<int>());
  EXPECT_EQ(WorkerTree(7, 8).ancestors(), (std::vector<int>{6, 4, 0}));
  EXPECT_EQ(WorkerTree(4095, 4096).ancestors().size(), 12u);
  EXPECT_EQ(WorkerTree(0, 4096).children().size(), 12u);
}

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
  [[nodiscard]] MPI_Comm comm() const { return comm_.get(); }
  /// As after the failure of a communicator.
  void note_failure() { environment_->note_failure(); }

 private:
  std::shared_ptr<MpiEnvironment> environment_ = std::make_shared<MpiEnvironment>(thread_level());
  Comm comm_ = Comm::duplicate(MPI_COMM_WORLD);
  std::optional<WorkerExchange> exchange_;
};

int last() { return session().size() - 1; }

/// The first and the last worker, and between them one that others are below, if there is one.
std::vector<int> workers_at_each_place() {
  if (last() == 0) return {};
  const int inner = last() >= 6 ? 4 : 2;
  return inner < last() ? std::vector<int>{0, inner, last()} : std::vector<int>{0, last()};
}

/// What comes after the name of the worker, with which errors may begin, is the same on all.
void expect_the_same_everywhere(const std::string& text) {
  EXPECT_THAT(session().exchange(text), Each(text));
}

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

/// The text of the error in which `call` ends once its deadline has passed. Who `is_missing` makes it only
/// when the others have given up.
template <class Call>
std::string error_without(bool is_missing, Call call) {
  if (is_missing) static_cast<void>(session().exchange(""));
  std::string text = error_of(ErrorCode::kDeadlineExceeded, call);
  if (!is_missing) static_cast<void>(session().exchange(""));
  return text;
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
  for (const int odd : workers_at_each_place()) {
    OwnExchange exchange;
    const std::string text = error_of(ErrorCode::kInvalidArgument, [&] {
      if (session().rank() == odd)
        exchange->wait_for_end();
      else
        static_cast<void>(exchange->all_gather(RoundKind::kMakeCommunicator, "options"));
    });
    EXPECT_THAT(text, HasSubstr(name_of(odd) + " ends its Session"));
    EXPECT_THAT(text, HasSubstr(name_of(odd == 0 ? 1 : 0) + " makes a communicator"));
    expect_the_same_everywhere(text);
    error_of(ErrorCode::kInvalidArgument, [&] { exchange->wait_for_end(); });
  }
}

/// The shortest with the whole grace time, which workers that take turns on a core need.
constexpr auto kSoon = 0.25s;

TEST(WorkerExchange, NamesWhoIsMissingOnAllWorkers) {
  for (const int missing : workers_at_each_place()) {
    OwnExchange exchange(kSoon);
    const auto start = std::chrono::steady_clock::now();
    const std::string text = error_without(session().rank() == missing, [&] {
      static_cast<void>(exchange->all_gather(RoundKind::kSplit, "late"));
    });
    EXPECT_THAT(text,
                HasSubstr("split #1: deadline of 0.25 s passed; missing: " + name_of(missing) + ". They"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
    expect_the_same_everywhere(text);
  }
}

// Who has come may not have run yet when the shorter grace time is over, so nothing is said here of who is
// named. The whole grace time is 2 s. Workers that share their cores with others' may need several tries to
// be sooner.
TEST(WorkerExchange, TellsAShortDeadlineSoon) {
  constexpr int kTries = 4;
  for (const int missing : workers_at_each_place()) {
    bool all_were_soon = false;
    for (int attempt = 0; attempt < kTries && !all_were_soon; ++attempt) {
      OwnExchange exchange(0.1s);
      const auto start = std::chrono::steady_clock::now();
      static_cast<void>(error_without(session().rank() == missing, [&] {
        static_cast<void>(exchange->all_gather(RoundKind::kSplit, "late"));
      }));
      const bool was_soon = std::chrono::steady_clock::now() - start < 2s;
      const std::vector<std::string> all = session().exchange(was_soon ? "soon" : "late");
      all_were_soon = std::ranges::count(all, "soon") == std::ssize(all);
    }
    EXPECT_TRUE(all_were_soon) << "without worker " << missing;
  }
}

TEST(WorkerExchange, NamesAllWhoAreMissing) {
  if (last() < 3) GTEST_SKIP();
  // One that has others below it, and one that has none; nobody else waits for the second.
  OwnExchange exchange(kSoon);
  const bool is_missing = session().rank() == 1 || session().rank() == 2;
  const std::string text =
      error_without(is_missing, [&] { static_cast<void>(exchange->all_gather(RoundKind::kExchange, "")); });
  EXPECT_THAT(text, HasSubstr("missing: " + name_of(1) + ", " + name_of(2) + ". They"));
  expect_the_same_everywhere(text);
}

/// Says that it has come when it is asked, and keeps its data, until the others have failed. In place of this
/// worker's exchange, which is not used.
void come_without_data(MPI_Comm comm) {
  ExchangeMailbox mailbox(comm);
  while (true) {
    mailbox.advance();
    const std::optional<ExchangeMessage> message = mailbox.receive();
    if (!message) {
      std::this_thread::yield();
      continue;
    }
    if (message->ends_exchange()) return;
    if (message->header.kind != ExchangeMessage::Kind::kQuestion) continue;
    const std::int64_t round = message->header.round;
    mailbox.send({.round = round, .asked_in = round, .kind = ExchangeMessage::Kind::kAnswer}, "",
                 message->from);
  }
}

TEST(WorkerExchange, NamesWhoseDataDoNotArrive) {
  if (last() == 0) GTEST_SKIP();
  OwnExchange exchange(kSoon);
  if (session().rank() == last()) return come_without_data(exchange.comm());
  const std::string text = error_of(ErrorCode::kDeadlineExceeded, [&] {
    static_cast<void>(exchange->all_gather(RoundKind::kExchange, ""));
  });
  EXPECT_THAT(text,
              HasSubstr("exchange #1: deadline of 0.25 s passed while the workers' data were gathered. All "
                        "workers had come; since then "));
  // The first has none from all those whose data come together with the last one's.
  const int top = WorkerTree(0, session().size()).children().back().root;
  std::string lost = top == last() ? "since then " : "since then at least one of ";
  for (int worker = top; worker < last(); ++worker) lost += name_of(worker) + ", ";
  lost += name_of(last()) + " is stopped or cannot be reached";
  EXPECT_THAT(text, HasSubstr(lost));
}

TEST(WorkerExchange, WaitsALittleForThoseWhoComeAfterTheDeadline) {
  // Time itself is what is tested. On a busy machine a worker may come too late.
  for (const int late : workers_at_each_place()) {
    bool succeeded = false;
    for (int attempt = 0; attempt < 10 && !succeeded; ++attempt) {
      OwnExchange exchange(session().rank() == late ? 60s : 200ms);
      static_cast<void>(session().exchange(""));
      if (session().rank() == late) std::this_thread::sleep_for(300ms);
      std::string outcome = "came";
      try {
        static_cast<void>(exchange->all_gather(RoundKind::kExchange, ""));
      } catch (const DeadlineExceeded&) {
        outcome = "failed";
      }
      const std::vector<std::string> outcomes = session().exchange(outcome);
      succeeded = std::ranges::count(outcomes, "came") == session().size();
    }
    EXPECT_TRUE(succeeded) << "late: " << late;
  }
}

/// Stops another process, and has it go on when it is destroyed.
class Stopped {
 public:
  explicit Stopped(int worker)
      : process_(static_cast<pid_t>(session().workers()[static_cast<std::size_t>(worker)].pid)) {
    EXPECT_EQ(::kill(process_, SIGSTOP), 0);
  }
  ~Stopped() { ::kill(process_, SIGCONT); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  pid_t process_;
};

// Wherever it is then; mostly it has told the others that it is there, and has yet to pass on the answer to
// those below it, or is to take a long one.
TEST(WorkerExchange, NamesWhoIsStoppedInTheMiddle) {
  for (const std::size_t bytes : {0u, 300'000u}) {
    for (const int stopped : workers_at_each_place()) {
      if (stopped == 0) continue;  // who would stop it?
      OwnExchange exchange(kSoon);
      const auto exchange_bytes = [&] {
        static_cast<void>(exchange->all_gather(RoundKind::kExchange, std::string(bytes, 'x')));
      };
      const std::string text = error_of(ErrorCode::kDeadlineExceeded, [&] {
        exchange_bytes();
        std::optional<Stopped> stop;
        if (session().rank() == 0) {
          std::this_thread::sleep_for(20ms);
          stop.emplace(stopped);
        }
        exchange_bytes();
        exchange_bytes();
      });
      EXPECT_THAT(text, HasSubstr(name_of(stopped)));
      for (int worker = 0; worker < session().size(); ++worker) {
        if (worker != stopped) {
          EXPECT_THAT(text, Not(HasSubstr(name_of(worker))));
        }
      }
      static_cast<void>(session().exchange(""));
    }
  }
}

TEST(WorkerExchange, TheEndHasADeadlineAfterAFailure) {
  for (const int missing : workers_at_each_place()) {
    OwnExchange exchange(0.1s);
    // It is enough that the first worker knows of the failure, if it is there.
    if (session().rank() == 0 || missing == 0) exchange.note_failure();
    if (session().rank() != missing) {
      const std::string text = error_of(ErrorCode::kDeadlineExceeded, [&] { exchange->wait_for_end(); });
      EXPECT_THAT(text, HasSubstr("end of the session #1: deadline of 0.1 s passed; missing: "));
      EXPECT_THAT(text, HasSubstr(name_of(missing)));
    }
    static_cast<void>(session().exchange(""));
  }
}

TEST(WorkerExchange, TheEndSaysWhoIsWaitedFor) {
  for (const int missing : workers_at_each_place()) {
    if (missing == 0) continue;  // only its neighbour says that
    // Time itself is what is tested. On a busy machine the first worker may look too late.
    std::string said;
    for (int attempt = 0; attempt < 10 && said.empty(); ++attempt) {
      OwnExchange exchange(0.1s);
      static_cast<void>(session().exchange(""));
      ::testing::internal::CaptureStderr();
      if (session().rank() == missing) std::this_thread::sleep_for(500ms);
      EXPECT_NO_THROW(exchange->wait_for_end());
      said = session().exchange(::testing::internal::GetCapturedStderr()).front();
    }
    EXPECT_THAT(said, HasSubstr("end of the session #1: waiting for 0.1 s for " + name_of(missing) + "\n"));
  }
}

TEST(WorkerExchange, TheFirstDeadlineToPassCounts) {
  if (last() < 2) GTEST_SKIP();
  // The one in the middle does not come; the first worker alone would wait for long.
  const int missing = 1;
  OwnExchange exchange(session().rank() == 0 ? 60s : 0.2s);
  const std::string text = error_without(session().rank() == missing, [&] {
    static_cast<void>(exchange->all_gather(RoundKind::kExchange, ""));
  });
  EXPECT_THAT(text, HasSubstr("missing: " + name_of(missing) + ". They"));
  expect_the_same_everywhere(text);
}

TEST(WorkerExchange, TellsTheOthersThatAWorkerHasLeft) {
  for (const int leaver : workers_at_each_place()) {
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
