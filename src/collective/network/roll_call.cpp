#include "roll_call.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

namespace cohort::network {

namespace {

using namespace std::chrono_literals;

constexpr int kTag = 0;

/// How long leaders that know of a difference wait for each other's words.
/// All of them are in the call; on a busy machine one may not run for a while.
constexpr auto kTimeForWords = 5s;

/// Payload of any dtype is aligned.
std::size_t aligned(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

/// An entry: header, signatures, payload.
struct RollCall::Header {
  CallSignature signature;
  std::uint32_t signatures = 0;
  std::uint32_t payload_bytes = 0;
};

struct RollCall::Signed {
  CallSignature signature;
  std::int64_t rank = 0;
};

RollCall::RollCall(Lane leaders, const Topology& topology, std::size_t piggyback_bytes)
    : leaders_(leaders),
      topology_(topology),
      capacity_(static_cast<std::size_t>(topology.nodes()) * (sizeof(Header) + 8) +
                static_cast<std::size_t>(topology.members()) * sizeof(Signed) + piggyback_bytes),
      scratch_(leaders.scratch(capacity_)) {}

std::byte* RollCall::answer(const NodeCalls& own, std::size_t payload_bytes) {
  const Header header{own.signature, static_cast<std::uint32_t>(own.by_member.size()),
                      static_cast<std::uint32_t>(payload_bytes)};
  std::byte* to = scratch_.data();
  std::memcpy(to, &header, sizeof header);
  to += sizeof header;
  for (const MemberCall& call : own.by_member) {
    const Signed one{call.signature, call.member};
    std::memcpy(to, &one, sizeof one);
    to += sizeof one;
  }
  begins_ = {0};
  end_ = static_cast<std::size_t>(to - scratch_.data()) + aligned(payload_bytes);
  return to;
}

Task<> RollCall::execute() { return exchange(Deadline::never()); }

Task<> RollCall::execute_in_words() { return exchange(Deadline::after(kTimeForWords)); }

Task<> RollCall::exchange(const Deadline deadline) {
  for (int distance = 1; distance < leaders_.size(); distance *= 2) {
    const auto leaving = static_cast<std::size_t>(std::min(distance, leaders_.size() - distance));
    const std::size_t leaving_end = leaving < begins_.size() ? begins_[leaving] : end_;
    Transfer receiving =
        leaders_.receive(leaders_.neighbour(distance), kTag, scratch_.data() + end_, capacity_ - end_);
    Transfer sending = leaders_.send(leaders_.neighbour(-distance), kTag, scratch_.data(), leaving_end);
    co_await until([&] { return (receiving.done() && sending.done()) || deadline.expired(); });
    if (!receiving.done() || !sending.done()) co_return;
    begins_.push_back(end_);
    end_ += receiving.bytes();
    find_entries();
  }
}

/// The last entry that is known is the first of those that have just arrived.
void RollCall::find_entries() {
  while (true) {
    const Header header = header_of(begins_.size() - 1);
    const std::size_t next =
        begins_.back() + sizeof header + header.signatures * sizeof(Signed) + aligned(header.payload_bytes);
    if (next >= end_) return;
    begins_.push_back(next);
  }
}

RollCall::Header RollCall::header_of(std::size_t entry) const {
  Header header;
  std::memcpy(&header, scratch_.data() + begins_[entry], sizeof header);
  return header;
}

std::span<const std::byte> RollCall::payload_of(int node) const {
  const int entry = (node - leaders_.index() + leaders_.size()) % leaders_.size();
  const Header header = header_of(static_cast<std::size_t>(entry));
  return {scratch_.data() + begins_[static_cast<std::size_t>(entry)] + sizeof header +
              header.signatures * sizeof(Signed),
          header.payload_bytes};
}

bool RollCall::is_unanimous() const {
  const Header own = header_of(0);
  for (std::size_t entry = 0; entry < begins_.size(); ++entry) {
    const Header header = header_of(entry);
    if (header.signatures != 0 || header.signature != own.signature) return false;
  }
  return true;
}

void RollCall::answer_in_words(const NodeCalls& own) {
  std::string text;
  const auto add = [&text](int member, const CallWords& words) {
    const std::string entry = fmt::format("{} {}\n", member, to_line(words));
    if (text.size() + entry.size() <= kWordsBytes) text += entry;
  };
  if (own.by_member.empty()) add(topology_.rank(), own.words);
  // There may not be room for all. One member of each call says what the others of it would.
  std::vector<const MemberCall*> told;
  std::vector<const MemberCall*> alike;
  for (const MemberCall& call : own.by_member) {
    const auto is_same = [&](const MemberCall* other) { return other->signature == call.signature; };
    (std::ranges::any_of(told, is_same) ? alike : told).push_back(&call);
  }
  for (const auto& calls : {told, alike})
    for (const MemberCall* call : calls) add(call->member, call->words);
  std::memcpy(answer({.signature = own.signature}, text.size()), text.data(), text.size());
}

/// Where the members of a node agree, its leader speaks for them.
std::vector<CallWords> RollCall::words_by_rank() const {
  std::vector<CallWords> words(static_cast<std::size_t>(topology_.members()));
  for (std::size_t entry = 0; entry < begins_.size(); ++entry) {
    const int node = leaders_.neighbour(static_cast<int>(entry));
    const std::span<const std::byte> payload = payload_of(node);
    std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
    const bool leader_alone = std::ranges::count(text, '\n') == 1;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(line.size() + 1);
      const std::size_t end_of_rank = line.find(' ');
      std::size_t rank = 0;
      if (end_of_rank == std::string_view::npos) continue;
      std::from_chars(line.data(), line.data() + end_of_rank, rank);
      if (rank >= words.size()) continue;
      const CallWords said = from_line(line.substr(end_of_rank + 1));
      for (const int member : topology_.members_of(node))
        if (leader_alone) words[static_cast<std::size_t>(member)] = {said.caller, "", said.purpose};
      words[rank] = said;
    }
  }
  return words;
}

Error RollCall::disagreement(const std::string& name, std::span<const MemberInfo> members,
                             const RollCall& words) const {
  std::vector<std::optional<CallSignature>> by_rank(members.size());
  for (std::size_t entry = 0; entry < begins_.size(); ++entry) {
    const Header header = header_of(entry);
    const int node = leaders_.neighbour(static_cast<int>(entry));
    if (header.signatures == 0) {
      for (const int rank : topology_.members_of(node))
        by_rank[static_cast<std::size_t>(rank)] = header.signature;
    }
    for (std::size_t i = 0; i < header.signatures; ++i) {
      Signed one;
      std::memcpy(&one, scratch_.data() + begins_[entry] + sizeof header + i * sizeof one, sizeof one);
      by_rank[static_cast<std::size_t>(one.rank)] = one.signature;
    }
  }
  const std::vector<CallWords> said = words.words_by_rank();
  std::vector<MemberCall> calls;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    if (by_rank[rank]) calls.push_back({static_cast<int>(rank), *by_rank[rank], said[rank]});
  int odd = -1;
  const std::optional<std::string> text = explain_mismatch(calls, members, odd);
  return InvalidArgument(
      ErrorOrigin{name, odd, text ? members[static_cast<std::size_t>(odd)].host : ""},
      text.value_or(
          fmt::format("{}: members disagree, and those that differ did not say what they called", name)));
}

}  // namespace cohort::network
