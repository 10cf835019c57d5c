// Named numbers of a training, in the order in which they were set: the loss and the metrics of a batch or an
// epoch, as callbacks and histories have them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/base/error.h>

namespace cohort {

class Logs {
 public:
  using Entry = std::pair<std::string, double>;

  /// Adds the number, or replaces the one of this name. Setting a name again allocates nothing.
  /// @throws InvalidArgument for a name with control characters, which logs and histories could not be read
  /// back with.
  void set(std::string_view name, double value) {
    const auto found = std::ranges::find(entries_, name, &Entry::first);
    if (found != entries_.end()) {
      found->second = value;
      return;
    }
    if (std::ranges::any_of(name, [](unsigned char c) { return c < ' ' || c == 127; }))
      throw InvalidArgument("a number of the logs cannot be named '{}': there is a control character", name);
    entries_.emplace_back(name, value);
  }

  /// Null where there is no number of this name.
  [[nodiscard]] const double* find(std::string_view name) const {
    const auto found = std::ranges::find(entries_, name, &Entry::first);
    return found == entries_.end() ? nullptr : &found->second;
  }

  /// @throws InvalidArgument where there is no number of this name, naming those that are there.
  [[nodiscard]] double at(std::string_view name) const {
    if (const double* value = find(name)) return *value;
    std::string names;
    for (const auto& [each, value] : entries_) names += (names.empty() ? "" : ", ") + each;
    throw InvalidArgument("the logs have no '{}'; they have [{}]", name, names);
  }

  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace cohort
