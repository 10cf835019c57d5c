#include <cohort/train/optimizers/optimizer_registry.h>

#include <map>

#include <cohort/base/error.h>

namespace cohort {
namespace {

/// Filled before `main`, and only read after that.
std::map<std::string, OptimizerMaker, std::less<>>& makers() {
  static std::map<std::string, OptimizerMaker, std::less<>> by_type;
  return by_type;
}

}  // namespace

bool register_optimizer(std::string_view type, OptimizerMaker make) {
  const auto [place, added] = makers().emplace(type, make);
  if (!added && place->second != make)
    throw InvalidArgument("two classes of optimizers are registered as '{}'", type);
  return added;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerRecipe& recipe) {
  const auto found = makers().find(recipe.type);
  if (found != makers().end()) return found->second(recipe.options);
  throw InvalidArgument(
      "no optimizer is registered as '{}' in this program: all tasks must run the same one, with "
      "COHORT_REGISTER_OPTIMIZER in one of its source files",
      recipe.type);
}

void detail::throw_wrong_options(std::string_view type, std::size_t bytes, std::size_t expected) {
  throw InvalidArgument(
      "the options of optimizer '{}' came in {} bytes, but have {} here: all tasks must run "
      "the same program",
      type, bytes, expected);
}

}  // namespace cohort
