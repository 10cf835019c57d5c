#include "call_report.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <cohort/base/deadline.h>

namespace cohort::network {

namespace {

using namespace std::chrono_literals;

/// That of roll calls: nobody begins a report before the roll call is over, nor another roll call after it.
constexpr int kReportTag = 0;

/// All leaders are in the call; on a busy machine one may not run for a while.
constexpr auto kTimeForReports = 5s;

/// How much room the words of one node have.
constexpr std::size_t kWordsBytes = 2048;

/// Headers are aligned.
std::size_t aligned(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

/// A line per member. There may not be room for all; one member of each call says what the others of it
/// would.
std::string to_text(const NodeCalls& calls, int leader) {
  std::string text;
  const auto add = [&text](int member, const CallWords& words) {
    const std::string entry = fmt::format("{} {}\n", member, to_line(words));
    if (text.size() + entry.size() <= kWordsBytes) text += entry;
  };
  if (calls.by_member.empty()) add(leader, calls.words);
  std::vector<const MemberCall*> told;
  std::vector<const MemberCall*> alike;
  for (const MemberCall& call : calls.by_member) {
    const auto is_same = [&](const MemberCall* other) { return other->signature == call.signature; };
    (std::ranges::any_of(told, is_same) ? alike : told).push_back(&call);
  }
  for (const auto& some : {told, alike})
    for (const MemberCall* call : some) add(call->member, call->words);
  return text;
}

}  // namespace

/// An entry: header, signatures, words.
struct CallReport::Header {
  CallSignature signature;
  std::uint32_t signatures = 0;
  std::uint32_t words_bytes = 0;
};

struct CallReport::Signed {
  CallSignature signature;
  std::int64_t rank = 0;
};

CallReport::CallReport(Lane leaders, const Topology& topology, const NodeCalls& own)
    : leaders_(leaders),
      topology_(topology),
      capacity_(static_cast<std::size_t>(topology.nodes()) * (sizeof(Header) + aligned(kWordsBytes)) +
                static_cast<std::size_t>(topology.members()) * sizeof(Signed)),
      scratch_(leaders.scratch(capacity_)),
      begins_{0} {
  const std::string words = to_text(own, topology_.rank());
  const Header header{own.signature, static_cast<std::uint32_t>(own.by_member.size()),
                      static_cast<std::uint32_t>(words.size())};
  std::byte* to = scratch_.data();
  std::memcpy(to, &header, sizeof header);
  to += sizeof header;
  for (const MemberCall& call : own.by_member) {
    const Signed one{call.signature, call.member};
    std::memcpy(to, &one, sizeof one);
    to += sizeof one;
  }
  std::memcpy(to, words.data(), words.size());
  end_ = static_cast<std::size_t>(to - scratch_.data()) + aligned(words.size());
}

Task<> CallReport::execute() {
  const Deadline deadline = Deadline::after(kTimeForReports);
  for (int distance = 1; distance < leaders_.size(); distance *= 2) {
    const auto leaving = static_cast<std::size_t>(std::min(distance, leaders_.size() - distance));
    const std::size_t leaving_end = leaving < begins_.size() ? begins_[leaving] : end_;
    Transfer receiving =
        leaders_.receive(leaders_.neighbour(distance), kReportTag, scratch_.data() + end_, capacity_ - end_);
    Transfer sending = leaders_.send(leaders_.neighbour(-distance), kReportTag, scratch_.data(), leaving_end);
    co_await until([&] { return (receiving.done() && sending.done()) || deadline.expired(); });
    if (!receiving.done() || !sending.done()) co_return;
    begins_.push_back(end_);
    end_ += receiving.bytes();
    find_entries();
  }
}

/// The last entry that is known is the first of those that have just arrived.
void CallReport::find_entries() {
  while (true) {
    const Header header = header_of(begins_.size() - 1);
    const std::size_t next =
        begins_.back() + sizeof header + header.signatures * sizeof(Signed) + aligned(header.words_bytes);
    if (next >= end_) return;
    begins_.push_back(next);
  }
}

CallReport::Header CallReport::header_of(std::size_t entry) const {
  Header header;
  std::memcpy(&header, scratch_.data() + begins_[entry], sizeof header);
  return header;
}

std::string_view CallReport::words_of(std::size_t entry) const {
  const Header header = header_of(entry);
  const std::byte* const words =
      scratch_.data() + begins_[entry] + sizeof header + header.signatures * sizeof(Signed);
  return {reinterpret_cast<const char*>(words), header.words_bytes};
}

/// Where the members of a node agree, its leader speaks for them.
std::vector<CallWords> CallReport::words_by_rank() const {
  std::vector<CallWords> words(static_cast<std::size_t>(topology_.members()));
  for (std::size_t entry = 0; entry < begins_.size(); ++entry) {
    const int node = leaders_.neighbour(static_cast<int>(entry));
    std::string_view text = words_of(entry);
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

Error CallReport::disagreement(const std::string& name, std::span<const MemberInfo> members) const {
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
  const std::vector<CallWords> words = words_by_rank();
  std::vector<MemberCall> calls;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    if (by_rank[rank]) calls.push_back({static_cast<int>(rank), *by_rank[rank], words[rank]});
  int odd = -1;
  const std::optional<std::string> text = explain_mismatch(calls, members, odd);
  return InvalidArgument(
      ErrorOrigin{name, odd, text ? members[static_cast<std::size_t>(odd)].host : ""},
      text.value_or(
          fmt::format("{}: members disagree, and those that differ did not say what they called", name)));
}

}  // namespace cohort::network
