// Every kind of collective does what its line in the table says, and all code that uses
// the table knows the kind. A failure names the kind that lacks something.

#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/collective/call_purpose.h>
#include <cohort/collective/collective_call.h>
#include <cohort/collective/reduction.h>
#include <cohort/device/tensor.h>

#include "collective/choice/selection.h"
#include "collective/network/cost_model.h"
#include "collective/node/execute.h"
#include "members.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

using Extent = CollectiveTraits::Extent;
using Pattern = CollectiveTraits::Pattern;

constexpr int kMembers = 3;
constexpr int kRoot = 1;
constexpr std::int64_t kElements = 5;  // of a block

/// The element at `index` of block `block` of the contribution of `member`.
std::int32_t mark(int member, int block, std::int64_t index) {
  return (member + 1) * 10'000 + block * 100 + static_cast<std::int32_t>(index);
}

int blocks_in(Extent extent) {
  switch (extent) {
    case Extent::kNothing: return 0;
    case Extent::kOneBlock: return 1;
    case Extent::kAllBlocks: return kMembers;
  }
  return 0;
}

Tensor input_of(const CollectiveTraits& traits, int member) {
  const int blocks = blocks_in(traits.input);
  Tensor tensor = Tensor::zeros({blocks, kElements}, DType::kInt32);
  for (int block = 0; block < blocks; ++block) {
    for (std::int64_t i = 0; i < kElements; ++i)
      tensor.span<std::int32_t>()[static_cast<std::size_t>(block * kElements + i)] = mark(member, block, i);
  }
  return tensor;
}

/// What `member` must find in block `block` of its output.
std::int32_t expected(const CollectiveTraits& traits, int member, int block, std::int64_t index) {
  const int taken = traits.input == Extent::kAllBlocks ? member : 0;  // of the others' contributions
  if (traits.reduces) {
    std::int32_t sum = 0;
    for (int other = 0; other < kMembers; ++other) sum += mark(other, taken, index);
    return sum;
  }
  if (traits.pattern == Pattern::kFromRoot) return mark(kRoot, taken, index);
  return mark(block, taken, index);
}

/// Makes a call of the kind; false if members have no function for it.
bool make(Communicator& communicator, CollectiveKind kind, const Tensor& input, const Tensor& output) {
  switch (kind) {
    case CollectiveKind::kAllReduce: communicator.all_reduce(input, output, ReduceOp::kSum); return true;
    case CollectiveKind::kReduce: communicator.reduce(input, output, ReduceOp::kSum, kRoot); return true;
    case CollectiveKind::kBroadcast:
      if (communicator.rank() == kRoot) std::copy_n(input.data(), input.bytes(), output.data());
      communicator.broadcast(output, kRoot);
      return true;
    case CollectiveKind::kAllGather: communicator.all_gather(input, output); return true;
    case CollectiveKind::kReduceScatter:
      communicator.reduce_scatter(input, output, ReduceOp::kSum);
      return true;
    case CollectiveKind::kAllToAll: communicator.all_to_all(input, output); return true;
    case CollectiveKind::kGather: communicator.gather(input, output, kRoot); return true;
    case CollectiveKind::kScatter: communicator.scatter(input, output, kRoot); return true;
    case CollectiveKind::kBarrier: communicator.barrier(); return true;
    case CollectiveKind::kSplit:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: return false;
  }
  return false;
}

TEST(CollectiveKinds, DoWhatTheTableSays) {
  for (const CollectiveTraits& traits : kCollectives) {
    testing::for_each_member(kMembers, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      const int blocks = blocks_in(traits.output);
      const Tensor output = Tensor::zeros({blocks, kElements}, DType::kInt32);
      if (!make(communicator, traits.kind, input_of(traits, rank), output)) return;
      if (traits.pattern == Pattern::kToRoot && rank != kRoot) return;
      for (int block = 0; block < blocks; ++block) {
        for (std::int64_t i = 0; i < kElements; ++i) {
          ASSERT_EQ(output.span<std::int32_t>()[static_cast<std::size_t>(block * kElements + i)],
                    expected(traits, rank, block, i))
              << traits.name << " at member " << rank << ", block " << block << ", element " << i;
        }
      }
    });
  }
}

TEST(CollectiveKinds, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const CollectiveTraits& traits : kCollectives) {
    EXPECT_FALSE(traits.name.empty()) << "number " << static_cast<int>(traits.kind);
    EXPECT_TRUE(names.insert(traits.name).second) << traits.name;
  }
}

TEST(CollectiveKinds, SayInMessagesWhatMembersMustAgreeOn) {
  for (const CollectiveTraits& traits : kCollectives) {
    CollectiveCall call;
    call.kind = traits.kind;
    call.op = ReduceOp::kMax;
    call.root = 2;
    const std::string text = describe(call);
    EXPECT_THAT(text, HasSubstr(std::string(traits.name) + "(")) << traits.name;
    EXPECT_EQ(text.find(", max") != std::string::npos, traits.reduces) << text;
    EXPECT_EQ(text.find(", root 2") != std::string::npos, traits.has_root()) << text;
    EXPECT_EQ(text.find(" member 2, tag 0") != std::string::npos, traits.is_message()) << text;
  }
}

TEST(CollectiveKinds, HaveACostAndAChoiceWhereTheyHaveAlgorithms) {
  for (const CollectiveTraits& traits : kCollectives) {
    if (!has_algorithms(traits.kind)) continue;
    const CallShape shape{
        .kind = traits.kind, .elements = 1 << 20, .bytes = 1 << 22, .members = 8, .nodes = 4};
    EXPECT_GT(node::built_in_seconds(shape, node::kNodeConstants), 0) << traits.name;
    EXPECT_GT(network::built_in_seconds(shape, network::kBuiltInConstants), 0) << traits.name;
    EXPECT_NO_THROW(Selection(std::string(traits.name) + "=pieces", {})) << traits.name;
  }
}

}  // namespace
}  // namespace cohort

namespace cohort::testing {
namespace {

// What a call is for, as it reaches other members.

using ::testing::HasSubstr;
using ::testing::Not;

CallWords assigns(const std::string& name) {
  return {Caller::kReplica, "cpu:1", {"assigns " + name, "variable number 3"}};
}

TEST(CallWords, ReachOthersAsALine) {
  const CallWords words = from_line(to_line(assigns("w")));
  EXPECT_EQ(words.caller, Caller::kReplica);
  EXPECT_EQ(words.device, "cpu:1");
  EXPECT_EQ(words.purpose.action, "assigns w");
  EXPECT_EQ(words.purpose.details, "variable number 3");
  EXPECT_EQ(to_line({}), "");
  EXPECT_EQ(from_line("").purpose.action, "");
}

// Names come from the program: lines follow one another in what leaders tell each other.
TEST(CallWords, StayOneLineWhateverNamesHold) {
  const std::string line = to_line(assigns("w\n99999999 x\x1fy"));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  EXPECT_EQ(from_line(line).purpose.action, "assigns w 99999999 x y");
  EXPECT_EQ(from_line(line).purpose.details, "variable number 3");
}

TEST(CallWords, AreShortenedWhereTheyAreLong) {
  EXPECT_LT(to_line(assigns(std::string(10'000, 'w'))).size(), 400u);
}

TEST(APurpose, IsPutInWordsOnceForAllCallsThatOutliveIt) {
  int times = 0;
  const PurposeOf purpose(7, Caller::kWorker, [&] {
    ++times;
    return PurposeWords{"reads v"};
  });
  EXPECT_EQ(times, 0);
  const auto spoken = purpose.spoken();
  EXPECT_EQ(purpose.spoken(), spoken);
  EXPECT_EQ(spoken->spoken(), spoken);
  EXPECT_EQ(times, 1);
  EXPECT_EQ(spoken->fingerprint(), 7u);
  EXPECT_EQ(spoken->words().purpose.action, "reads v");
}

}  // namespace
}  // namespace cohort::testing

namespace cohort {
namespace {

Tensor reduce(ReduceOp op, const std::vector<Tensor>& inputs) {
  Tensor result = Tensor::uninitialized(inputs.front().shape(), inputs.front().dtype());
  std::vector<const std::byte*> pointers;
  pointers.reserve(inputs.size());
  for (const Tensor& input : inputs) pointers.push_back(input.data());
  reduce_elements(result.dtype(), op, pointers, result.data(), result.elements());
  return result;
}

TEST(Reduction, CombinesAllInputsInOnePass) {
  const Tensor sum =
      reduce(ReduceOp::kSum, {Tensor::from({1.0, 2.0}), Tensor::from({3.0, 4.0}), Tensor::from({5.0, 7.0})});
  EXPECT_THAT(sum.span<double>(), ::testing::ElementsAre(9.0, 13.0));
}

TEST(Reduction, WrapsIntegersInsteadOfOverflowing) {
  const auto largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(
      reduce(ReduceOp::kSum, {Tensor::from({largest}), Tensor::from<std::int64_t>({1})}).item<std::int64_t>(),
      std::numeric_limits<std::int64_t>::min());
  const Tensor shorts = Tensor::from<std::uint16_t>({65535});
  EXPECT_EQ(reduce(ReduceOp::kProd, {shorts, shorts}).item<int>(), 1);
}

TEST(Reduction, RoundsSixteenBitMeansOnce) {
  const std::vector<Tensor> inputs(3, Tensor::from({float16(1.0f)}));
  EXPECT_EQ(static_cast<float>(reduce(ReduceOp::kMean, inputs).span<float16>()[0]), 1.0f);
}

TEST(ReduceOps, AreReadInAnyCase) {
  EXPECT_EQ(parse_reduce_op("SUM"), ReduceOp::kSum);
  EXPECT_EQ(parse_reduce_op("Mean"), ReduceOp::kMean);
  EXPECT_THROW(static_cast<void>(parse_reduce_op("avg")), InvalidArgument);
}

TEST(Mismatch, IsDecidedByMajority) {
  CollectiveCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.dtype = DType::kFloat32;
  call.elements = 1000;
  std::vector<MemberCall> calls;
  calls.reserve(8);
  for (int member = 0; member < 8; ++member) calls.push_back({member, signature(call, 4183)});
  std::vector<MemberInfo> members(8, MemberInfo{2, "n1"});
  int odd = -1;
  EXPECT_FALSE(explain_mismatch(calls, members, odd));
  call.elements = 1024;
  calls[5].signature = signature(call, 4183);
  const auto text = explain_mismatch(calls, members, odd);
  ASSERT_TRUE(text);
  EXPECT_EQ(odd, 5);
  EXPECT_THAT(*text,
              ::testing::HasSubstr("all_reduce #4183: members disagree: member 5 (worker 2, host n1) called "
                                   "all_reduce(float32[1024], sum); the other 7 called"));
}

}  // namespace
}  // namespace cohort
