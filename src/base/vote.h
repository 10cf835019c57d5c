// Where several should say the same: whose answer differs from that of most, and where it does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace cohort {

/// What errors of workers that must agree name.
struct Vote {
  std::vector<std::size_t> odd;  ///< those with another answer than most, in their order
  std::size_t usual = 0;         ///< the first that gave the usual answer, that of most
  std::size_t usual_count = 0;   ///< how many gave the usual answer

  [[nodiscard]] bool is_unanimous() const noexcept { return odd.empty(); }
};

/// Of equally frequent answers, the one that comes first counts as usual. Thousands may answer: each is
/// compared with the different answers alone, which are few.
template <class Answers, class Projection = std::identity>
[[nodiscard]] Vote count_votes(const Answers& answers, Projection projection = {}) {
  struct Kind {
    std::size_t first;
    std::size_t votes;
  };
  const auto answer = [&](std::size_t i) -> decltype(auto) { return std::invoke(projection, answers[i]); };
  std::vector<Kind> kinds;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto same = [&](const Kind& kind) { return answer(kind.first) == answer(i); };
    const auto kind = std::ranges::find_if(kinds, same);
    if (kind == kinds.end())
      kinds.push_back({i, 1});
    else
      ++kind->votes;
  }
  if (kinds.empty()) return {};
  const Kind usual = *std::ranges::max_element(kinds, {}, &Kind::votes);
  Vote vote{.odd = {}, .usual = usual.first, .usual_count = usual.votes};
  if (kinds.size() == 1) return vote;
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answer(i) != answer(usual.first)) vote.odd.push_back(i);
  return vote;
}

/// The first line in which two texts differ, as each has it; `nothing` for one that has ended.
[[nodiscard]] inline std::pair<std::string, std::string> first_difference(const std::string& a,
                                                                          const std::string& b,
                                                                          const std::string& nothing) {
  std::istringstream lines_of_a(a), lines_of_b(b);
  std::string line_of_a, line_of_b;
  while (true) {
    const bool has_a = static_cast<bool>(std::getline(lines_of_a, line_of_a));
    const bool has_b = static_cast<bool>(std::getline(lines_of_b, line_of_b));
    if (!has_a || !has_b || line_of_a != line_of_b)
      return {has_a ? line_of_a : nothing, has_b ? line_of_b : nothing};
  }
}

}  // namespace cohort
