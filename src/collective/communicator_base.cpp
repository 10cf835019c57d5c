#include "collective/communicator_base.h"

#include <algorithm>
#include <cstring>

#include <cohort/base/fingerprint.h>

namespace cohort {
namespace {

/// The call by which members agree on one whose data is moved by something else.
CollectiveCall agreement_barrier(const CollectiveCall& call) {
  const CallSignature exact = signature(call, 0);
  CollectiveCall barrier;
  barrier.kind = CollectiveKind::kBarrier;
  barrier.layout =
      Fingerprint()
          .add(exact.elements)
          .add(exact.layout)
          .add(static_cast<std::uint64_t>(exact.kind) << 32 | static_cast<std::uint64_t>(exact.dtype) << 16 |
               exact.op)
          .add(static_cast<std::uint64_t>(exact.captured) << 40 |
               static_cast<std::uint64_t>(exact.device) << 32 | static_cast<std::uint32_t>(exact.root))
          .value();
  barrier.priority = call.priority;
  barrier.timeout_seconds = call.timeout_seconds;
  barrier.stands_for = &call;
  return barrier;
}

}  // namespace

void CommunicatorBase::agree(Communicator& communicator, const CollectiveCall& call) {
  communicator.execute(agreement_barrier(call));
}

std::vector<SplitMember> CommunicatorBase::exchange_split(std::optional<int> color, int key,
                                                          const SplitContribution& contribution) {
  struct Entry {
    std::int64_t takes_part = 0;
    std::int64_t color = 0;
    std::int64_t key = 0;
    SplitContribution contribution;
  };
  constexpr std::int64_t kWords = sizeof(Entry) / sizeof(std::int64_t);
  const Entry own{color.has_value() ? 1 : 0, color.value_or(0), key, contribution};
  const Tensor input = Tensor::uninitialized({kWords}, DType::kInt64);
  const Tensor output = Tensor::uninitialized({size(), kWords}, DType::kInt64);
  std::memcpy(input.data(), &own, sizeof own);
  CollectiveCall call;
  call.kind = CollectiveKind::kSplit;
  call.dtype = input.dtype();
  call.elements = input.elements();
  call.input = input.data();
  call.output = output.data();
  call.buffers = {&input.buffer(), &output.buffer()};
  run(call);
  std::vector<Entry> all(static_cast<std::size_t>(size()));
  std::memcpy(all.data(), output.data(), output.bytes());

  std::vector<SplitMember> split_members;
  for (int member = 0; color && member < size(); ++member) {
    const Entry& entry = all[static_cast<std::size_t>(member)];
    if (entry.takes_part != 0 && entry.color == *color) split_members.push_back({member, entry.contribution});
  }
  std::ranges::stable_sort(split_members, {}, [&](const SplitMember& member) {
    return all[static_cast<std::size_t>(member.rank)].key;
  });
  return split_members;
}

}  // namespace cohort
