#include "roll_call.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>

namespace cohort::network {

namespace {

constexpr int kRollCallTag = 0;

}  // namespace

RollCall::RollCall(Lane leaders, const Topology& topology, std::size_t piggyback_bytes)
    : leaders_(leaders),
      capacity_(2 * sizeof(Summary) + piggyback_bytes),
      scratch_(leaders.scratch(capacity_)),
      members_{0} {
  for (int step = 0; step < leaders_.size(); ++step) {
    const int on_node = topology.members_on(leaders_.neighbour(step));
    members_.push_back(members_.back() + static_cast<std::size_t>(on_node));
  }
}

RollCall::Summary RollCall::summary_of(const CallSignature& call) noexcept {
  // Does not compile once there is a field that is not compared.
  const auto& [sequence, elements, layout, kind, dtype, op, priority, root, device, captured] = call;
  Fingerprint fingerprint;
  fingerprint.add(sequence).add(elements).add(layout);
  const std::uint64_t arguments = static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(dtype) << 8 |
                                  std::uint64_t{op} << 16 | static_cast<std::uint64_t>(priority) << 24 |
                                  static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32;
  fingerprint.add(arguments).add(static_cast<std::uint64_t>(device) << 1 | std::uint64_t{captured});
  return std::max(fingerprint.value(), kSeveralCalls + 1);
}

std::byte* RollCall::answer(const std::optional<CallSignature>& call, std::size_t contribution_bytes) {
  summary_ = call ? summary_of(*call) : kSeveralCalls;
  contribution_bytes_ = call ? contribution_bytes : 0;
  nodes_before_gap_ = 1;
  return scratch_.data() + sizeof(Summary);
}

Task<> RollCall::execute() {
  begin();
  co_await until([this] { return has_ended(); });
}

void RollCall::begin() {
  distance_ = 1;
  start_round();
}

bool RollCall::has_ended() {
  while (distance_ < leaders_.size()) {
    if (!receiving_.done() || !sending_.done()) return false;
    finish_round();
    distance_ *= 2;
    if (distance_ < leaders_.size()) start_round();
  }
  return true;
}

void RollCall::start_round() {
  close_gap(distance_);
  std::memcpy(scratch_.data(), &summary_, sizeof summary_);
  // The others wait for the message, so it leaves before anything else is done.
  sending_ = leaders_.send(leaders_.neighbour(-distance_), kRollCallTag, scratch_.data(),
                           end_of(nodes_that_leave()));
  // The nodes of what arrives are not among those that are known here, nor, in any call, are all
  // contributions together longer than what there is room for.
  const std::size_t known = end_of(distance_);
  receiving_ = leaders_.receive(leaders_.neighbour(distance_), kRollCallTag, scratch_.data() + known,
                                capacity_ - known);
}

void RollCall::finish_round() {
  const std::size_t known = end_of(distance_);
  Summary arrived = kSeveralCalls;
  std::memcpy(&arrived, scratch_.data() + known, sizeof arrived);
  merge(arrived);
  if (is_unanimous())
    COHORT_CHECK(receiving_.bytes() == sizeof arrived + end_of(distance_ + nodes_that_leave()) - known);
}

void RollCall::merge(Summary arrived) noexcept {
  if (arrived == summary_) return;
  summary_ = kSeveralCalls;
  contribution_bytes_ = 0;
}

/// Moves the contributions of the last round to those before them, of which there were `nodes_before_gap_`,
/// so that the first `nodes` can leave in one message.
void RollCall::close_gap(int nodes) {
  if (nodes == nodes_before_gap_) return;
  std::byte* const to = scratch_.data() + end_of(nodes_before_gap_);
  std::memmove(to, to + sizeof(Summary), end_of(nodes) - end_of(nodes_before_gap_));
  nodes_before_gap_ = nodes;
}

std::span<const std::byte> RollCall::payload_of(int node) const {
  const int step = (node - leaders_.index() + leaders_.size()) % leaders_.size();
  const std::size_t gap = step < nodes_before_gap_ ? 0 : sizeof(Summary);
  return {scratch_.data() + end_of(step) + gap, end_of(step + 1) - end_of(step)};
}

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
