#include <cohort/collective/algorithm.h>

#include <algorithm>
#include <map>
#include <mutex>

#include <cohort/base/error.h>

#include "algorithm_registry.h"
#include "built_in_algorithms.h"
#include "collective/task/task_group.h"

namespace cohort {
namespace {

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

}  // namespace cohort
