// What a server tells its standby and its supervisor, and when those who asked get their answers.
#include "server/standby/replication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <cohort/train/optimizers/sgd.h>

#include "cluster/sockets.h"
#include "recording_peer.h"
#include "rpc/protocol.h"
#include "server/store/store_layout.h"

namespace cohort::server {
namespace {

using remote::SupervisorLine;
using remote::SupervisorWord;
using test::RecordingPeer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kValues = 400'000;  // more than one chunk

class Replications : public testing::Test {
 protected:
  Replications()
      : line_(remote::make_supervisor_line()),
        replication_(
            store_, server_, SupervisorLine(line_.first.get()), {},
            [this](remote::Peer& peer, const remote::Message& message) { server_.answer(peer, message); }),
        server_(store_, &replication_) {
    static_cast<void>(store_.create("0:v", {static_cast<std::int64_t>(kValues)}, DType::kFloat32));
  }

  static std::vector<std::byte> add_one(std::uint64_t number, VariableIndex variable = 0) {
    const Write write{variable, WriteKind::kAssignAdd,
                      Tensor::full({static_cast<std::int64_t>(kValues)}, DType::kFloat32, 1)};
    return to_bytes(CommitMessage{{7, number}, 0, {write}, {}});
  }

  void ask(RecordingPeer& peer, MessageKind kind, std::uint64_t number, const std::vector<std::byte>& body) {
    const remote::Message message{static_cast<std::uint16_t>(kind), number, body};
    if (!replication_.hold(peer, message)) server_.answer(peer, message);
  }

  void follow(RecordingPeer& standby, std::uint32_t version = kStoreVersion) {
    const Following following{version, kByteOrder};
    replication_.on_standby_message(standby, {static_cast<std::uint16_t>(MessageKind::kFollow), 0,
                                              std::as_bytes(std::span(&following, 1))});
  }

  void acknowledge(RecordingPeer& standby, std::uint64_t number) {
    replication_.on_standby_message(standby, {static_cast<std::uint16_t>(MessageKind::kApplied), number, {}});
  }

  void pair() {
    replication_.granted();
    follow(standby_);
    acknowledge(standby_, standby_.take().back().number);
    heard();
  }

  /// What the supervisor was told since the last call.
  std::vector<SupervisorWord> heard() const {
    std::vector<SupervisorWord> words;
    while (const auto word = SupervisorLine(line_.second.get()).receive()) words.push_back(*word);
    return words;
  }

  float value() { return store_.value(0).span<float>()[0]; }

  std::pair<watch::Fd, watch::Fd> line_;
  Store store_;
  Replication replication_;
  ParameterServer server_;
  RecordingPeer client_;
  RecordingPeer standby_{{"standby", 0}};
};

TEST_F(Replications, ChangeNothingBeforeTheSupervisorLetsThem) {
  EXPECT_THAT(heard(), ElementsAre(SupervisorWord::kAlone));
  ask(client_, MessageKind::kCommit, 5, add_one(1));
  EXPECT_EQ(value(), 0.0F);
  EXPECT_THAT(client_.sent, IsEmpty());
  ask(client_, MessageKind::kIdentify, 6, {});
  ASSERT_THAT(client_.take(), SizeIs(1)) << "what changes nothing does not wait";
  replication_.granted();
  EXPECT_EQ(value(), 1.0F);
  ASSERT_THAT(client_.sent, SizeIs(1));
  EXPECT_EQ(client_.sent[0].number, 5u);
  ask(client_, MessageKind::kCommit, 7, add_one(2));
  EXPECT_THAT(client_.sent, SizeIs(2)) << "it is alone";
}

TEST_F(Replications, DoNotWaitForASupervisorForEver) {
  replication_.require_supervisor();  // which may take as long as it wants
  Replication hasty(store_, server_, SupervisorLine(line_.first.get()), Replication::Seconds(0),
                    [](remote::Peer&, const remote::Message&) {});
  EXPECT_THROW(hasty.require_supervisor(), Unavailable);
  hasty.granted();
  hasty.require_supervisor();
}

TEST_F(Replications, HoldChangesBackWhileTheMemoryIsCopied) {
  replication_.granted();
  ask(client_, MessageKind::kCommit, 1, add_one(1));
  heard();
  client_.sent.clear();
  standby_.backlog_bytes = std::size_t{1} << 40;
  follow(standby_);
  EXPECT_THAT(standby_.sent, SizeIs(1)) << "only as much is sent as goes out";
  ask(client_, MessageKind::kCommit, 2, add_one(2));
  EXPECT_EQ(value(), 1.0F);
  standby_.backlog_bytes = 0;
  EXPECT_TRUE(replication_.is_due());
  replication_.go_on();
  const auto sent = standby_.take();
  EXPECT_EQ(sent.back().kind, MessageKind::kCopyEnd);
  EXPECT_THAT(client_.sent, IsEmpty());
  EXPECT_THAT(heard(), IsEmpty());
  acknowledge(standby_, sent.back().number);
  EXPECT_THAT(heard(), ElementsAre(SupervisorWord::kCopied));
  EXPECT_EQ(value(), 2.0F);
  ASSERT_THAT(standby_.sent, SizeIs(1));
  EXPECT_EQ(standby_.sent[0].kind, MessageKind::kCommit);
  EXPECT_THAT(client_.sent, IsEmpty()) << "the standby has not made the change";
  acknowledge(standby_, standby_.sent[0].number);
  EXPECT_THAT(client_.sent, SizeIs(1));
}

TEST_F(Replications, AnswerOnceTheStandbyHasMadeTheChange) {
  pair();
  ask(client_, MessageKind::kCommit, 1, add_one(1));
  ask(client_, MessageKind::kCommit, 2, add_one(2));
  RecordingPeer again;
  ask(again, MessageKind::kCommit, 3, add_one(1));
  ASSERT_THAT(standby_.sent, SizeIs(2)) << "a repetition changes nothing";
  EXPECT_THAT(client_.sent, IsEmpty());
  acknowledge(standby_, standby_.sent[0].number);
  EXPECT_THAT(client_.sent, SizeIs(1));
  EXPECT_THAT(again.sent, IsEmpty()) << "it came after a change that is not acknowledged";
  acknowledge(standby_, standby_.sent[1].number);
  EXPECT_THAT(client_.sent, SizeIs(2));
  EXPECT_THAT(again.sent, SizeIs(1));
}

TEST_F(Replications, DoNotForwardWhatFails) {
  pair();
  ask(client_, MessageKind::kCommit, 1, add_one(1, 17));
  EXPECT_THAT(standby_.sent, IsEmpty());
  ASSERT_THAT(client_.sent, SizeIs(1));
  EXPECT_EQ(client_.sent[0].kind, MessageKind::kNoVariable);
}

TEST_F(Replications, GiveVariablesTheNumbersThatTheyHaveAtTheStandby) {
  Store copy;
  ParameterServer follower(copy);
  static_cast<void>(copy.create("0:v", {static_cast<std::int64_t>(kValues)}, DType::kFloat32));
  pair();
  const Sgd sgd({.learning_rate = 0.1});
  const auto options = std::as_bytes(std::span(&sgd.options(), 1));
  const Write step{.variable = 0,
                   .kind = WriteKind::kOptimize,
                   .value = Tensor::full({static_cast<std::int64_t>(kValues)}, DType::kFloat32, 1),
                   .optimizer = {std::string(Sgd::kName), {options.begin(), options.end()}}};
  Encoder reading;  // with a step that is not committed, nor told to the standby
  reading.number(VariableIndex{0});
  reading.number(std::size_t{1});
  encode(reading, step);
  ask(client_, MessageKind::kRead, 1, reading.take());
  Write wrong = step;
  wrong.variable = 17;
  ask(client_, MessageKind::kCommit, 2, to_bytes(CommitMessage{{7, 1}, 0, {step, wrong}, {}}));
  EXPECT_THAT(standby_.sent, IsEmpty());
  Encoder creation;
  creation.number(std::uint64_t{1});
  creation.text("counter");
  creation.number(DType::kInt64);
  creation.shape({});
  creation.number(true);
  creation.tensor(Tensor::scalar(std::int64_t{0}));
  ask(client_, MessageKind::kCreate, 3, creation.take());
  ask(client_, MessageKind::kCommit, 4, to_bytes(CommitMessage{{7, 2}, 0, {step}, {}}));
  for (const RecordingPeer::Sent& sent : standby_.take())  // answers are sent to it, too
    follower.answer(standby_, {static_cast<std::uint16_t>(sent.kind), sent.number, sent.body});
  ASSERT_EQ(copy.size(), store_.size());
  for (VariableIndex variable = 0; variable < store_.size(); ++variable)
    EXPECT_EQ(copy.name(variable), store_.name(variable));
}

TEST_F(Replications, SendValuesThatLieInTheMemoryOfTheirSender) {
  pair();
  const Write write{0, WriteKind::kAssign,
                    Tensor::full({static_cast<std::int64_t>(kValues)}, DType::kFloat32, 1)};
  ask(client_, MessageKind::kCommit, 1,
      to_bytes(CommitMessage{{7, 1}, 0, {write}, {}}, Carriage::kByAddress));
  EXPECT_EQ(client_.reads, 1) << "the copy is of what was applied";
  ASSERT_THAT(standby_.sent, SizeIs(1));
  const SenderHeap none(-1);
  const CommitMessage forwarded = parse_commit(standby_.sent[0].body, {standby_, none});
  EXPECT_FALSE(forwarded.writes[0].elsewhere.has_value());
  EXPECT_TRUE(std::ranges::equal(forwarded.writes[0].value.raw(), store_.value(0).raw()));
}

TEST_F(Replications, AskAgainWhenTheStandbyIsLost) {
  pair();
  ask(client_, MessageKind::kCommit, 1, add_one(1));
  replication_.on_lost(standby_);
  EXPECT_THAT(heard(), ElementsAre(SupervisorWord::kAlone));
  ask(client_, MessageKind::kCommit, 2, add_one(2));
  EXPECT_THAT(client_.sent, IsEmpty()) << "it may have taken over";
  EXPECT_EQ(value(), 1.0F);
  EXPECT_FALSE(replication_.is_settled());
  replication_.granted();
  EXPECT_THAT(client_.sent, SizeIs(2));
  EXPECT_EQ(value(), 2.0F);
  EXPECT_TRUE(replication_.is_settled());
}

TEST_F(Replications, GoOnAloneWhenTheStandbyIsLostWithinTheCopy) {
  replication_.granted();
  standby_.backlog_bytes = std::size_t{1} << 40;
  follow(standby_);
  heard();
  ask(client_, MessageKind::kCommit, 1, add_one(1));
  replication_.on_lost(standby_);
  EXPECT_THAT(heard(), IsEmpty()) << "its supervisor knows that the copy is not complete";
  EXPECT_THAT(client_.sent, SizeIs(1));
}

TEST_F(Replications, CopyAnewForAStandbyThatComesBack) {
  pair();
  ask(client_, MessageKind::kCommit, 1, add_one(1));
  RecordingPeer next({"standby", 0});
  follow(next);
  EXPECT_THAT(heard(), ElementsAre(SupervisorWord::kAlone));
  EXPECT_THAT(next.sent, IsEmpty());
  acknowledge(standby_, 1000);  // from before
  EXPECT_THAT(client_.sent, IsEmpty());
  replication_.granted();
  EXPECT_THAT(client_.sent, SizeIs(1));
  ASSERT_FALSE(next.sent.empty());
  EXPECT_EQ(next.sent.front().kind, MessageKind::kCopyBegin);
}

TEST_F(Replications, CopyWhatIsPrepared) {
  replication_.granted();
  ask(client_, MessageKind::kPrepare, 1, add_one(1));
  follow(standby_);
  EXPECT_EQ(std::ranges::count(standby_.sent, MessageKind::kCopyPrepared, &RecordingPeer::Sent::kind), 1);
}

TEST_F(Replications, AnswerNobodyOnceTheStandbyHasTakenOver) {
  pair();
  ask(client_, MessageKind::kCommit, 1, add_one(1));
  EXPECT_THROW(
      replication_.on_standby_message(standby_, {static_cast<std::uint16_t>(MessageKind::kTookOver), 0, {}}),
      Aborted);
  EXPECT_THAT(client_.sent, IsEmpty());
}

TEST_F(Replications, RefuseAStandbyWithAnotherStore) {
  replication_.granted();
  follow(standby_, kStoreVersion + 1);
  ASSERT_THAT(standby_.sent, SizeIs(1));
  EXPECT_EQ(standby_.sent[0].kind, MessageKind::kFailure);
  EXPECT_THAT(rpc::parse_failure(standby_.sent[0].body).what(), HasSubstr("one version of Cohort"));
  ask(client_, MessageKind::kCommit, 1, add_one(1));
  EXPECT_THAT(client_.sent, SizeIs(1));
}

TEST_F(Replications, ForgetWhoIsLost) {
  ask(client_, MessageKind::kCommit, 1, add_one(1));
  replication_.on_lost(client_);
  replication_.granted();
  EXPECT_EQ(value(), 0.0F);
  EXPECT_THAT(client_.sent, IsEmpty());
}

}  // namespace
}  // namespace cohort::server
