#include "communicator_contracts.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <stdexcept>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thrown.h"

namespace cohort::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Choice = std::optional<int>;

/// What each member passes to `split`.
struct Division {
  const char* name;
  std::vector<Choice> colors;
  std::vector<int> keys;
};

std::vector<Division> divisions_of(int members) {
  const auto make = [members](const char* name, auto color, auto key) {
    Division division{name, {}, {}};
    for (int rank = 0; rank < members; ++rank) {
      division.colors.push_back(color(rank));
      division.keys.push_back(key(rank));
    }
    return division;
  };
  const auto same_key = [](int) { return 7; };
  const auto reversed = [](int rank) { return -rank; };
  return {make(
              "all", [](int) { return Choice(0); }, same_key),
          make(
              "all, reversed", [](int) { return Choice(-5); }, reversed),
          make(
              "each alone", [](int rank) { return Choice(rank); }, same_key),
          make(
              "odd and even", [](int rank) { return Choice(rank % 2); }, same_key),
          make(
              "odd and even, reversed", [](int rank) { return Choice(rank % 2); }, reversed),
          make(
              "the first and the others", [](int rank) { return Choice(rank == 0 ? 1 : 0); }, reversed),
          make(
              "halves", [=](int rank) { return Choice(2 * rank < members ? 3 : 1'000'000); }, same_key),
          make(
              "without the last", [=](int rank) { return rank == members - 1 ? Choice() : Choice(0); },
              [](int rank) { return rank % 2; })};
}

/// Ranks of the parent, in the order of the group of member `rank`.
std::vector<int> group_of(const Division& division, int rank) {
  std::vector<int> ranks;
  const Choice color = division.colors[static_cast<std::size_t>(rank)];
  for (std::size_t other = 0; other < division.colors.size(); ++other) {
    if (color && division.colors[other] == color) ranks.push_back(static_cast<int>(other));
  }
  std::ranges::stable_sort(ranks, {},
                           [&](int other) { return division.keys[static_cast<std::size_t>(other)]; });
  return ranks;
}

std::unique_ptr<Communicator> split(Communicator& communicator, const Division& division) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  return communicator.split(division.colors[rank], division.keys[rank]);
}

Tensor filled_with(std::int64_t elements, int value) {
  return Tensor::full({elements}, DType::kFloat32, static_cast<double>(value));
}

void expect_sum_of(Communicator& group, const std::vector<int>& ranks, int own, std::int64_t elements) {
  const Tensor tensor = filled_with(elements, own + 1);
  group.all_reduce(tensor, ReduceOp::kSum);
  const int sum = std::accumulate(ranks.begin(), ranks.end(), static_cast<int>(ranks.size()));
  EXPECT_TRUE(bitwise_equal(tensor, filled_with(elements, sum))) << elements << " elements";
}

void expect_order_of(Communicator& group, const std::vector<int>& ranks, int own) {
  const Tensor all = filled_with(group.size(), -1);
  group.all_gather(filled_with(1, own), all);
  const std::vector<float> wanted(ranks.begin(), ranks.end());
  EXPECT_THAT(all.span<float>(), ::testing::ElementsAreArray(wanted));
}

bool is_last_of_group(const Communicator& communicator) {
  return communicator.rank() == communicator.size() - 1;
}

}  // namespace

void check_split(Communicator& communicator) {
  const int own = communicator.rank();
  for (const Division& division : divisions_of(communicator.size())) {
    SCOPED_TRACE(fmt::format("{}, member {} of {}", division.name, own, communicator.size()));
    const std::vector<int> ranks = group_of(division, own);
    const std::unique_ptr<Communicator> group = split(communicator, division);
    ASSERT_EQ(group == nullptr, ranks.empty());
    if (group == nullptr) continue;
    ASSERT_EQ(group->size(), static_cast<int>(ranks.size()));
    EXPECT_EQ(ranks[static_cast<std::size_t>(group->rank())], own);
    for (std::size_t member = 0; member < ranks.size(); ++member) {
      const MemberInfo& info = communicator.members()[static_cast<std::size_t>(ranks[member])];
      EXPECT_EQ(group->members()[member].worker, info.worker);
      EXPECT_EQ(group->members()[member].host, info.host);
    }
    expect_order_of(*group, ranks, own);
    for (const std::int64_t elements : {1, 1'000, 20'000, 500'000})
      expect_sum_of(*group, ranks, own, elements);
    check_data_movement(*group);
    check_messages(*group);
    check_async(*group);
  }
  // The parent is none the worse for it.
  std::vector<int> everyone(static_cast<std::size_t>(communicator.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  expect_sum_of(communicator, everyone, own, 10);
}

namespace {

/// Members that choose alike have the groups that they share in one order.
void check_groups(Communicator& communicator, std::mt19937 choice) {
  const int own = communicator.rank();
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<Communicator>> groups;
    std::vector<std::vector<int>> ranks;
    std::vector<std::size_t> divisions;  // of the groups
    const std::vector<Division> all_divisions = divisions_of(communicator.size());
    for (std::size_t i = 0; i < all_divisions.size(); ++i) {
      if (auto group = split(communicator, all_divisions[i])) {
        ranks.push_back(group_of(all_divisions[i], own));
        groups.push_back(std::move(group));
        divisions.push_back(i);
      }
    }
    // A group of the group of all, and that is reversed.
    const auto again = divisions_of(communicator.size())[4];
    const auto place = static_cast<std::size_t>(groups[1]->rank());
    groups.push_back(groups[1]->split(again.colors[place], again.keys[place]));
    std::vector<int> inner = group_of(again, groups[1]->rank());
    for (int& rank : inner) rank = ranks[1][static_cast<std::size_t>(rank)];
    ranks.push_back(inner);
    divisions.push_back(all_divisions.size());

    struct Started {
      Work work;
      Tensor tensor;
      float wanted;
    };
    std::vector<Started> started;
    std::vector<std::size_t> order(groups.size());
    std::iota(order.begin(), order.end(), 0);
    const auto shuffle = [&] {
      std::vector<std::size_t> places(all_divisions.size() + 1);
      std::iota(places.begin(), places.end(), 0);
      std::ranges::shuffle(places, choice);
      std::ranges::sort(order, {}, [&](std::size_t group) { return places[divisions[group]]; });
    };
    for (const std::int64_t elements : {3, 3'000, 300'000}) {
      shuffle();
      for (const std::size_t index : order) {
        const Tensor tensor = filled_with(elements, own + 1);
        const int sum =
            std::accumulate(ranks[index].begin(), ranks[index].end(), static_cast<int>(ranks[index].size()));
        started.push_back(
            {groups[index]->all_reduce_async(tensor, ReduceOp::kSum), tensor, static_cast<float>(sum)});
      }
    }
    // Some groups go while their calls, and those of others, are in flight.
    shuffle();
    for (const std::size_t index : order) groups[index].reset();
    // Not all communicators move while others are waited for, but all do when they are asked.
    std::vector<const Work*> pending;
    pending.reserve(started.size());
    for (const Started& one : started) pending.push_back(&one.work);
    while (!pending.empty()) std::erase_if(pending, [](const Work* work) { return work->done(); });
    for (Started& one : started) {
      one.work.wait();
      EXPECT_TRUE(bitwise_equal(one.tensor, Tensor::full({one.tensor.shape()[0]}, DType::kFloat32,
                                                         static_cast<double>(one.wanted))));
    }
  }
}

}  // namespace

void check_groups_beside_each_other(Communicator& communicator) {
  check_groups(communicator, std::mt19937(static_cast<unsigned>(communicator.rank())));
}

void check_groups_in_one_order(Communicator& communicator) { check_groups(communicator, std::mt19937(0)); }

void check_split_without_agreement(Communicator& communicator) {
  if (communicator.size() < 3) return;  // two members have no majority
  const int odd = communicator.size() - 1;
  const auto start = std::chrono::steady_clock::now();
  const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
    if (communicator.rank() == odd)
      communicator.barrier();
    else
      static_cast<void>(communicator.split(0));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "not at the deadline";
  EXPECT_THAT(text, HasSubstr(fmt::format("member {} ", odd)));
  EXPECT_THAT(text, HasSubstr("called barrier(); the other"));
  EXPECT_THAT(text, HasSubstr("called split()"));
}

void check_split_without_the_last(Communicator& communicator) {
  if (communicator.size() == 1 || is_last_of_group(communicator)) return;
  const std::string text = message_of(ErrorCode::kDeadlineExceeded,
                                      [&] { static_cast<void>(communicator.split(communicator.rank())); });
  EXPECT_THAT(text, names_missing(communicator.size() - 1));
  EXPECT_THAT(text, HasSubstr("split #0"));
}

void check_errors_stay_in_their_group(Communicator& communicator) {
  const int size = communicator.size();
  if (size < 3) return;
  // The last member is the first of its group.
  const std::unique_ptr<Communicator> others = communicator.split(communicator.rank() > 0 ? 1 : 0);
  const std::unique_ptr<Communicator> group =
      communicator.split(communicator.rank() > 0 ? 1 : 0, -communicator.rank());
  if (communicator.rank() > 0) {
    const std::string text = message_of(ErrorCode::kDeadlineExceeded, [&] {
      if (is_last_of_group(communicator)) throw DeadlineExceeded("the one who stays away");
      group->barrier({.timeout_seconds = short_timeout(size)});
    });
    if (!is_last_of_group(communicator)) {
      EXPECT_THAT(text, HasSubstr("missing: " + describe(0, communicator.members().back())));
      EXPECT_EQ(message_of(ErrorCode::kDeadlineExceeded, [&] { group->barrier(); }), text);
    }
  }
  others->barrier();
  communicator.barrier();
}

void check_stopped_before_waiting(Communicator& communicator, Driver driver,
                                  const std::function<void()>& meet) {
  const int size = communicator.size();
  const int stopped = size - 1;
  const int waiting = size - 2;
  if (size < 3 || communicator.name() != "network") return;
  const std::unique_ptr<Communicator> group = communicator.split(communicator.rank() >= waiting ? 1 : 0);
  const auto name_of = [&](int rank) {
    return describe(rank, communicator.members()[static_cast<std::size_t>(rank)]);
  };
  if (communicator.rank() == waiting) {
    // Longer than the others wait, and ask.
    Work barrier = group->barrier_async({.timeout_seconds = 2});
    if (driver == Driver::kProgressThread) meet();
    EXPECT_THAT(message_of(ErrorCode::kDeadlineExceeded, [&] { barrier.wait(); }), names_missing(1));
    if (driver == Driver::kCaller) meet();
  } else {
    if (communicator.rank() != stopped) {
      const std::string text =
          message_of(ErrorCode::kDeadlineExceeded, [&] { communicator.barrier({.timeout_seconds = 0.25}); });
      EXPECT_THAT(text, HasSubstr("missing: " + name_of(stopped) + ". They are stopped"));
      EXPECT_THAT(text, HasSubstr("Others are missing too, but answer: " + name_of(waiting) + "."));
    }
    meet();
  }
  meet();  // nobody leaves before
}

void check_leaving_a_group(Communicator& communicator) {
  const int size = communicator.size();
  if (size < 3) return;
  const bool in_pair = communicator.rank() >= size - 2;
  try {
    const std::unique_ptr<Communicator> group = communicator.split(in_pair ? 1 : 0);
    for (int i = 0; i < 3; ++i) group->barrier();
    if (is_last_of_group(communicator)) throw std::runtime_error("something else went wrong");
    if (in_pair) {
      group->all_reduce_async(filled_with(200'000, 1), ReduceOp::kSum).wait();
      ADD_FAILURE() << "no error";
    } else {
      for (int i = 0; i < 100; ++i) group->barrier();
    }
  } catch (const Aborted& error) {
    EXPECT_TRUE(in_pair && !is_last_of_group(communicator)) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("left the communicator"));
    EXPECT_EQ(error.origin().member, 1) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(describe(1, communicator.members().back())));
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(is_last_of_group(communicator)) << error.what();
  }
  communicator.barrier();
}

void check_messages_stay_in_their_group(Communicator& communicator, std::int64_t elements) {
  if (communicator.size() < 2) return;
  constexpr int kGroups = 8;  // what is left of one may outlive the call that ends it, and keeps its name
  for (int sent = 1; sent <= kGroups; ++sent) {
    const std::unique_ptr<Communicator> group = communicator.split(0);
    const bool forgets = sent == 1;
    if (group->rank() == 0) group->send(filled_with(elements, sent), group->size() - 1);
    if (is_last_of_group(*group) && !forgets) {
      const Tensor received = filled_with(elements, 0);
      group->receive(received, 0);
      EXPECT_TRUE(bitwise_equal(received, filled_with(elements, sent)));
    }
    group->barrier();
  }
}

}  // namespace cohort::testing
