#include "selection.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/collective/algorithm.h>

#include "collective/task/task_group.h"

namespace cohort {

const BuiltInAlgorithm* find_built_in(std::string_view name) {
  const std::span<const BuiltInAlgorithm> all = built_in_algorithms();
  const auto found = std::ranges::find(all, name, &BuiltInAlgorithm::name);
  return found == all.end() ? nullptr : &*found;
}

namespace {

/// What programs have registered.
class Registry {
 public:
  static Registry& of_this_process() {
    static auto* const registry = new Registry;  // never destroyed: algorithms stay registered
    return *registry;
  }

  void add(std::shared_ptr<const Algorithm> algorithm) {
    const std::string name(algorithm->name());
    const std::lock_guard lock(mutex_);
    if (!algorithms_.emplace(name, std::move(algorithm)).second)
      throw InvalidArgument("an algorithm named {} is registered already", name);
  }

  [[nodiscard]] std::vector<std::shared_ptr<const Algorithm>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<const Algorithm>> algorithms;
    for (const auto& entry : algorithms_) algorithms.push_back(entry.second);
    return algorithms;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Algorithm>> algorithms_;
};

bool is_well_formed(std::string_view name) {
  constexpr std::string_view kLegal = "abcdefghijklmnopqrstuvwxyz0123456789_";
  return !name.empty() && name.find_first_not_of(kLegal) == std::string_view::npos;
}

}  // namespace

// A default of the interface that registered algorithms are written against.
Task<> Peers::exchange(int to, std::span<const std::byte> data, int from, std::span<std::byte> into,
                       int tag) {
  TaskGroup tasks;
  tasks.add(receive(from, into, tag));
  tasks.add(send(to, data, tag));
  co_await tasks.wait_for_all();
}

void register_algorithm(std::shared_ptr<const Algorithm> algorithm) {
  const std::string_view name = algorithm->name();
  if (!is_well_formed(name)) {
    throw InvalidArgument(
        "'{}' cannot be an algorithm's name: use lower-case letters, digits and underscores", name);
  }
  if (name == kAutomatic || find_built_in(name) != nullptr)
    throw InvalidArgument("'{}' cannot be registered: the name is one of Cohort's own", name);
  if (!has_algorithms(algorithm->kind()))
    throw InvalidArgument("algorithm {}: {} has no algorithms", name, to_string(algorithm->kind()));
  Registry::of_this_process().add(std::move(algorithm));
}

std::vector<std::shared_ptr<const Algorithm>> registered_algorithms() {
  return Registry::of_this_process().all();
}

namespace {

std::optional<CollectiveKind> find_kind(std::string_view name) {
  for (const CollectiveTraits& traits : kCollectives) {
    if (traits.name == name && has_algorithms(traits.kind)) return traits.kind;
  }
  return std::nullopt;
}

/// What members compare: for example `COHORT_ALGORITHM=auto and the registered algorithms bruck
/// (all_gather)`.
std::string describe_choices(std::string_view setting,
                             std::span<const std::shared_ptr<const Algorithm>> registered) {
  std::vector<std::string> names;
  for (const auto& algorithm : registered)
    names.push_back(fmt::format("{} ({})", algorithm->name(), to_string(algorithm->kind())));
  return fmt::format("COHORT_ALGORITHM={} and {}", setting,
                     names.empty() ? "no registered algorithms"
                                   : fmt::format("the registered algorithms {}", fmt::join(names, ", ")));
}

}  // namespace

Selection::Selection(std::string_view setting, std::vector<std::shared_ptr<const Algorithm>> registered)
    : registered_(std::move(registered)) {
  while (true) {
    const std::size_t comma = setting.find(',');
    const std::string_view entry = setting.substr(0, comma);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) {
      want(entry, std::nullopt);
    } else {
      const std::optional<CollectiveKind> kind = find_kind(entry.substr(0, equals));
      if (!kind) {
        std::vector<std::string_view> kinds;
        for (const CollectiveTraits& traits : kCollectives) {
          if (has_algorithms(traits.kind)) kinds.push_back(traits.name);
        }
        throw InvalidArgument("COHORT_ALGORITHM: '{}' is no collective that has algorithms; these have: {}",
                              entry.substr(0, equals), fmt::join(kinds, ", "));
      }
      want(entry.substr(equals + 1), kind);
    }
    if (comma == std::string_view::npos) return;
    setting.remove_prefix(comma + 1);
  }
}

void Selection::want(std::string_view name, std::optional<CollectiveKind> kind) {
  const BuiltInAlgorithm* const built_in = find_built_in(name);
  const auto found =
      std::ranges::find_if(registered_, [name](const auto& algorithm) { return algorithm->name() == name; });
  const Algorithm* const own = found == registered_.end() ? nullptr : found->get();
  bool applies = name == kAutomatic;
  for (const CollectiveTraits& traits : kCollectives) {
    const CollectiveKind candidate = traits.kind;
    if (!has_algorithms(candidate) || (kind && candidate != *kind)) continue;
    Want& want = wants_[static_cast<std::size_t>(candidate)];
    if (name == kAutomatic) {
      want = {};
    } else if (built_in != nullptr && built_in->applies_to(candidate)) {
      want = {built_in, nullptr};
      applies = true;
    } else if (own != nullptr && own->kind() == candidate) {
      want = {nullptr, own};
      applies = true;
    }
  }
  if (!applies) {
    throw InvalidArgument("COHORT_ALGORITHM: there is no algorithm '{}'{}; choose one of {}", name,
                          kind ? fmt::format(" for {}", to_string(*kind)) : "", legal_names(kind));
  }
}

std::string Selection::legal_names(std::optional<CollectiveKind> kind) const {
  std::vector<std::string_view> names{kAutomatic};
  for (const BuiltInAlgorithm& algorithm : built_in_algorithms()) {
    if (!kind || algorithm.applies_to(*kind)) names.push_back(algorithm.name);
  }
  for (const auto& algorithm : registered_) {
    if (!kind || algorithm->kind() == *kind) names.push_back(algorithm->name());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Selection Selection::agreed(std::span<const WorkerInfo> workers, const BlobExchange& exchange) {
  const std::string& setting = config().algorithm();
  std::vector<std::shared_ptr<const Algorithm>> registered = registered_algorithms();
  if (workers.size() > 1 && exchange) {
    const std::vector<std::string> described = exchange(describe_choices(setting, registered));
    const auto differs = [&](const WorkerInfo& worker) {
      return described[static_cast<std::size_t>(worker.rank)] != described.front();
    };
    if (const auto odd = std::ranges::find_if(workers, differs); odd != workers.end()) {
      throw InvalidArgument(
          "workers would choose different algorithms: {} has {}, but {} has {}. All workers need the same "
          "setting, and must register the same algorithms before they make a communicator",
          describe(*odd), described[static_cast<std::size_t>(odd->rank)], describe(workers.front()),
          described.front());
    }
  }
  return {setting, std::move(registered)};
}

Selection::Choice Selection::choose(const CallShape& shape, const CostConstants& constants,
                                    double (*seconds_of_built_in)(const CallShape&,
                                                                  const CostConstants&)) const {
  const Want& want = wants_[static_cast<std::size_t>(shape.kind)];
  if (want.registered != nullptr && want.registered->is_legal(shape)) return {want.registered, true};
  Choice best;
  if (want.built_in != nullptr || !has_registered()) return best;
  double least = seconds_of_built_in(shape, constants);
  for (const auto& algorithm : registered_) {
    if (algorithm->kind() != shape.kind || !algorithm->is_legal(shape)) continue;
    const double seconds = algorithm->seconds(shape, constants);
    if (seconds < least) {
      least = seconds;
      best.algorithm = algorithm.get();
    }
  }
  return best;
}

}  // namespace cohort
