#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/config.h>

#include "device/machine.h"
#include "facts.h"

namespace cohort::info {
namespace {

using Json = nlohmann::ordered_json;

std::size_t index_of(Level level) { return static_cast<std::size_t>(level); }

const char* plural(std::size_t count) { return count == 1 ? "" : "s"; }

/// The number of the first core, from `first` on, that is not in its group of this level.
std::size_t end_of_group(const Machine& machine, Level level, std::size_t first) {
  std::size_t end = first;
  while (end < machine.cores().size() &&
         nearest_shared_level(machine.cores()[first].group, machine.cores()[end].group) <= level)
    ++end;
  return end;
}

/// A line for each group of the levels, which are nearest first, among these cores.
void draw(const Machine& machine, std::span<const Level> levels, std::size_t first, std::size_t end,
          int depth, std::string& text) {
  if (levels.empty()) return;
  const Level level = levels.back();
  while (first < end) {
    const std::size_t next = end_of_group(machine, level, first);
    text += fmt::format("{:{}}{}", "", 2 * depth, to_string(level));
    if (level != Level::kMachine) text += fmt::format(" {}", machine.cores()[first].group[index_of(level)]);
    text += next - first == 1 ? fmt::format(": core {}\n", first)
                              : fmt::format(": cores {} to {}\n", first, next - 1);
    draw(machine, levels.first(levels.size() - 1), first, next, depth + 1, text);
    first = next;
  }
}

std::string levels_in_words(const Machine& machine) {
  std::string text;
  for (const Level level : machine.levels_that_count()) {
    const auto groups = static_cast<std::size_t>(machine.groups(level));
    const std::size_t cores = machine.cores().size() / groups;
    text += fmt::format("{}{} {}{} of {}{} core{}", text.empty() ? "" : ", ", groups, to_string(level),
                        plural(groups), machine.cores().size() % groups == 0 ? "" : "about ", cores,
                        plural(cores));
  }
  return text;
}

}  // namespace

TopologyFacts gather_topology(const std::string& given) {
  const std::string description = given.empty() ? config().topology() : given;
  return {.description = description, .machine = Machine::read(description)};
}

std::string to_text(const TopologyFacts& facts) {
  const Machine& machine = facts.machine;
  std::string text = fmt::format(
      "{}: {} core{} with {} hardware thread{}\nlargest cache that cores share: {}\nlevels: {}\n\n",
      facts.description.empty() ? "This machine" : facts.description, machine.cores().size(),
      plural(machine.cores().size()), machine.threads(), plural(machine.threads()),
      machine.cache().empty() ? "none is known" : machine.cache(), levels_in_words(machine));
  draw(machine, machine.levels_that_count(), 0, machine.cores().size(), 0, text);
  return text;
}

std::string to_json(const TopologyFacts& facts) {
  Json levels = Json::array();
  for (const Level level : facts.machine.levels_that_count())
    levels.push_back({{"level", to_string(level)}, {"groups", facts.machine.groups(level)}});
  Json cores = Json::array();
  for (const Machine::Core& core : facts.machine.cores()) {
    cores.push_back({{"threads", core.threads},
                     {"cache", core.group[index_of(Level::kCache)]},
                     {"numa_node", core.group[index_of(Level::kNumaNode)]},
                     {"socket", core.group[index_of(Level::kSocket)]}});
  }
  return Json{{"description", facts.description},
              {"cache", facts.machine.cache()},
              {"levels", std::move(levels)},
              {"cores", std::move(cores)}}
      .dump(2);
}

}  // namespace cohort::info
