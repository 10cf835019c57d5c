#include "failure_detector.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/clocks.h"

namespace cohort::network {
namespace {

using namespace std::chrono_literals;

/// Waiting members read control messages once per millisecond, but may have lost their core for a while. Less
/// where the time-out is short: see grace_time.
constexpr auto kTimeToAnswer = 500ms;
constexpr int kLooks = 20;
/// How long a member that has been asked leaves the decision to one of lower rank: so many times what that
/// one gives the others to answer.
constexpr int kTurnOfLower = 2;
/// How much longer one that all answer waits, for some member that gets no answer from another. That one
/// decides half a second before, even if it has let a lower rank go first.
constexpr int kTurnOfOthers = kTurnOfLower;

/// How long an urgent call waits before it looks for a disagreement about its priority. Control messages cost
/// MPI its communicators, and a group its number, for good, so calls that are merely slow shall send none.
constexpr auto kTimeToMeet = 300ms;

constexpr std::string_view kHere = "here";
constexpr std::string_view kElsewhere = "elsewhere";
constexpr char kAsk = '?';     // first of a message that goes on with the milliseconds there are to answer
constexpr char kUrgent = '^';  // first of a message that goes on with the signature of an urgent call
constexpr char kFailed = '!';  // first of a message that goes on with the error's fields, each on a line
constexpr char kLeft = '<';    // first of a message that goes on with the number of collectives, and an error

std::string to_text(const Error& error) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", static_cast<int>(error.code()), error.origin().member,
                     error.origin().host, error.origin().call, error.what());
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

template <class Integer>
Integer to_number(std::string_view text) {
  auto value = static_cast<Integer>(-1);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Error to_error(std::string_view text) {
  const auto code = static_cast<ErrorCode>(to_number<int>(take_line(text)));
  ErrorOrigin origin;
  origin.member = to_number<int>(take_line(text));
  origin.host = take_line(text);
  origin.call = take_line(text);
  return {code, std::string(text), std::move(origin)};
}

}  // namespace

std::optional<Error> FailureDetector::poll_failure(bool in_collective, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (in_collective) {
    for (const int member : told_elsewhere_) transport_.send_control(member, kHere);
    told_elsewhere_.clear();
  }
  while (const std::optional<Transport::ControlMessage> message = transport_.receive_control())
    handle(*message, in_collective);
  if (!reported_ && departure_ && departure_->collectives <= number) return departure_->reason;
  return reported_;
}

void FailureDetector::handle(const Transport::ControlMessage& message, bool in_collective) {
  std::string_view rest = std::string_view(message.text).substr(1);
  if (message.text.front() == kFailed) {
    if (!reported_) reported_ = to_error(rest);
    return;
  }
  if (message.text.front() == kLeft) {
    const auto collectives = to_number<std::uint64_t>(take_line(rest));
    if (!departure_ || collectives < departure_->collectives)
      departure_.emplace(Departure{collectives, to_error(rest)});
    return;
  }
  if (message.text.front() == kUrgent) {
    std::memcpy(&urgent_elsewhere_[message.from], message.text.data() + 1, sizeof(CallSignature));
    return;
  }
  const Place place_of_sender = message.text == kElsewhere ? Place::kElsewhere : Place::kHere;
  for (std::optional<Query>& query : queries_) {
    if (!query) continue;
    Place& place = query->places[static_cast<std::size_t>(message.from)];
    place = std::max(place, place_of_sender);
  }
  if (message.text.front() != kAsk) return;
  transport_.send_control(message.from, in_collective ? kHere : kElsewhere);
  if (!in_collective) told_elsewhere_.push_back(message.from);
  if (message.from > topology_.rank()) return;
  const auto turn = Deadline::after(kTurnOfLower * std::chrono::milliseconds(to_number<int>(rest)));
  if (!turn_of_lower_ || turn_of_lower_->at() < turn.at()) turn_of_lower_ = turn;
}

void FailureDetector::ask_all(Priority priority, std::chrono::milliseconds time_to_answer) {
  std::optional<Query>& query = this->query(priority);
  query = Query{.time_to_answer = time_to_answer,
                .end = Deadline::after(time_to_answer),
                .places = std::vector<Place>(members_.size())};
  query->places[static_cast<std::size_t>(topology_.rank())] = Place::kHere;
  const std::string question = fmt::format("{}{}", kAsk, time_to_answer.count());
  for (int member = 0; member < topology_.members(); ++member) {
    if (member != topology_.rank()) transport_.send_control(member, question);
  }
}

std::optional<Error> FailureDetector::conclude_missing(const CollectiveCall& call, std::uint64_t number,
                                                       std::chrono::duration<double> allowed,
                                                       bool by_transport) {
  const std::lock_guard lock(mutex_);
  std::optional<Query>& query = this->query(call.priority);
  if (!query) ask_all(call.priority, grace_time(kTimeToAnswer, allowed));
  // This process may have been suspended, and the others with it: their answers come a moment later.
  if (!query->end.expired() || ++query->looks < kLooks || (turn_of_lower_ && !turn_of_lower_->expired()))
    return std::nullopt;
  const bool all_answer = std::ranges::find(query->places, Place::kUnknown) == query->places.end();
  if (all_answer && !std::exchange(query->lets_others_go, true)) {
    query->end = Deadline::after(kTurnOfOthers * query->time_to_answer);
    query->looks = 0;
    return std::nullopt;
  }
  return error_of(*query, call, number, allowed, by_transport);
}

std::vector<int> FailureDetector::Query::members_at(Place place) const {
  std::vector<int> members;
  for (std::size_t member = 0; member < places.size(); ++member) {
    if (places[member] == place) members.push_back(static_cast<int>(member));
  }
  return members;
}

Error FailureDetector::error_of(const Query& query, const CollectiveCall& call, std::uint64_t number,
                                std::chrono::duration<double> allowed, bool by_transport) const {
  const std::vector<int> silent = query.members_at(Place::kUnknown);
  const std::vector<int> elsewhere = query.members_at(Place::kElsewhere);
  const std::string name = fmt::format("{} #{}", to_string(call.as_called().kind), number);
  if (silent.empty() && elsewhere.empty()) {  // all are here
    const char* const why =
        by_transport
            ? ", which MPI's own collective carries; all members take part in it. Raise the time-out "
              "if it is only long; otherwise the network between their nodes is cut or overloaded"
            : " without a byte moving, though all members are waiting in a collective. The network "
              "between their nodes is cut or overloaded, or they wait for each other in different "
              "communicators";
    return DeadlineExceeded(ErrorOrigin{name, -1, ""},
                            fmt::format("{}: {} passed in {}{}", name,
                                        describe_deadline(call, allowed.count()), describe(call), why));
  }
  const int first = silent.empty() ? elsewhere.front() : silent.front();
  return DeadlineExceeded(ErrorOrigin{name, first, members_[static_cast<std::size_t>(first)].host},
                          explain_missing(call, number, {silent, elsewhere}, members_, allowed.count()));
}

void FailureDetector::drop(Priority priority) noexcept {
  const std::lock_guard lock(mutex_);
  query(priority).reset();
}

std::optional<Error> FailureDetector::compare_priorities(const CallSignature& call,
                                                         std::chrono::duration<double> waited) {
  const std::lock_guard lock(mutex_);
  if (call.priority == Priority::kUrgent) {
    if (waited < kTimeToMeet || told_urgent_ == call.sequence) return std::nullopt;
    told_urgent_ = call.sequence;
    std::string message(1 + sizeof call, kUrgent);
    std::memcpy(message.data() + 1, &call, sizeof call);
    for (int node = 0; node < topology_.nodes(); ++node) {
      if (node != topology_.own_node()) transport_.send_control(topology_.members_of(node).front(), message);
    }
    return std::nullopt;
  }
  if (urgent_elsewhere_.empty()) return std::nullopt;
  std::vector<MemberCall> calls{{topology_.rank(), call}};
  for (int node = 0; node < topology_.nodes(); ++node) {
    const auto urgent = urgent_elsewhere_.find(topology_.members_of(node).front());
    const bool differs = urgent != urgent_elsewhere_.end() && urgent->second.sequence == call.sequence;
    // The first of those in a normal call concludes, so that there is one error.
    if (!differs && node < topology_.own_node()) return std::nullopt;
    if (!differs) continue;
    calls.push_back({urgent->first, urgent->second});
  }
  int odd = 0;
  const std::optional<std::string> text = explain_mismatch(calls, members_, odd);
  if (!text) return std::nullopt;
  return InvalidArgument(ErrorOrigin{fmt::format("{} #{}", to_string(call.kind), call.sequence), odd,
                                     members_[static_cast<std::size_t>(odd)].host},
                         *text);
}

void FailureDetector::report(const Error& failure) { tell_other_nodes(kFailed + to_text(failure)); }

void FailureDetector::report_leaving(const Error& reason, std::uint64_t collectives) {
  tell_other_nodes(fmt::format("{}{}\n{}", kLeft, collectives, to_text(reason)));
}

void FailureDetector::tell_other_nodes(const std::string& message) {
  for (int member = 0; member < topology_.members(); ++member) {
    if (topology_.node_of(member) != topology_.own_node()) transport_.send_control(member, message);
  }
}

}  // namespace cohort::network
