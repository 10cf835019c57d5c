// Every kind of collective does what its line in the table says, and all code that uses
// the table knows the kind. A failure names the kind that lacks something.
#include <set>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/collective/collective_call.h>

#include "collective/choice/selection.h"
#include "collective/network/cost_model.h"
#include "collective/node/cost_model.h"
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
  const Tensor tensor = Tensor::zeros({blocks, kElements}, DType::kInt32);
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
