#include "split_exchange.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <cohort/base/error.h>

namespace cohort {
namespace {

constexpr int kBits = 64;

std::size_t word_of(int number) { return static_cast<std::size_t>(number) / kBits; }
std::uint64_t bit_of(int number) { return std::uint64_t{1} << (number % kBits); }

}  // namespace

ContextIdSet::ContextIdSet(std::int64_t end) {
  for (int number = 1; number < std::min<std::int64_t>(end, kIds); ++number) give_back(number);
}

void ContextIdSet::combine(const ContextIdSet& other) {
  for (std::size_t word = 0; word < free_.size(); ++word) free_[word] &= other.free_[word];
  latest_generation_ = std::max(latest_generation_, other.latest_generation_);
}

std::optional<ContextId> ContextIdSet::lowest() const {
  for (std::size_t word = 0; word < free_.size(); ++word) {
    if (free_[word] == 0) continue;
    return ContextId{static_cast<int>(word) * kBits + std::countr_zero(free_[word]), latest_generation_ + 1};
  }
  return std::nullopt;
}

void ContextIdSet::take(const ContextId& id) {
  if (id.generation <= latest_generation_ || (free_[word_of(id.number)] & bit_of(id.number)) == 0) {
    throw WrongContext(
        "split: two threads of this member made groups over nodes at the same time; a member splits a "
        "communicator and the groups that descend from it one after the other");
  }
  free_[word_of(id.number)] &= ~bit_of(id.number);
  latest_generation_ = id.generation;
}

void ContextIdSet::give_back(int number) { free_[word_of(number)] |= bit_of(number); }

namespace {

/// What a member sends to all others.
struct MemberEntry {
  std::int64_t takes_part = 0;
  std::int64_t color = 0;
  std::int64_t key = 0;
  SplitContribution contribution;
};
constexpr std::int64_t kWords = sizeof(MemberEntry) / sizeof(std::int64_t);

}  // namespace

SplitExchange::SplitExchange(int size, std::optional<int> color, int key,
                             const SplitContribution& contribution)
    : color_(color),
      input_(Tensor::uninitialized({kWords}, DType::kInt64)),
      output_(Tensor::uninitialized({size, kWords}, DType::kInt64)) {
  const MemberEntry own{color.has_value() ? 1 : 0, color.value_or(0), key, contribution};
  std::memcpy(input_.data(), &own, sizeof own);
}

CollectiveCall SplitExchange::call() const {
  CollectiveCall call;
  call.kind = CollectiveKind::kSplit;
  call.dtype = input_.dtype();
  call.elements = input_.elements();
  call.input = input_.data();
  call.output = output_.data();
  call.buffers = {&input_.buffer(), &output_.buffer()};
  return call;
}

std::vector<SplitMember> SplitExchange::members() const {
  std::vector<MemberEntry> all(output_.bytes() / sizeof(MemberEntry));
  std::memcpy(all.data(), output_.data(), output_.bytes());
  std::vector<SplitMember> members;
  for (std::size_t rank = 0; color_ && rank < all.size(); ++rank) {
    const MemberEntry& entry = all[rank];
    if (entry.takes_part != 0 && entry.color == *color_)
      members.push_back({static_cast<int>(rank), entry.contribution});
  }
  std::ranges::stable_sort(
      members, {}, [&](const SplitMember& member) { return all[static_cast<std::size_t>(member.rank)].key; });
  return members;
}

}  // namespace cohort
