#include "collective/context_ids.h"

#include <algorithm>
#include <bit>

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

}  // namespace cohort
