#include "collective/split_exchange.h"

#include <algorithm>
#include <cstring>

namespace cohort {
namespace {

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
