#include <cohort/trainer/history.h>

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

/// The part of `text` before `separator`, which is taken off with it.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

template <class Number>
Number parse(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw InvalidArgument("the text of a history has '{}' where a number belongs", text);
  return number;
}

}  // namespace

std::vector<double> History::of(std::string_view name) const {
  std::vector<double> values;
  for (const Epoch& epoch : epochs_)
    if (const double* value = epoch.logs.find(name)) values.push_back(*value);
  return values;
}

// A line for each epoch: its number, and after tabs, name and value of each entry. The shortest decimal form
// of a double is read back to the same bits.
std::string History::to_text() const {
  std::string text;
  for (const Epoch& epoch : epochs_) {
    text += fmt::format("{}", epoch.number);
    for (const auto& [name, value] : epoch.logs) text += fmt::format("\t{}\t{}", name, value);
    text += '\n';
  }
  return text;
}

History History::from_text(std::string_view text) {
  History history;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    Epoch& epoch = history.epochs_.emplace_back(Epoch{parse<int>(take_until(line, '\t'))});
    while (!line.empty()) {
      const std::string_view name = take_until(line, '\t');
      epoch.logs.set(name, parse<double>(take_until(line, '\t')));
    }
  }
  return history;
}

}  // namespace cohort
