#include "choice_log.h"

#include <algorithm>
#include <tuple>

namespace cohort {

ChoiceLog& ChoiceLog::of_this_process() {
  static ChoiceLog log;
  return log;
}

void ChoiceLog::note(const CollectiveCall& call, std::string_view algorithm, ChoiceReason reason) {
  const std::size_t bytes = call.elements * size_of(call.dtype);
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(choices_, [&](const LoggedChoice& choice) {
    return choice.kind == call.kind && choice.reason == reason && choice.algorithm == algorithm;
  });
  if (found == choices_.end()) {
    choices_.push_back({call.kind, std::string(algorithm), reason, 1, bytes, bytes});
    return;
  }
  ++found->calls;
  found->least_bytes = std::min(found->least_bytes, bytes);
  found->most_bytes = std::max(found->most_bytes, bytes);
}

std::vector<LoggedChoice> ChoiceLog::choices() const {
  std::vector<LoggedChoice> choices;
  {
    const std::lock_guard lock(mutex_);
    choices = choices_;
  }
  std::ranges::sort(choices, {}, [](const LoggedChoice& choice) {
    return std::tuple(choice.kind, choice.least_bytes, choice.algorithm, choice.reason);
  });
  return choices;
}

}  // namespace cohort
