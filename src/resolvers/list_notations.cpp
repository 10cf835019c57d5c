#include "list_notations.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

[[noreturn]] void refuse(std::string_view text, std::size_t position, std::string_view why) {
  throw InvalidArgument(
      "roles '{}' are wrong at character {}: {}; the form is chief=1,worker=3,evaluator=1,ps=1", text,
      position + 1, why);
}

/// Reads a list from left to right; errors say where.
class Reader {
 public:
  Reader(std::string_view text, std::string_view form) : text_(text), form_(form) {}

  [[nodiscard]] bool done() const noexcept { return at_ == text_.size(); }
  [[nodiscard]] char next() const noexcept { return done() ? '\0' : text_[at_]; }

  void skip() noexcept { ++at_; }
  [[nodiscard]] std::size_t position() const noexcept { return at_; }
  [[nodiscard]] std::string_view since(std::size_t begin) const { return text_.substr(begin, at_ - begin); }
  bool take_if(char wanted) {
    if (next() != wanted || done()) return false;
    ++at_;
    return true;
  }
  void require(char wanted) {
    if (!take_if(wanted)) fail(fmt::format("'{}' is missing", wanted));
  }

  /// Takes the digits from here on: at least one.
  std::string_view take_digits() {
    const std::size_t begin = at_;
    while (!done() && std::isdigit(static_cast<unsigned char>(next())) != 0) ++at_;
    if (at_ == begin) fail("a number is missing");
    return since(begin);
  }

  int to_number(std::string_view digits) const {
    constexpr std::size_t kMostDigits = 9;
    if (digits.size() > kMostDigits) fail(fmt::format("the number {} is too large", digits));
    int number = 0;
    for (const char digit : digits) number = number * 10 + (digit - '0');
    return number;
  }

  [[noreturn]] void fail(std::string_view why) const {
    throw InvalidArgument("'{}' is wrong at character {}: {}; the form is {}", text_, at_ + 1, why, form_);
  }

 private:
  std::string_view text_;
  std::string_view form_;
  std::size_t at_ = 0;
};

void require_room(const Reader& reader, std::size_t entries) {
  if (entries > static_cast<std::size_t>(kMostSlurmEntries))
    reader.fail(fmt::format("it has more than {} entries", kMostSlurmEntries));
}

void require_short_name(const Reader& reader, std::size_t characters) {
  constexpr std::size_t kLongest = 253;  // as of a domain name
  if (characters > kLongest) reader.fail(fmt::format("host names have at most {} characters", kLongest));
}

/// The numbers of `[1-3,08]`, read after its opening bracket, as text with their zeros.
std::vector<std::string> take_bracket(Reader& reader) {
  std::vector<std::string> numbers;
  do {
    const std::string_view first = reader.take_digits();
    const std::string_view last = reader.take_if('-') ? reader.take_digits() : first;
    const int begin = reader.to_number(first);
    const int end = reader.to_number(last);
    if (end < begin) reader.fail(fmt::format("the range {}-{} runs backwards", first, last));
    require_room(reader, numbers.size() + static_cast<std::size_t>(end - begin) + 1);
    for (int number = begin; number <= end; ++number)
      numbers.push_back(fmt::format("{:0{}}", number, first.size()));
  } while (reader.take_if(','));
  reader.require(']');
  return numbers;
}

/// Takes the text up to the next comma or bracket: a piece of a host's name.
std::string_view take_name(Reader& reader) {
  const std::size_t begin = reader.position();
  while (!reader.done() && reader.next() != ',' && reader.next() != '[') {
    if (reader.next() == ']') reader.fail("']' has no '[' before it");
    if (std::isspace(static_cast<unsigned char>(reader.next())) != 0)
      reader.fail("host names have no spaces");
    if (std::isgraph(static_cast<unsigned char>(reader.next())) == 0)
      reader.fail("host names are of printable ASCII characters");
    reader.skip();
  }
  return reader.since(begin);
}

/// One entry up to the next comma: every combination of its brackets.
std::vector<std::string> take_hosts(Reader& reader) {
  std::vector<std::string> hosts{""};
  while (!reader.done() && reader.next() != ',') {
    if (reader.take_if('[')) {
      const std::vector<std::string> numbers = take_bracket(reader);
      require_room(reader, hosts.size() * numbers.size());
      require_short_name(reader, hosts.front().size() + numbers.front().size());
      std::vector<std::string> combined;
      for (const std::string& host : hosts)
        for (const std::string& number : numbers) combined.push_back(host + number);
      hosts = std::move(combined);
      continue;
    }
    const std::string_view piece = take_name(reader);
    require_short_name(reader, hosts.front().size() + piece.size());
    for (std::string& host : hosts) host += piece;
  }
  if (hosts.front().empty()) reader.fail("a host name is missing");
  return hosts;
}

}  // namespace

std::vector<RoleCount> parse_role_list(std::string_view text) {
  std::vector<RoleCount> roles;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view entry = text.substr(begin, end - begin);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0)
      refuse(text, begin, "a job and its number of tasks are missing");
    RoleCount role{std::string(entry.substr(0, equals))};
    const char* last = entry.data() + entry.size();
    const auto [stopped, status] = std::from_chars(entry.data() + equals + 1, last, role.tasks);
    if (status != std::errc() || stopped != last || role.tasks < 1)
      refuse(text, begin + equals + 1, "a number of tasks from 1 is missing");
    for (const RoleCount& other : roles)
      if (other.job == role.job) refuse(text, begin, fmt::format("the job '{}' is listed twice", role.job));
    roles.push_back(std::move(role));
    begin = end + 1;
  }
  return roles;
}

std::vector<std::string> expand_host_list(std::string_view list) {
  Reader reader(list, "n[1-2,5],m7");
  std::vector<std::string> hosts;
  while (!reader.done()) {
    const std::vector<std::string> more = take_hosts(reader);
    require_room(reader, hosts.size() + more.size());
    hosts.insert(hosts.end(), more.begin(), more.end());
    if (!reader.done()) reader.require(',');
  }
  return hosts;
}

std::vector<int> expand_tasks_per_node(std::string_view list) {
  Reader reader(list, "3(x2),1");
  std::vector<int> counts;
  do {
    const int tasks = reader.to_number(reader.take_digits());
    int nodes = 1;
    if (reader.take_if('(')) {
      reader.require('x');
      nodes = reader.to_number(reader.take_digits());
      reader.require(')');
    }
    require_room(reader, counts.size() + static_cast<std::size_t>(nodes));
    counts.insert(counts.end(), static_cast<std::size_t>(nodes), tasks);
  } while (reader.take_if(','));
  if (!reader.done()) reader.fail("a comma is missing");
  return counts;
}

}  // namespace cohort
