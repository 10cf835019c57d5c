#include "group_exchange.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clocks.h"

namespace cohort::rendezvous {
namespace {

using namespace std::chrono_literals;

/// How often who waits looks for a lost worker: connections show some of these ends, and a watch others.
constexpr auto kBetweenLooks = 50ms;

/// How long a member waits, beyond its deadline, for the first to say who is missing.
constexpr auto kTimeToConclude = 2s;

/// Of a letter that brings an error.
struct ErrorHeader {
  ErrorCode code{};
  std::int32_t culprit = -1;  ///< rank in the group
};

std::string to_text(const Error& error) {
  const ErrorHeader header{error.code(), error.origin().member};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + error.what();
}

}  // namespace

/// What the first has heard in a round.
struct GroupExchange::Gathered {
  std::vector<std::optional<std::string>> said;  ///< by member
  bool impatient = false;                        ///< the deadline of one of them has passed

  [[nodiscard]] bool is_complete() const {
    return std::ranges::all_of(said, [](const auto& each) { return each.has_value(); });
  }
};

GroupExchange::GroupExchange(std::shared_ptr<Links> links, GroupExchangeOptions options)
    : links_(std::move(links)), options_(std::move(options)) {}

void GroupExchange::connect(const remote::Address& address) {
  if (is_first()) return;
  try {
    links_->connect(address, Deadline::after(options_.timeout), [this] {
      if (const Error* fault = session_fault()) throw_error(in_this_round(*fault));
    });
  } catch (const DeadlineExceeded& error) {
    throw DeadlineExceeded(ErrorOrigin{call(), 0, info(0).host},
                           fmt::format("{}: deadline of {:.4g} s passed; missing: {} ({})", call(),
                                       options_.timeout.count(), describe_member(0), error.what()));
  }
}

std::vector<std::string> GroupExchange::all_gather(RoundKind round_kind, std::string_view blob) {
  if (failure_) throw_error(*failure_);
  ++round_;
  round_kind_ = round_kind;
  std::string own = to_bytes({round_kind, blob});
  std::vector<std::string> by_member;
  try {
    const std::string all = is_first() ? gather(std::move(own)) : hear_from_first(std::move(own));
    for (const Contribution& contribution : parse_contributions(all))
      by_member.emplace_back(contribution.blob);
  } catch (const Error& error) {
    fail(error);
    throw;
  }
  COHORT_CHECK(by_member.size() == options_.ranks.size());
  return by_member;
}

std::string GroupExchange::gather(std::string own) {
  Gathered gathered{.said{options_.ranks.size(), std::nullopt}};
  gathered.said.front() = std::move(own);
  const Deadline deadline = Deadline::after(options_.timeout);
  Deadline next_second = Deadline::after(1s);
  std::vector<int> others(options_.ranks.size() - 1);
  std::iota(others.begin(), others.end(), 1);
  while (true) {
    // Looked at first: what a worker has said before its end counts.
    const std::optional<Error> loss = loss_among(others);
    links_->poll();
    take(gathered);
    if (gathered.is_complete()) break;
    if (loss) throw_error(*loss);
    if (gathered.impatient || deadline.expired()) throw_missing(gathered);
    if (next_second.expired()) {
      if (options_.every_second && round_kind_ == RoundKind::kStart) options_.every_second();
      next_second = Deadline::after(1s);
    }
    const Deadline next_look = Deadline::after(kBetweenLooks);
    links_->wait(options_.name, deadline.at() < next_look.at() ? deadline : next_look);
  }
  std::string all;
  for (const std::optional<std::string>& each : gathered.said) all += *each;
  std::vector<WorkerInfo> infos;
  for (std::size_t member = 0; member < options_.ranks.size(); ++member) infos.push_back(info(member));
  require_same_round_kind(infos, parse_contributions(all), call());
  for (std::size_t member = 1; member < options_.ranks.size(); ++member)
    links_->send(session_rank(member), options_.name, {Letter::Kind::kAll, round_, all});
  return all;
}

void GroupExchange::take(Gathered& gathered) {
  while (const std::optional<Letter> letter = links_->take(options_.name)) {
    const auto member = std::ranges::find(options_.ranks, letter->from) - options_.ranks.begin();
    if (letter->kind == Letter::Kind::kError) throw_error_of(*letter);
    if (letter->kind == Letter::Kind::kImpatient) gathered.impatient = letter->round == round_;
    if (letter->kind != Letter::Kind::kSay) continue;
    if (options_.check && round_kind_ == RoundKind::kStart) {
      const std::vector<Contribution> said = parse_contributions(letter->text);
      COHORT_CHECK(said.size() == 1);
      options_.check(letter->from, said.front().blob);
    }
    if (member < std::ssize(options_.ranks) && letter->round == round_)
      gathered.said[static_cast<std::size_t>(member)] = letter->text;
  }
}

/// Of a worker of the session, or of one of the members with these numbers.
std::optional<Error> GroupExchange::loss_among(std::span<const int> members) const {
  if (const Error* fault = session_fault()) return in_this_round(*fault);
  for (const int member : members) {
    const auto loss = links_->loss(session_rank(static_cast<std::size_t>(member)));
    if (!loss) continue;
    return Unavailable(ErrorOrigin{call(), member, info(static_cast<std::size_t>(member)).host},
                       fmt::format("{}: {}", call(), *loss));
  }
  return std::nullopt;
}

Error GroupExchange::in_this_round(const Error& fault) const {
  ErrorOrigin origin = fault.origin();
  const auto member = std::ranges::find(options_.ranks, origin.member);
  origin.member = member == options_.ranks.end() ? -1 : static_cast<int>(member - options_.ranks.begin());
  origin.call = call();
  return {fault.code(), fmt::format("{}: {}", call(), fault.what()), std::move(origin)};
}

std::string GroupExchange::hear_from_first(std::string own) {
  links_->send(first(), options_.name, {Letter::Kind::kSay, round_, std::move(own)});
  const Deadline deadline = Deadline::after(options_.timeout);
  const Deadline conclusion =
      deadline.plus(grace_time(std::chrono::milliseconds(kTimeToConclude), options_.timeout));
  bool told = false;
  constexpr int kFirst = 0;
  while (true) {
    const std::optional<Error> loss = loss_among({&kFirst, 1});
    links_->poll();
    while (const std::optional<Letter> letter = links_->take(options_.name)) {
      if (letter->kind == Letter::Kind::kError) throw_error_of(*letter);
      if (letter->kind == Letter::Kind::kAll && letter->round == round_) return letter->text;
    }
    if (loss) throw_error(*loss);
    // The first knows who is missing, if it has come itself.
    if (deadline.expired() && !std::exchange(told, true))
      links_->send(first(), options_.name, {Letter::Kind::kImpatient, round_});
    if (conclusion.expired()) {
      Gathered nobody{.said{options_.ranks.size(), std::string()}};
      nobody.said.front().reset();
      throw_missing(nobody);
    }
    const Deadline next_look = Deadline::after(kBetweenLooks);
    const Deadline next = told ? conclusion : deadline;
    links_->wait(options_.name, next.at() < next_look.at() ? next : next_look);
  }
}

void GroupExchange::fail(const Error& error) {
  if (failure_) return;
  failure_.emplace(error);
  const Letter letter{Letter::Kind::kError, round_, to_text(error)};
  try {
    if (!is_first()) return links_->send(first(), options_.name, letter);
    for (std::size_t member = 1; member < options_.ranks.size(); ++member)
      links_->send(session_rank(member), options_.name, letter);
  } catch (const std::exception&) {
    return;  // no memory for it: the others come to their deadlines
  }
}

void GroupExchange::throw_missing(const Gathered& gathered) const {
  std::vector<std::string> names;
  int first_missing = -1;
  for (std::size_t member = 0; member < options_.ranks.size(); ++member) {
    if (gathered.said[member]) continue;
    if (first_missing < 0) first_missing = static_cast<int>(member);
    names.push_back(describe_member(member));
  }
  const std::string who = names.empty() ? "a worker gave up before all had come"
                                        : fmt::format("missing: {}", fmt::join(names, ", "));
  throw DeadlineExceeded(
      ErrorOrigin{call(), first_missing,
                  first_missing < 0 ? "" : info(static_cast<std::size_t>(first_missing)).host},
      fmt::format("{}: deadline of {:.4g} s passed; {}. They were not started, are stopped, busy elsewhere, "
                  "wait for others themselves, or took another path through the program",
                  call(), options_.timeout.count(), who));
}

void GroupExchange::throw_error_of(const Letter& letter) const {
  ErrorHeader header;
  COHORT_CHECK(letter.text.size() >= sizeof header);
  std::memcpy(&header, letter.text.data(), sizeof header);
  const bool known = header.culprit >= 0 && header.culprit < static_cast<int>(options_.ranks.size());
  throw_error(header.code, letter.text.substr(sizeof header),
              ErrorOrigin{call(), header.culprit,
                          known ? info(static_cast<std::size_t>(header.culprit)).host : std::string()});
}

WorkerInfo GroupExchange::info(std::size_t member) const {
  if (!members_.empty()) return members_[member];
  WorkerInfo unknown;
  unknown.rank = static_cast<int>(member);
  return unknown;
}

std::string GroupExchange::describe_member(std::size_t member) const {
  return members_.empty() ? links_->name(session_rank(member)) : describe(members_[member]);
}

std::string GroupExchange::call() const {
  if (round_kind_ == RoundKind::kStart) return fmt::format("{} '{}'", name_of(round_kind_), options_.title);
  return fmt::format("{} #{}", name_of(round_kind_), round_);
}

}  // namespace cohort::rendezvous
