#include "call_record.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace cohort {
namespace {

/// Asked for once; again in a forked child.
ProcessIdentity identity_of_this_process() {
  static const ProcessIdentity identity = own_identity();
  return identity.pid == ::getpid() ? identity : own_identity();
}

}  // namespace

CallRecorder::CallRecorder(MemberRecord& record, const RecordOwner& owner)
    : record_(record), clock_(StampClock::of_this_process()) {
  record_.worker = owner.worker;
  record_.reads_counter = clock_.reads_counter();
  record_.process = identity_of_this_process();
  record_.thread = ::gettid();
  const std::size_t length = std::min(owner.communicator.size(), record_.communicator.size() - 1);
  std::copy_n(owner.communicator.begin(), length, record_.communicator.begin());
  record_.rank.store(owner.rank, std::memory_order_release);
}

void CallRecorder::explain(const Entry& call, std::string_view words) noexcept {
  CallExplanation& explanation = record_.explanation;
  explanation.version.store(call.version - 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < explanation.text.size(); ++i) {
    std::uint64_t part = 0;
    const std::string_view left = words.substr(std::min(8 * i, words.size()));
    std::memcpy(&part, left.data(), std::min<std::size_t>(left.size(), 8));
    explanation.text[i].store(part, std::memory_order_release);
  }
  explanation.version.store(call.version, std::memory_order_release);
}

}  // namespace cohort
