// Whose answer differs from that of most: what the errors of workers that must agree name.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace cohort::mpi {

struct Vote {
  std::vector<std::size_t> odd;  ///< those with another answer than most, by rank
  std::size_t usual = 0;         ///< the first rank that gave the usual answer, that of most
  std::size_t usual_count = 0;   ///< how many gave the usual answer

  [[nodiscard]] bool is_unanimous() const noexcept { return odd.empty(); }
};

/// Of answers by rank; of equally frequent ones, the first counts as usual.
template <class Answer>
[[nodiscard]] Vote count_votes(std::span<const Answer> answers) {
  // The usual case, which thousands of workers must not count by the square of their number.
  if (std::ranges::adjacent_find(answers, std::not_equal_to()) == answers.end())
    return {.odd = {}, .usual = 0, .usual_count = answers.size()};
  const auto votes = [&](const Answer& answer) { return std::ranges::count(answers, answer); };
  const auto usual = std::ranges::max_element(answers, {}, votes);
  Vote vote{.odd = {},
            .usual = static_cast<std::size_t>(usual - answers.begin()),
            .usual_count = static_cast<std::size_t>(votes(*usual))};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] != *usual) vote.odd.push_back(i);
  }
  return vote;
}

}  // namespace cohort::mpi
