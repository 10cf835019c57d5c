#include "inquest.h"

#include <charconv>
#include <chrono>

#include <fmt/format.h>

namespace cohort::network {
namespace {

using namespace std::chrono_literals;

/// Those who wait look around once per millisecond, but may have been put off their core.
constexpr auto kTimeToAnswer = 500ms;

constexpr std::string_view kAsk = "ask";
constexpr std::string_view kHere = "here";
constexpr char kFailed = '!';  // first of a note that goes on with the error's fields, each on a line

std::string to_note(const Error& error) {
  return fmt::format("{}{}\n{}\n{}\n{}\n{}", kFailed, static_cast<int>(error.code()), error.origin().member,
                     error.origin().host, error.origin().call, error.what());
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

int to_int(std::string_view text) {
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Error from_note(std::string_view note) {
  note.remove_prefix(1);
  const auto code = static_cast<ErrorCode>(to_int(take_line(note)));
  ErrorOrigin origin;
  origin.member = to_int(take_line(note));
  origin.host = take_line(note);
  origin.call = take_line(note);
  return {code, std::string(note), std::move(origin)};
}

}  // namespace

std::optional<Error> Inquest::listen(bool in_collective) {
  while (const std::optional<Transport::Note> note = transport_.hear()) heed(*note, in_collective);
  return reported_;
}

void Inquest::heed(const Transport::Note& note, bool in_collective) {
  if (note.text.front() == kFailed) {
    if (!reported_) reported_ = from_note(note.text);
    return;
  }
  if (hearing_) hearing_->present[static_cast<std::size_t>(note.from)] = true;
  if (note.text != kAsk) return;
  if (in_collective) transport_.tell(note.from, kHere);
  if (note.from < topology_.rank()) turn_of_lower_ = Deadline::after(2 * kTimeToAnswer);
}

void Inquest::ask_all() {
  hearing_ = Hearing{Deadline::after(kTimeToAnswer), std::vector<bool>(members_.size())};
  hearing_->present[static_cast<std::size_t>(topology_.rank())] = true;
  for (int member = 0; member < topology_.members(); ++member) {
    if (member != topology_.rank()) transport_.tell(member, kAsk);
  }
}

std::optional<Error> Inquest::conclude(const CollectiveCall& call, std::uint64_t number,
                                       std::chrono::duration<double> allowed) {
  if (!hearing_) ask_all();
  if (!hearing_->end.expired() || (turn_of_lower_ && !turn_of_lower_->expired())) return std::nullopt;
  std::vector<int> missing;
  for (std::size_t member = 0; member < members_.size(); ++member) {
    if (!hearing_->present[member]) missing.push_back(static_cast<int>(member));
  }
  const std::string name = fmt::format("{} #{}", to_string(call.kind), number);
  if (missing.empty()) {
    return DeadlineExceeded(
        ErrorOrigin{name, -1, ""},
        fmt::format("{}: {} passed in {} without a byte moving, though all members are "
                    "waiting in a collective. The network between their nodes is cut or overloaded, or they "
                    "wait for each other in different communicators",
                    name, describe_deadline(call, allowed.count()), describe(call)));
  }
  const auto first = static_cast<std::size_t>(missing.front());
  return DeadlineExceeded(ErrorOrigin{name, missing.front(), members_[first].host},
                          explain_missing(call, number, missing, members_, allowed.count()));
}

void Inquest::report(const Error& failure) {
  const std::string note = to_note(failure);
  for (int member = 0; member < topology_.members(); ++member) {
    if (topology_.node_of(member) != topology_.own_node()) transport_.tell(member, note);
  }
}

}  // namespace cohort::network
