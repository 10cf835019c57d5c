#include "endpoint.h"

#include <cstring>

namespace cohort::node {

Endpoint::Endpoint(std::shared_ptr<NodeGroup> group, int local_rank, Priority priority)
    : group_(std::move(group)),
      position_{local_rank, group_->size()},
      priority_blocks_(group_->priority_blocks(priority).data()),
      own_(*priority_blocks_[local_rank]),
      counter_(group_->counter()),
      is_plain_(counter_ == nullptr && group_->tree().empty()),
      planner_(position_.size, priority, is_eager() && priority == Priority::kNormal),
      failure_watch_(*group_, local_rank, priority, open_),
      pointers_(static_cast<std::size_t>(group_->size())),
      output_pointers_(static_cast<std::size_t>(group_->size())) {
  if (!group_->tree().empty()) levels_.emplace(group_->tree(), priority_blocks_, local_rank, counter_);
}

bool Endpoint::details_differ() const noexcept {
  // Equal words that are not exact, or too long for the line: so all of the payloads begin with details.
  for (int member = 0; member < position_.size; ++member) {
    if (std::memcmp(payload_of(member), own_payload(), sizeof(CallDetails)) != 0) return true;
  }
  return false;
}

void Endpoint::count_reads_of_lines() const {
  for (int member = 0; counter_ != nullptr && member < position_.size; ++member)
    counter_->read(position_.rank, &priority_block(member).lines[open_.rotation.line()]);
}

void Endpoint::count_reads_of(std::atomic<std::uint64_t> PriorityBlock::*flag, std::uint64_t count) const {
  for (int member = 0; counter_ != nullptr && member < position_.size; ++member)
    counter_->read(position_.rank, &(priority_block(member).*flag), count);
}

bool Endpoint::half_of_lines_are_free() noexcept {
  // All calls since then are eager, or this member would know that all have come to them.
  const std::uint64_t target = open_.sequence + 1 - kEagerLines / 2;
  await(Awaited::kLine, target);
  open_.awaited_line = open_.rotation.among_eager(1 - static_cast<int>(kEagerLines / 2));
  for (; open_.next_to_check < position_.size; ++open_.next_to_check) {
    if (!has_announced(priority_block(open_.next_to_check), open_.awaited_line, target)) return false;
  }
  all_have_announced_ = target;
  return true;
}

bool Endpoint::all_have_pieces(std::uint64_t pieces) noexcept {
  await(Awaited::kPieces, pieces);
  for (; open_.next_to_check < position_.size; ++open_.next_to_check) {
    if (priority_block(open_.next_to_check).pieces.load(std::memory_order_acquire) < pieces) return false;
  }
  count_reads_of(&PriorityBlock::pieces, pieces);
  return true;
}

bool Endpoint::has_raised(int member, std::atomic<std::uint64_t> PriorityBlock::*flag, Awaited what,
                          std::uint64_t count) noexcept {
  await(what, count);
  open_.next_to_check = member;
  const std::atomic<std::uint64_t>& theirs = priority_block(member).*flag;
  if (theirs.load(std::memory_order_acquire) < count) return false;
  if (counter_ != nullptr) counter_->read(position_.rank, &theirs, count);
  return true;
}

bool Endpoint::has_passed(int member, std::uint64_t pieces) noexcept {
  return has_raised(member, &PriorityBlock::pieces, Awaited::kTurn, pieces);
}

void Endpoint::raise_done() noexcept {
  if (counter_ != nullptr) counter_->published(position_.rank, &own_.calls_done, calls_done_ + 1);
  own_.calls_done.store(++calls_done_, std::memory_order_release);
  if (!levels_) return own_.bell.ring();
  // Along the tree one more announcement says it.
  ++open_.sequence;
  open_.rotation.open(false);
  open_.word += std::uint64_t{1} << 32;
  open_.payload_has_details = false;
  open_.contents = {};
  announce();
}

void Endpoint::raise_blocks_done(std::uint32_t count) noexcept {
  if (counter_ != nullptr) counter_->published(position_.rank, &own_.blocks_done, count);
  own_.blocks_done.store(open_.sequence << 32 | count, std::memory_order_release);
  own_.bell.ring();
}

bool Endpoint::has_blocks_done(int member, std::uint32_t count) const noexcept {
  const std::atomic<std::uint64_t>& theirs = priority_block(member).blocks_done;
  const std::uint64_t done = theirs.load(std::memory_order_acquire);
  if (done >> 32 != (open_.sequence & 0xffffffff) || static_cast<std::uint32_t>(done) < count) return false;
  if (counter_ != nullptr) counter_->read(position_.rank, &theirs, count);
  return true;
}

bool Endpoint::all_are_done() noexcept {
  if (levels_) return all_announced();
  await(Awaited::kDone, calls_done_);
  for (; open_.next_to_check < position_.size; ++open_.next_to_check) {
    if (priority_block(open_.next_to_check).calls_done.load(std::memory_order_acquire) < calls_done_)
      return false;
  }
  count_reads_of(&PriorityBlock::calls_done, calls_done_);
  return true;
}

bool Endpoint::is_done(int member) noexcept {
  return has_raised(member, &PriorityBlock::calls_done, Awaited::kDone, calls_done_);
}

// All have announced this call. So none has gone on to another one, and what is written for this one stays.
int Endpoint::choose_reducer() noexcept {
  std::atomic<std::uint64_t>& chosen = priority_block(0).reducer;
  const std::uint64_t own = open_.sequence << 32 | static_cast<std::uint32_t>(position_.rank);
  std::uint64_t seen = chosen.load(std::memory_order_relaxed);
  if (seen >> 32 != own >> 32 && chosen.compare_exchange_strong(seen, own, std::memory_order_relaxed))
    return position_.rank;
  return static_cast<int>(seen & 0xffffffff);
}

std::byte* Endpoint::cell(int member, std::uint64_t piece) const noexcept {
  const BufferLocation location = cell_of(member, piece, position_.size);
  return priority_block(location.owner).cells[location.index].data();
}

void Endpoint::drive(const CollectiveCall& call, Task<> task) {
  while (true) {
    task.resume();
    if (task.done()) return;
    if (!task.has_yielded()) wait_for(call, [&] { return task.ready(); });
  }
}

}  // namespace cohort::node
