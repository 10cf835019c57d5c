// Collectives in few rounds: along a lane, whose members are tasks of this thread, and whole calls over nodes
// that are pretended.
#include "collective/network/few_rounds.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "collective/choice/tuning_figures.h"
#include "collective/network/cost_model.h"
#include "members.h"

namespace cohort::network {
namespace {

using ::testing::AnyOf;
using testing::for_each_member;
using testing::Layout;
using testing::Switchboard;
using testing::ThreadTransport;
using Values = std::vector<std::int32_t>;

constexpr int kTag = 1;

std::byte* bytes_of(Values& values) { return reinterpret_cast<std::byte*>(values.data()); }

/// Counts messages, which are short so that data goes in several.
class CountingTransport final : public ThreadTransport {
 public:
  using ThreadTransport::ThreadTransport;
  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override {
    ++messages;
    EXPECT_LE(data.size(), message_bytes());
    return ThreadTransport::send(to, data);
  }
  [[nodiscard]] std::size_t message_bytes() const noexcept override { return longest; }

  std::size_t messages = 0;
  std::size_t longest = 4096;
};

/// A lane whose nodes have 1 + k % 3 members each, of which each has a block of `elements`.
class Nodes {
 public:
  Nodes(int size, std::size_t elements)
      : board_(std::make_shared<Switchboard>(size)), ranks_(static_cast<std::size_t>(size)) {
    std::iota(ranks_.begin(), ranks_.end(), 0);
    for (const int node : ranks_) {
      members_.push_back(1 + node % 3);
      transports_.push_back(std::make_unique<CountingTransport>(board_, node));
      wires_.push_back(std::make_unique<Wire>(*transports_.back()));
    }
    blocks = std::make_unique<NodeBlocks>(members_, elements * sizeof(std::int32_t));
    elements_ = elements;
  }

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] Lane lane(int node) { return {*wires_[static_cast<std::size_t>(node)], ranks_, node}; }
  [[nodiscard]] int node(int first, int steps) const { return ((first + steps) % size() + size()) % size(); }
  [[nodiscard]] std::size_t elements(int node) const {
    return static_cast<std::size_t>(members_[static_cast<std::size_t>(node)]) * elements_;
  }
  [[nodiscard]] std::size_t elements_between(int node, int other) const {
    return elements(node) * static_cast<std::size_t>(members_[static_cast<std::size_t>(other)]);
  }
  [[nodiscard]] std::size_t all_elements() const {
    std::size_t all = 0;
    for (const int node : ranks_) all += elements(node);
    return all;
  }
  void drive(const std::function<Task<>(int node)>& make) {
    std::vector<Task<>> tasks;
    for (const int node : ranks_) tasks.push_back(make(node));
    for (std::size_t done = 0; done < tasks.size();) {
      done = 0;
      for (Task<>& task : tasks) {
        if (!task.done() && task.ready()) task.resume();
        if (task.done()) ++done;
      }
    }
  }
  [[nodiscard]] std::size_t most_messages() const {
    std::size_t most = 0;
    for (const auto& transport : transports_) most = std::max(most, transport->messages);
    return most;
  }
  [[nodiscard]] std::size_t rounds() const { return std::bit_width(static_cast<unsigned>(size() - 1)); }

  std::unique_ptr<NodeBlocks> blocks;

 private:
  std::shared_ptr<Switchboard> board_;
  std::vector<int> ranks_;
  std::vector<int> members_;
  std::size_t elements_ = 0;
  std::vector<std::unique_ptr<CountingTransport>> transports_;
  std::vector<std::unique_ptr<Wire>> wires_;
};

/// What a node has for another: elements that tell both, and their place.
void append(Values& values, int from, int to, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i)
    values.push_back(static_cast<std::int32_t>(i) + 10'000 * from + 1'000'000 * to);
}

class FewRounds : public ::testing::TestWithParam<int> {};
constexpr std::size_t kSizes[] = {0, 1, 7, 1500};

TEST_P(FewRounds, BruckAllGather) {
  for (const std::size_t elements : kSizes) {
    Nodes nodes(GetParam(), elements);
    std::vector<Values> data(static_cast<std::size_t>(nodes.size()), Values(nodes.all_elements()));
    nodes.drive([&](int node) {
      Values own;
      append(own, node, 0, nodes.elements(node));
      Values& values = data[static_cast<std::size_t>(node)];
      std::ranges::copy(own, values.begin());
      return bruck_all_gather(nodes.lane(node), *nodes.blocks, bytes_of(values), kTag);
    });
    for (int node = 0; node < nodes.size(); ++node) {
      Values expected;
      for (int step = 0; step < nodes.size(); ++step)
        append(expected, nodes.node(node, step), 0, nodes.elements(nodes.node(node, step)));
      EXPECT_EQ(data[static_cast<std::size_t>(node)], expected) << elements << " elements at " << node;
    }
    if (elements == 1) {
      EXPECT_EQ(nodes.most_messages(), nodes.rounds());
    }
  }
}

TEST_P(FewRounds, BruckReduceScatter) {
  for (const std::size_t elements : kSizes) {
    Nodes nodes(GetParam(), elements);
    std::vector<Values> data(static_cast<std::size_t>(nodes.size()));
    nodes.drive([&](int node) {
      Values& values = data[static_cast<std::size_t>(node)];
      for (int step = 0; step < nodes.size(); ++step)
        append(values, node, nodes.node(node, step), nodes.elements(nodes.node(node, step)));
      return bruck_reduce_scatter(nodes.lane(node), *nodes.blocks, bytes_of(values),
                                  {DType::kInt32, ReduceOp::kSum}, kTag);
    });
    for (int node = 0; node < nodes.size(); ++node) {
      Values expected(nodes.elements(node));
      for (int from = 0; from < nodes.size(); ++from) {
        Values brought;
        append(brought, from, node, expected.size());
        std::ranges::transform(expected, brought, expected.begin(), std::plus<>());
      }
      Values& values = data[static_cast<std::size_t>(node)];
      values.resize(expected.size());
      EXPECT_EQ(values, expected) << elements << " elements at " << node;
    }
    if (elements == 1) {
      EXPECT_EQ(nodes.most_messages(), nodes.rounds());
    }
  }
}

TEST_P(FewRounds, BruckAllToAll) {
  for (const std::size_t elements : kSizes) {
    Nodes nodes(GetParam(), elements);
    std::vector<Values> data(static_cast<std::size_t>(nodes.size()));
    std::vector<Values> results(data.size());
    nodes.drive([&](int node) {
      Values& values = data[static_cast<std::size_t>(node)];
      for (int step = 0; step < nodes.size(); ++step) {
        const int to = nodes.node(node, step);
        append(values, node, to, nodes.elements_between(node, to));
      }
      Values& result = results[static_cast<std::size_t>(node)];
      result.resize(values.size());
      return bruck_all_to_all(nodes.lane(node), *nodes.blocks, bytes_of(values), bytes_of(result), kTag);
    });
    for (int node = 0; node < nodes.size(); ++node) {
      Values expected;
      for (int step = 0; step < nodes.size(); ++step) {
        const int from = nodes.node(node, -step);
        append(expected, from, node, nodes.elements_between(from, node));
      }
      EXPECT_EQ(results[static_cast<std::size_t>(node)], expected) << elements << " elements at " << node;
    }
    if (elements == 1) {
      EXPECT_EQ(nodes.most_messages(), nodes.rounds());
    }
  }
}

TEST_P(FewRounds, BinomialGatherAndScatter) {
  for (const std::size_t elements : kSizes) {
    for (int root = 0; root < GetParam(); ++root) {
      Nodes nodes(GetParam(), elements);
      Values all;
      for (int step = 0; step < nodes.size(); ++step) {
        const int node = nodes.node(root, step);
        append(all, node, 0, nodes.elements(node));
      }
      std::vector<Values> data(static_cast<std::size_t>(nodes.size()));
      const auto room = [&](int node) {
        return binomial_room(nodes.lane(node), *nodes.blocks, root) / sizeof(std::int32_t);
      };
      nodes.drive([&](int node) {
        Values& values = data[static_cast<std::size_t>(node)];
        append(values, node, 0, nodes.elements(node));
        values.resize(room(node));
        return binomial_gather(nodes.lane(node), *nodes.blocks, root, bytes_of(values), kTag);
      });
      EXPECT_EQ(data[static_cast<std::size_t>(root)], all) << elements << " elements to " << root;
      EXPECT_LE(nodes.most_messages(), elements == 1 ? 1 : ~std::size_t{0});
      nodes.drive([&](int node) {
        Values& values = data[static_cast<std::size_t>(node)];
        values = node == root ? all : Values(room(node));
        return binomial_scatter(nodes.lane(node), *nodes.blocks, root, bytes_of(values), kTag);
      });
      for (int node = 0; node < nodes.size(); ++node) {
        Values expected;
        append(expected, node, 0, nodes.elements(node));
        Values& values = data[static_cast<std::size_t>(node)];
        values.resize(expected.size());
        EXPECT_EQ(values, expected) << elements << " elements from " << root << " at " << node;
      }
      if (elements == 1) {
        EXPECT_LE(nodes.most_messages(), nodes.rounds() + 1);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, FewRounds, ::testing::Values(1, 2, 3, 4, 5, 7, 8, 16));

// ---- whole calls

struct Case {
  Layout layout;
  bool uneven;  ///< a group of which the nodes have different numbers of members, in another order
};

class FewRoundsCalls : public ::testing::TestWithParam<Case> {};

std::int32_t value_of(int from, int to, std::int64_t index) {
  return static_cast<std::int32_t>(index + 1000 * (from + 1) + 100'000 * (to + 1));
}

/// Of a network with long latencies, on which few rounds pay with few nodes.
TuningTable slow_network() {
  TuningTable table;
  table.set(Figure::kLatency, 20 * kBuiltInConstants.latency_seconds, TuningSource::kProbed);
  return table;
}

/// What the cost model chooses there.
std::string expected_algorithm(CollectiveKind kind, std::size_t block_bytes, int members, int nodes) {
  const CostConstants constants = constants_of(slow_network());
  const bool brings_all = traits_of(kind).input == CollectiveTraits::Extent::kAllBlocks;
  const std::size_t brought = brings_all ? block_bytes * static_cast<std::size_t>(members) : block_bytes;
  if (fits_roll_call(brought, members, nodes, constants)) return "roll_call";
  if (!prefers_few_rounds(kind, block_bytes, members, nodes, constants)) return "two_level_pairwise";
  const bool has_root = kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
  return has_root ? "two_level_binomial_tree" : "two_level_bruck";
}

TEST(FewRoundsChoice, IsForShortCallsOfManyNodes) {
  const auto prefers = [](CollectiveKind kind, std::size_t bytes, int nodes) {
    return prefers_few_rounds(kind, bytes, 2 * nodes, nodes, kBuiltInConstants);
  };
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kGather, CollectiveKind::kScatter,
        CollectiveKind::kAllToAll, CollectiveKind::kReduceScatter}) {
    EXPECT_FALSE(prefers(kind, 1, 2)) << "one round either way";
    EXPECT_FALSE(prefers(kind, 1, 4)) << "three messages at once against two rounds";
    EXPECT_TRUE(prefers(kind, 16, 16));
    EXPECT_TRUE(prefers(kind, 64, 64));
    EXPECT_FALSE(prefers(kind, std::size_t{1} << 20, 64)) << "data that is long passes no single member";
    // The calls below are of all three ways.
    EXPECT_EQ(expected_algorithm(kind, 0, 32, 16), "roll_call");
    EXPECT_THAT(expected_algorithm(kind, 320, 32, 16), AnyOf("two_level_bruck", "two_level_binomial_tree"));
    EXPECT_EQ(expected_algorithm(kind, std::size_t{4} << 20, 32, 16), "two_level_pairwise");
  }
  // Where each member has a block for each, more members of a node mean more messages of each.
  const auto prefers_with = [](CollectiveKind kind, int members_of_node) {
    return prefers_few_rounds(kind, 1, 4 * members_of_node, 4, kBuiltInConstants);
  };
  EXPECT_TRUE(prefers_with(CollectiveKind::kAllToAll, 4));
  EXPECT_TRUE(prefers_with(CollectiveKind::kScatter, 4));
  EXPECT_FALSE(prefers_with(CollectiveKind::kAllGather, 4)) << "one member receives for its node";
  EXPECT_TRUE(prefers(CollectiveKind::kAllGather, 1024, 1024));
  EXPECT_FALSE(prefers(CollectiveKind::kAllReduce, 64, 64));
}

void check_calls(Communicator& communicator, int nodes, std::int64_t elements) {
  const int size = communicator.size();
  const int rank = communicator.rank();
  const auto expect_algorithm = [&](CollectiveKind kind) {
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(std::int32_t);
    EXPECT_EQ(communicator.last_algorithm(), expected_algorithm(kind, bytes, size, nodes))
        << to_string(kind) << " of " << elements << " elements";
  };
  const auto is = [&](const Tensor& tensor, const std::function<std::int32_t(std::int64_t)>& value) {
    const auto values = tensor.span<std::int32_t>();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != value(static_cast<std::int64_t>(i))) return false;
    return true;
  };
  const auto filled = [&](std::int64_t count, const std::function<std::int32_t(std::int64_t)>& value) {
    Tensor tensor = Tensor::uninitialized({count}, DType::kInt32);
    for (std::int64_t i = 0; i < count; ++i)
      tensor.span<std::int32_t>()[static_cast<std::size_t>(i)] = value(i);
    return tensor;
  };
  const auto from_all_to = [&](int to) {
    return [=](std::int64_t i) { return value_of(static_cast<int>(i / elements), to, i % elements); };
  };
  const auto to_all_from = [&](int from) {
    return [=](std::int64_t i) { return value_of(from, static_cast<int>(i / elements), i % elements); };
  };
  const Tensor block = filled(elements, [&](std::int64_t i) { return value_of(rank, 0, i); });
  const Tensor all = Tensor::uninitialized({elements * size}, DType::kInt32);

  communicator.all_gather(block, all);
  EXPECT_TRUE(is(all, from_all_to(0)));
  expect_algorithm(CollectiveKind::kAllGather);

  const Tensor whole = filled(elements * size, to_all_from(rank));
  communicator.all_to_all(whole, all);
  EXPECT_TRUE(is(all, from_all_to(rank)));
  expect_algorithm(CollectiveKind::kAllToAll);

  const Tensor sum = Tensor::uninitialized({elements}, DType::kInt32);
  communicator.reduce_scatter(whole, sum, ReduceOp::kSum);
  EXPECT_TRUE(is(sum, [&](std::int64_t i) {
    std::int32_t expected = 0;
    for (int from = 0; from < size; ++from) expected += value_of(from, rank, i);
    return expected;
  }));
  expect_algorithm(CollectiveKind::kReduceScatter);

  for (const int root : {0, 1, size - 1}) {
    all.fill(0);
    communicator.gather(block, all, root);
    if (rank == root) {
      EXPECT_TRUE(is(all, from_all_to(0)));
    }
    expect_algorithm(CollectiveKind::kGather);
    const Tensor scattered = Tensor::uninitialized({elements}, DType::kInt32);
    communicator.scatter(filled(elements * size, to_all_from(root)), scattered, root);
    EXPECT_TRUE(is(scattered, [&](std::int64_t i) { return value_of(root, rank, i); }));
    expect_algorithm(CollectiveKind::kScatter);
  }
}

void check_mean(Communicator& communicator) {
  const int size = communicator.size();
  const Tensor whole = Tensor::full({64 * std::int64_t{size}}, DType::kFloat32, communicator.rank());
  const Tensor own = Tensor::uninitialized({64}, DType::kFloat32);
  communicator.reduce_scatter(whole, own, ReduceOp::kMean);
  for (const float value : own.span<float>()) EXPECT_EQ(value, static_cast<float>(size - 1) / 2);
}

TEST_P(FewRoundsCalls, GiveTheResultsOfPairwiseOnes) {
  const Layout layout = GetParam().layout;
  const bool uneven = GetParam().uneven;
  const int members = layout.nodes * layout.members;
  for (const int of : {members, members - 1})  // in place of a probe
    TuningStore::of_this_process().keep(shape_of_network(layout.nodes, of), slow_network());
  const auto check = [nodes = layout.nodes](Communicator& communicator) {
    for (const std::int64_t elements : {0, 80, 512, 20'000}) check_calls(communicator, nodes, elements);
    check_mean(communicator);
  };
  for_each_member(layout, [&](Communicator& world) {
    if (!uneven) return check(world);
    // All but one member of the second node, from the last to the first.
    const bool left_out = world.rank() == layout.members;
    const auto group = world.split(left_out ? std::nullopt : std::optional<int>(0), -world.rank());
    if (group != nullptr) check(*group);
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, FewRoundsCalls,
                         ::testing::Values(Case{{2, 2}, false}, Case{{3, 3}, false}, Case{{4, 3}, true},
                                           Case{{5, 2}, false}, Case{{7, 2}, true}, Case{{8, 2}, false},
                                           Case{{16, 2}, false}));

}  // namespace
}  // namespace cohort::network
