// What a server answers, and what its clients make of answers that go wrong.
#include "server/serving/parameter_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include <cohort/remote/local_cluster.h>
#include <cohort/server/parameter_server_strategy.h>

#include "recording_peer.h"
#include "rpc/protocol.h"
#include "server/client/client.h"
#include "server/client/server_variables.h"
#include "server/server_task.h"

namespace cohort::server {
namespace {

using test::RecordingPeer;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

class ParameterServers : public testing::Test {
 protected:
  ParameterServers() { static_cast<void>(store_.create("0:table", {3, 8192}, DType::kFloat32)); }

  void ask(MessageKind kind, const std::vector<std::byte>& body) {
    server_.answer(peer_, {static_cast<std::uint16_t>(kind), 1, body});
  }

  void prepare(const Write& write) {
    ask(MessageKind::kPrepare, to_bytes(CommitMessage{{7, 1}, 0, {write}, {}}, Carriage::kByAddress));
  }

  FinishAnswer finish() {
    Encoder encoder;
    encoder.number(Execution{7, 1});
    ask(MessageKind::kFinish, encoder.take());
    return Decoder(peer_.sent.back().body).number<FinishAnswer>();
  }

  Store store_;
  ParameterServer server_{store_};
  RecordingPeer peer_;
};

TEST_F(ParameterServers, ReadNoValueThatDoesNotFitItsVariable) {
  const Tensor rows = Tensor::from(std::vector<std::int64_t>{0, 1});
  const Write fits{0, WriteKind::kScatterAdd, Tensor::zeros({2, 8192}, DType::kFloat32), rows};
  const Write narrow{0, WriteKind::kScatterAdd, Tensor::zeros({2, 8191}, DType::kFloat32), rows};
  const Write many{0, WriteKind::kScatterAdd, Tensor::zeros({3, 8192}, DType::kFloat32), rows};
  const Write other{0, WriteKind::kAssignSub, Tensor::zeros({3, 8192}, DType::kFloat64)};
  for (const Write& write : {narrow, many, other}) {
    for (const MessageKind kind : {MessageKind::kPrepare, MessageKind::kCommit}) {
      ask(kind, to_bytes(CommitMessage{{7, 1}, 0, {write}, {}}, Carriage::kByAddress));
      EXPECT_EQ(peer_.sent.back().kind, MessageKind::kFailure);
      EXPECT_EQ(rpc::parse_failure(peer_.sent.back().body).code(), ErrorCode::kInvalidArgument);
    }
  }
  EXPECT_EQ(peer_.reads, 0);
  prepare(fits);
  EXPECT_EQ(peer_.sent.back().kind, MessageKind::kReply);
  EXPECT_EQ(peer_.reads, 1);
}

TEST_F(ParameterServers, TakeNoValueFromThoseWhoDoNotWaitForTheAnswer) {
  const Write write{0, WriteKind::kAssign, Tensor::zeros({3, 8192}, DType::kFloat32)};
  peer_.open = false;
  for (const MessageKind kind : {MessageKind::kPrepare, MessageKind::kCommit}) {
    ask(kind, to_bytes(CommitMessage{{7, 1}, 0, {write}, {}}, Carriage::kByAddress));
    EXPECT_EQ(Decoder(peer_.sent.back().body).number<CommitAnswer>(), CommitAnswer::kSendValues);
  }
  EXPECT_EQ(store_.version(0), 0u);
  EXPECT_EQ(finish(), FinishAnswer::kForgotten);
}

TEST_F(ParameterServers, KeepWhatIsPreparedLongerThanItsMessage) {
  const VariableIndex variable = store_.create("1:large", {512, 256}, DType::kFloat32);
  const Write write{variable, WriteKind::kAssign, Tensor::full({512, 256}, DType::kFloat32, 3)};
  const CommitParts parts = to_parts(CommitMessage{{7, 1}, 0, {write}, {}});
  ASSERT_TRUE(parts.end);
  // As memory for messages is aligned.
  const Tensor message = Tensor::uninitialized(
      {static_cast<std::int64_t>(parts.front.size() + parts.end->bytes())}, DType::kUInt8);
  const std::span<std::byte> body = message.raw();
  std::ranges::copy(parts.end->raw(), std::ranges::copy(parts.front, body.begin()).out);
  server_.answer(peer_, {static_cast<std::uint16_t>(MessageKind::kPrepare), 1, body});
  message.fill(255);
  EXPECT_EQ(finish(), FinishAnswer::kMade);
  EXPECT_THAT(store_.value(variable).span<float>(), testing::Each(3));
}

TEST_F(ParameterServers, SayThatAVariableIsNotThere) {
  const Write nowhere{1, WriteKind::kAssignSub, Tensor::zeros({3, 8192}, DType::kFloat32)};
  for (const MessageKind kind : {MessageKind::kPrepare, MessageKind::kCommit}) {
    ask(kind, to_bytes(CommitMessage{{7, 1}, 0, {nowhere}, {}}, Carriage::kByAddress));
    EXPECT_EQ(peer_.sent.back().kind, MessageKind::kNoVariable);
  }
  EXPECT_EQ(peer_.reads, 0);
}

TEST_F(ParameterServers, SayWhetherThereWasSomethingToFinish) {
  EXPECT_EQ(finish(), FinishAnswer::kForgotten);
  prepare({0, WriteKind::kAssign, Tensor::zeros({3, 8192}, DType::kFloat32)});
  EXPECT_EQ(finish(), FinishAnswer::kMade);
  EXPECT_EQ(finish(), FinishAnswer::kMade) << "it was repeated";
  EXPECT_EQ(store_.version(0), 1u);
}

/// A server that has no memory left once it is to finish what it has prepared.
class FullServer final : private TaskPart {
 public:
  explicit FullServer(const remote::TaskPlace& place) : connections_(place, store_.descriptor()) {
    connections_.set_part(*this);
    thread_ = std::thread([this] { connections_.wait_until([this] { return over_.load(); }); });
  }
  ~FullServer() override { thread_.join(); }
  FullServer(const FullServer&) = delete;
  FullServer& operator=(const FullServer&) = delete;

 private:
  void on_message(remote::Peer& peer, const remote::Message& message) override {
    switch (static_cast<MessageKind>(message.kind)) {
      case MessageKind::kFinish:
        return peer.send(static_cast<std::uint16_t>(MessageKind::kFailure), message.number,
                         rpc::to_bytes(Unavailable("memory is short")));
      case MessageKind::kGoodbye:
        peer.send(static_cast<std::uint16_t>(MessageKind::kReply), message.number);
        return over_.store(true);
      default: server_.answer(peer, message);
    }
  }

  Store store_;
  ParameterServer server_{store_};
  std::atomic<bool> over_{false};
  Connections connections_;
  std::thread thread_;
};

/// The job's only server.
class RunningServer {
 public:
  explicit RunningServer(const remote::TaskPlace& place)
      : thread_([&place] { ServerTask(place, 0).run(); }) {}
  ~RunningServer() { thread_.join(); }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

 private:
  std::thread thread_;
};

/// What a worker is told by the chief of another life of the server.
std::vector<std::byte> description_of_lost_variable() {
  const remote::LocalCluster cluster({{"chief", 1}, {"worker", 1}, {"ps", 1}});
  const RunningServer server(cluster.place({"ps", 0}));
  const ParameterServerStrategy worker(cluster.place({"worker", 0}));
  const ParameterServerStrategy chief(cluster.place({"chief", 0}));
  const auto scope = chief.scope();
  const Variable lost({.shape = {3, 2}, .name = "lost"});
  return chief.variables()->describe_from(0);
}

TEST(EmptyServers, AreNamedWithTheirVariablesToWhoComesLater) {
  using Use = std::function<void(const Variable&)>;
  const Tensor rows = Tensor::from(std::vector<std::int64_t>{0});
  const std::vector<std::byte> description = description_of_lost_variable();
  for (const Use& use : {Use([](const Variable& lost) { static_cast<void>(lost.read()); }),
                         Use([&](const Variable& lost) { static_cast<void>(embedding_lookup(lost, rows)); }),
                         Use([](const Variable& lost) {
                           lost.assign_add(Tensor::zeros({3, 2}, DType::kFloat32));
                         })}) {
    const remote::LocalCluster cluster({{"chief", 1}, {"worker", 1}, {"ps", 1}});
    const RunningServer server(cluster.place({"ps", 0}));
    const ParameterServerStrategy chief(cluster.place({"chief", 0}));
    const ParameterServerStrategy worker(cluster.place({"worker", 0}));
    worker.variables()->learn(description, worker.extended());
    const auto lost = worker.variables()->variable(0);
    for (int time = 0; time < 2; ++time) {
      EXPECT_THAT([&] { use(lost); },
                  ThrowsMessage<Unavailable>(AllOf(HasSubstr("ps 0"), HasSubstr("without its memory"),
                                                   HasSubstr("are gone: lost"))));
    }
    worker.variables()->forget_learned();  // who has learned of a variable keeps its strategy
  }
}

TEST(Commits, ThatOneServerCannotFinishNameItAndItsVariables) {
  const remote::LocalCluster cluster({{"chief", 1}, {"worker", 1}, {"ps", 2}});
  const FullServer decides(cluster.place({"ps", 0}));
  const FullServer cannot(cluster.place({"ps", 1}));
  const ParameterServerStrategy strategy(cluster.place({"chief", 0}));
  auto scope = strategy.scope();
  const Variable first({.name = "first"});
  const Variable second({.name = "second"});
  const Variable third({.name = "third"});
  const Variable unnamed{VariableOptions()};
  EXPECT_THAT(
      [&] {
        strategy.variables()->client().write_together([&] {
          first.assign_add(1.0F);
          second.assign_add(1.0F);
        });
      },
      ThrowsMessage<Unavailable>(AllOf(HasSubstr("ps 0 has committed, but ps 1 has not"),
                                       HasSubstr("part, of second:"), Not(HasSubstr("variable 3")),
                                       HasSubstr("memory is short"))));
  EXPECT_EQ(first.read().item<float>(), 1);
  EXPECT_EQ(second.read().item<float>(), 0);
  EXPECT_EQ(strategy.variables()->client().connections().variables_on(1, {}), "second, variable 3");
}

}  // namespace
}  // namespace cohort::server
