#include "terms.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::mpi {
namespace {

/// `say(value)` completes the sentence that begins with a worker.
template <class Say>
void require_same(std::span<const Terms> by_worker, std::int64_t Terms::*field,
                  std::span<const WorkerInfo> workers, Say say) {
  const auto votes = [&](const Terms& terms) { return std::ranges::count(by_worker, terms.*field, field); };
  const auto usual = std::ranges::max_element(by_worker, {}, votes);
  const auto odd =
      std::ranges::find_if(by_worker, [&](const Terms& terms) { return terms.*field != (*usual).*field; });
  if (odd == by_worker.end()) return;
  const auto who = [&](auto at) {
    return describe(workers[static_cast<std::size_t>(at - by_worker.begin())]);
  };
  throw InvalidArgument("all workers must make the same communicators, but {} {}, while {} {}", who(odd),
                        say((*odd).*field), who(usual), say((*usual).*field));
}

}  // namespace

void require_same_terms(std::span<const Terms> by_worker, std::span<const WorkerInfo> workers) {
  require_same(by_worker, &Terms::members, workers, [](std::int64_t members) {
    return fmt::format("makes one with {} member{}", members, members == 1 ? "" : "s");
  });
  require_same(by_worker, &Terms::reproducible, workers, [](std::int64_t reproducible) {
    return fmt::format("asks for reproducible = {}", reproducible != 0);
  });
}

}  // namespace cohort::mpi
