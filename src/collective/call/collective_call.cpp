#include <cohort/collective/collective_call.h>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/call_purpose.h>

#include "base/vote.h"
#include "operation_in_flight.h"

namespace cohort {
namespace {

using Extent = CollectiveTraits::Extent;

std::size_t own_block_bytes(const CollectiveCall& call, int rank) {
  const std::size_t elements =
      call.counts.empty() ? call.elements : call.counts[static_cast<std::size_t>(rank)];
  return elements * size_of(call.dtype);
}

std::size_t all_blocks_bytes(const CollectiveCall& call, int size) {
  const std::size_t elements = call.counts.empty()
                                   ? call.elements * static_cast<std::size_t>(size)
                                   : std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0});
  return elements * size_of(call.dtype);
}

std::size_t bytes_of(Extent extent, const CollectiveCall& call, int rank, int size) {
  switch (extent) {
    case Extent::kNothing: return 0;
    case Extent::kOneBlock: return own_block_bytes(call, rank);
    case Extent::kAllBlocks: return all_blocks_bytes(call, size);
  }
  return 0;
}

bool is_always_in_place(CollectiveKind kind) {
  return traits_of(kind).in_place == CollectiveTraits::InPlace::kAlways;
}

/// Whether the data of the others is that of this member.
bool is_source(const CollectiveCall& call, int rank) {
  return is_message(call.kind) ? call.kind == CollectiveKind::kSend : call.root == rank;
}

std::string describe(const CallSignature& call) {
  const bool urgent = call.priority == Priority::kUrgent;
  if (call.kind == CollectiveKind::kBarrier || call.kind == CollectiveKind::kSplit)
    return fmt::format("{}({})", to_string(call.kind), urgent ? "urgent" : "");
  std::string text = fmt::format("{}({}[{}]", to_string(call.kind), to_string(call.dtype), call.elements);
  if (reduces(call.kind)) text += fmt::format(", {}", to_string(static_cast<ReduceOp>(call.op)));
  if (has_root(call.kind)) text += fmt::format(", root {}", call.root);
  if (call.device != DeviceKind::kCpu) text += ", on GPUs";
  if (call.captured) text += ", in a graph";
  if (urgent) text += ", urgent";
  return text + ")";
}

/// How a message tells apart the calls of members that disagree: by what they are for, where members have
/// said it, and by their arguments where that reads alike.
class CallTexts {
 public:
  explicit CallTexts(std::span<const MemberCall> calls) : calls_(calls) {
    const MemberCall& first = calls.front();
    for (const MemberCall& call : calls) {
      if (call.words.caller != Caller::kMember) caller_ = call.words.caller;
      // Calls of the other priority shift the order, so two may look alike without being the same one.
      numbers_differ_ = numbers_differ_ || call.signature.sequence != first.signature.sequence;
      layouts_differ_ = layouts_differ_ || call.signature.layout != first.signature.layout;
    }
  }

  [[nodiscard]] std::string name_of(const MemberCall& call, std::span<const MemberInfo> members) const {
    CallWords words = call.words;
    if (words.caller == Caller::kMember) words.caller = caller_;
    return describe(call.member, members[static_cast<std::size_t>(call.member)], words);
  }

  [[nodiscard]] std::string text_of(const MemberCall& call) const {
    const std::string number =
        numbers_differ_ ? fmt::format(" as call #{}", call.signature.sequence) : std::string();
    const std::string arguments = describe(call.signature);
    const std::string& action = call.words.purpose.action;
    const std::string& details = call.words.purpose.details;
    if (action.empty()) return fmt::format("called {}{}", arguments, number);
    std::string text = action;
    const auto reads_alike = [&](bool with_details) {
      return std::ranges::any_of(calls_, [&](const MemberCall& other) {
        return other.signature != call.signature && other.words.purpose.action == action &&
               (!with_details || other.words.purpose.details == details);
      });
    };
    if (reads_alike(false) && !details.empty()) text += fmt::format(" ({})", details);
    if (reads_alike(true)) text += fmt::format(" by {}", arguments);
    return text + number;
  }

  /// Whether some member has said what its call is for.
  [[nodiscard]] bool are_in_words() const noexcept { return caller_ != Caller::kMember; }

  [[nodiscard]] std::string_view advice() const {
    if (are_in_words())
      return "; look for a branch that not all of them take alike, or for a last batch that is shorter.";
    if (layouts_differ_) {
      return ", with the same number of elements, dtype, operator, root and priority; look at the last batch "
             "of the odd member, or pad it. Their layouts differ. A layout is a digest of what a call is "
             "for, and "
             "of what lies where in its tensor: the shapes in a pack, the counts of an uneven all-gather.";
    }
    return ", with the same number of elements, dtype, operator, root and priority; look at the last batch "
           "of "
           "the odd member, or pad it.";
  }

 private:
  std::span<const MemberCall> calls_;
  Caller caller_ = Caller::kMember;
  bool numbers_differ_ = false;
  bool layouts_differ_ = false;
};

}  // namespace

std::size_t input_bytes(const CollectiveCall& call, int rank, int size) noexcept {
  return call.input == nullptr ? 0 : bytes_of(traits_of(call.kind).input, call, rank, size);
}

std::size_t output_bytes(const CollectiveCall& call, int rank, int size) noexcept {
  return call.output == nullptr ? 0 : bytes_of(traits_of(call.kind).output, call, rank, size);
}

bool reads_input(const CollectiveCall& call, int rank) noexcept {
  return call.input != nullptr && (!is_always_in_place(call.kind) || is_source(call, rank));
}

bool writes_output(const CollectiveCall& call, int rank) noexcept {
  return call.output != nullptr && (!is_always_in_place(call.kind) || !is_source(call, rank));
}

OwnedCall::OwnedCall(const CollectiveCall& call)
    : call_(call), counts_(call.counts.begin(), call.counts.end()) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (call.buffers[i] != nullptr) buffers_[i] = *call.buffers[i];
  }
  if (call.stands_for != nullptr) {
    stands_for_ = std::make_unique<const OwnedCall>(*call.stands_for);
    call_.stands_for = &stands_for_->get();
  }
  if (call.purpose != nullptr) {
    purpose_ = call.purpose->spoken();
    call_.purpose = purpose_.get();
  }
  if (call.hooked != nullptr) hooked_ = call.hooked->shared_from_this();
  // A moved vector keeps its elements where they are, so this stays right when the object moves.
  call_.counts = counts_;
  call_.buffers = {};
}

std::string describe(const CollectiveCall& call) {
  if (call.stands_for != nullptr) return describe(*call.stands_for);
  if (is_message(call.kind)) {
    return fmt::format("{}({}[{}], {} member {}, tag {})", to_string(call.kind), to_string(call.dtype),
                       call.elements, call.kind == CollectiveKind::kSend ? "to" : "from", call.root,
                       call.tag);
  }
  const std::string text = describe(signature(call, 0));
  return call.purpose == nullptr
             ? text
             : fmt::format("{}, which {}", text, shortened(call.purpose->words().purpose.action));
}

CallWords words_of(const CollectiveCall& call) {
  return call.purpose == nullptr ? CallWords() : call.purpose->words();
}

CallSignature signature(const CollectiveCall& call, std::uint64_t sequence) {
  if (call.stands_for != nullptr) return signature(*call.stands_for, sequence);
  CallSignature result;
  result.sequence = sequence;
  result.elements = call.elements;
  result.kind = call.kind;
  result.dtype = call.dtype;
  result.root = call.root;
  result.layout = call.layout;
  result.priority = call.priority;
  result.device = call.device.kind();
  result.captured = call.captured;
  result.op = reduces(call.kind) ? static_cast<std::uint8_t>(call.op) : std::uint8_t{0};
  if (!call.counts.empty()) {
    // Members of an uneven all-gather contribute different amounts, but must agree on the list.
    result.elements = 0;
    Fingerprint counts;
    if (call.layout != 0) counts.add(call.layout);
    for (const std::size_t count : call.counts) {
      result.elements += count;
      counts.add(count);
    }
    result.layout = counts.value();
  }
  return result;
}

std::string describe(int member, const MemberInfo& info) {
  return fmt::format("member {} (worker {}, host {})", member, info.worker, info.host);
}

std::string describe(int member, const MemberInfo& info, const CallWords& words) {
  if (words.caller == Caller::kWorker) return fmt::format("worker {} (host {})", info.worker, info.host);
  if (words.caller == Caller::kMember) return describe(member, info);
  return fmt::format("replica {} (worker {}, host {}{}{})", member, info.worker, info.host,
                     words.device.empty() ? "" : ", ", words.device);
}

std::optional<std::string> explain_mismatch(std::span<const MemberCall> calls,
                                            std::span<const MemberInfo> members, int& odd_member) {
  const Vote vote = count_votes(calls, &MemberCall::signature);
  if (vote.is_unanimous()) return std::nullopt;
  // Without a majority, the usual call only decides which members count as odd.
  const MemberCall& usual = calls[vote.usual];
  const bool majority = 2 * vote.usual_count > calls.size();
  odd_member = calls[vote.odd.front()].member;
  const CallTexts texts(calls);
  std::vector<std::string> listed;
  for (const MemberCall& call : calls) {
    if (majority && call.signature == usual.signature) continue;
    constexpr std::size_t kListed = 4;
    if (listed.size() > kListed) continue;
    std::string text = listed.size() == kListed
                           ? "and more"
                           : fmt::format("{} {}", texts.name_of(call, members), texts.text_of(call));
    // The replicas of a worker that makes a collective of the workers all say so.
    if (std::ranges::find(listed, text) == listed.end()) listed.push_back(std::move(text));
  }
  if (majority && vote.usual_count == 1) {
    listed.push_back(fmt::format("{} {}", texts.name_of(usual, members), texts.text_of(usual)));
  } else if (majority) {
    listed.push_back(fmt::format("{} {} {}", texts.are_in_words() ? "each of the other" : "the other",
                                 vote.usual_count, texts.text_of(usual)));
  } else if (calls.size() > 2) {
    listed.emplace_back("none of these calls is that of most members");
  }
  return fmt::format("{} #{}: members disagree: {}. All members must make the same calls in the same order{}",
                     to_string(usual.signature.kind), usual.signature.sequence,
                     fmt::join(listed, texts.are_in_words() ? ", " : "; "), texts.advice());
}

std::string list_members(const CollectiveCall& call, std::span<const int> ranks,
                         std::span<const MemberInfo> members) {
  const CallWords words{.caller = words_of(call.as_called()).caller};
  std::vector<std::string> names;
  for (const int rank : ranks) {
    std::string name = describe(rank, members[static_cast<std::size_t>(rank)], words);
    // A worker may have several members in a collective of the workers.
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string describe_deadline(const CollectiveCall& call, double seconds) {
  return fmt::format("deadline of {:.3g} s{}", seconds, call.timeout_seconds ? " (set for this call)" : "");
}

std::string explain_missing(const CollectiveCall& call, std::uint64_t sequence, const MissingMembers& missing,
                            std::span<const MemberInfo> members, double waited_seconds) {
  const bool all_answer = missing.silent.empty();
  std::string text = fmt::format(
      "{} #{}: {} passed while waiting in {}; missing: {}. {}, or took another path through the program; "
      "raise the time-out ({}) if they are only slow.",
      to_string(call.as_called().kind), sequence, describe_deadline(call, waited_seconds), describe(call),
      list_members(call, all_answer ? missing.elsewhere : missing.silent, members),
      all_answer ? "They answer, but are not in this call: they wait in another communicator or for a message"
                 : "They are stopped, busy elsewhere, wait for others themselves",
      call.timeout_seconds ? "timeout_seconds of this call"
                           : "timeout_seconds, or COHORT_COLLECTIVE_TIMEOUT_SECONDS");
  if (!all_answer && !missing.elsewhere.empty()) {
    text += fmt::format(" Others are missing too, but answer: {}.",
                        list_members(call, missing.elsewhere, members));
  }
  return text;
}

// What calls are for: purposes, and how their words travel in a line.

namespace {

constexpr char kSeparator = '\x1f';

std::string_view take_field(std::string_view& line) {
  const std::size_t end = line.find(kSeparator);
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return field;
}

/// A copy of a purpose that needs nothing of the caller's any more.
class SpokenPurpose final : public CallPurpose, public std::enable_shared_from_this<SpokenPurpose> {
 public:
  explicit SpokenPurpose(const CallPurpose& purpose)
      : CallPurpose(purpose.fingerprint(), purpose.caller()), words_(purpose.words()) {}

  [[nodiscard]] CallWords words() const override { return words_; }
  [[nodiscard]] std::shared_ptr<const CallPurpose> spoken() const override { return shared_from_this(); }

 protected:
  [[nodiscard]] PurposeWords own_words() const override { return words_.purpose; }

 private:
  CallWords words_;
};

/// Names come from the program; a line ends where ours do.
std::string one_line(std::string text) {
  for (char& character : text)
    if (static_cast<unsigned char>(character) < ' ') character = ' ';
  return text;
}

}  // namespace

std::shared_ptr<const CallPurpose> CallPurpose::spoken() const {
  if (spoken_ == nullptr) spoken_ = std::make_shared<const SpokenPurpose>(*this);
  return spoken_;
}

CallWords CallPurpose::words() const {
  CallWords words{caller_, caller_ == Caller::kReplica ? to_string(device_) : "", own_words()};
  if (outer_ == nullptr) return words;
  CallWords outer = outer_->words();
  std::string& details = outer.purpose.details;
  for (const std::string& inner : {words.purpose.action, words.purpose.details})
    if (!inner.empty()) details += details.empty() ? inner : ", " + inner;
  return outer;
}

std::string shortened(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  text.resize(limit - 3);
  return text + "...";
}

std::string to_line(const CallWords& words) {
  if (words.purpose.action.empty()) return {};
  return fmt::format("{}{}{}{}{}{}{}", static_cast<int>(words.caller), kSeparator, words.device, kSeparator,
                     one_line(shortened(words.purpose.action)), kSeparator,
                     one_line(shortened(words.purpose.details)));
}

CallWords from_line(std::string_view line) {
  if (line.empty()) return {};
  CallWords words;
  const std::string_view caller = take_field(line);
  if (caller == "1") words.caller = Caller::kReplica;
  if (caller == "2") words.caller = Caller::kWorker;
  words.device = take_field(line);
  words.purpose.action = take_field(line);
  words.purpose.details = take_field(line);
  return words;
}

}  // namespace cohort
