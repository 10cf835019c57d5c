#include <cohort/collective/group_numbers.h>

#include <algorithm>
#include <bit>

#include <cohort/base/error.h>

namespace cohort {
namespace {

constexpr int kBits = 64;

std::size_t word_of(int number) { return static_cast<std::size_t>(number) / kBits; }
std::uint64_t bit_of(int number) { return std::uint64_t{1} << (number % kBits); }

}  // namespace

GroupOffer::GroupOffer(std::int64_t end) {
  for (int number = 1; number < std::min<std::int64_t>(end, kNumbers); ++number) give_back(number);
}

void GroupOffer::combine(const GroupOffer& other) {
  for (std::size_t word = 0; word < free_.size(); ++word) free_[word] &= other.free_[word];
  latest_generation_ = std::max(latest_generation_, other.latest_generation_);
}

std::optional<GroupName> GroupOffer::name() const {
  for (std::size_t word = 0; word < free_.size(); ++word) {
    if (free_[word] == 0) continue;
    return GroupName{static_cast<int>(word) * kBits + std::countr_zero(free_[word]), latest_generation_ + 1};
  }
  return std::nullopt;
}

void GroupOffer::take(const GroupName& name) {
  if (name.generation <= latest_generation_ || (free_[word_of(name.number)] & bit_of(name.number)) == 0) {
    throw WrongContext(
        "split: two threads of this member made groups over nodes at the same time; a member splits a "
        "communicator and the groups that descend from it one after the other");
  }
  free_[word_of(name.number)] &= ~bit_of(name.number);
  latest_generation_ = name.generation;
}

void GroupOffer::give_back(int number) { free_[word_of(number)] |= bit_of(number); }

}  // namespace cohort
