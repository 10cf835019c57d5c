#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/base/timeline_span.h>
#include <cohort/checkpoint/safetensors.h>
#include <cohort/strategy/strategy_extended.h>

#include "base/crc32c.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/workers.h"
#include "tensor_rules.h"

namespace cohort {
namespace {

/// What is given a tensor.
struct Target {
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::function<void(const Tensor&)> assign = {};
};

/// A tensor and its target.
struct Load {
  std::string tensor = {};  ///< its name in the file
  const Target* target = nullptr;
  bool is_transposed = false;
};

std::map<std::string, Target> targets_of(std::span<const Variable> variables,
                                         std::span<const ShardedVariable> sharded) {
  std::map<std::string, Target> targets;
  const auto add = [&](const std::string& name, Target target) {
    if (!targets.emplace(name, std::move(target)).second)
      throw InvalidArgument("two variables are called '{}': tensors find them by their names", name);
  };
  for (const Variable& variable : variables) {
    if (variable.synchronization() == VariableSynchronization::kOnRead &&
        variable.aggregation() == VariableAggregation::kNone) {
      throw InvalidArgument(
          "variable '{}' cannot be loaded: it is ON_READ with aggregation none, so each replica has its own "
          "value; choose an aggregation",
          variable.name());
    }
    add(variable.name(),
        {variable.dtype(), variable.shape(), [variable](const Tensor& value) { variable.assign(value); }});
  }
  for (const ShardedVariable& variable : sharded) {
    add(variable.name(),
        {variable.dtype(), variable.shape(), [variable](const Tensor& value) { variable.assign(value); }});
  }
  return targets;
}

/// Why a tensor does not fit a variable; nothing if it does.
std::optional<std::string> why_not(const std::string& name, const SafetensorsTensor& tensor,
                                   bool is_transposed, const std::string& variable, const Target& target,
                                   bool may_convert) {
  const Shape shape = is_transposed ? checkpoint::transposed(tensor.shape) : tensor.shape;
  const auto say = [&](std::string_view hint) {
    const std::string stored = tensor.is_foreign
                                   ? fmt::format("{} (read as {})", tensor.stored_as, to_string(tensor.dtype))
                                   : std::string(to_string(tensor.dtype));
    return fmt::format("tensor '{}' in '{}' is {}{}{}, and variable '{}' is {}{}{}", name, tensor.file,
                       stored, to_string(shape), is_transposed ? " when transposed" : "", variable,
                       to_string(target.dtype), to_string(target.shape), hint);
  };
  if (shape != target.shape) {
    const bool is_other_way = shape.rank() == 2 && checkpoint::transposed(shape) == target.shape;
    return say(is_other_way ? (is_transposed ? ": do not transpose it" : ": transpose it") : "");
  }
  if (tensor.dtype == target.dtype) return std::nullopt;
  if (tensor.is_foreign)
    return say(": its numbers cannot be converted here; convert them where it was written");
  if (!is_floating(tensor.dtype) || !is_floating(target.dtype)) return say("");
  if (!may_convert) return say(": the option `convert` allows that");
  return std::nullopt;
}

/// What is loaded, and what has no counterpart. @throws InvalidArgument.
std::vector<Load> match_all(const SafetensorsReader& reader, const std::string& where,
                            const std::map<std::string, Target>& targets, const SafetensorsOptions& options,
                            LoadedSafetensors& loaded) {
  checkpoint::TensorRules rules(options.rename, options.transpose);
  std::map<std::string, Load> by_name;
  for (const auto& [name, tensor] : reader.tensors()) {
    std::string renamed = rules.rename(name);
    const bool is_transposed = rules.is_transposed(name, renamed, tensor.shape);
    if (is_transposed) checkpoint::require_transposable(name, tensor);
    const auto [other, is_new] = by_name.try_emplace(std::move(renamed), Load{name, nullptr, is_transposed});
    if (!is_new) {
      throw InvalidArgument("the tensors '{}' and '{}' are both called '{}' here: mend the rules",
                            other->second.tensor, name, other->first);
    }
  }
  rules.require_used(where);

  std::vector<Load> loads;
  std::vector<std::string> mismatches;
  for (const auto& [name, target] : targets) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      loaded.missing.push_back(name);
      continue;
    }
    Load load = found->second;
    load.target = &target;
    if (auto why = why_not(load.tensor, reader.tensors().at(load.tensor), load.is_transposed, name, target,
                           options.convert))
      mismatches.push_back(std::move(*why));
    loads.push_back(std::move(load));
  }
  for (const auto& [name, load] : by_name)
    if (!targets.contains(name)) loaded.unexpected.push_back(load.tensor);

  std::string complaints;
  if (!loaded.missing.empty() && !options.allow_missing) {
    complaints += fmt::format("; no tensor for the variables {} ({} of {}); allow_missing lets them be",
                              checkpoint::list_names(loaded.missing), loaded.missing.size(), targets.size());
  }
  if (!loaded.unexpected.empty() && !options.allow_unexpected) {
    complaints += fmt::format(
        "; no variable for the tensors {} ({} of {}); allow_unexpected passes over them",
        checkpoint::list_names(loaded.unexpected), loaded.unexpected.size(), reader.tensors().size());
  }
  if (!mismatches.empty()) complaints += fmt::format("; {}", checkpoint::list_names(mismatches));
  if (!complaints.empty()) throw InvalidArgument("cannot load '{}'{}", where, complaints);
  return loads;
}

/// What workers must have alike. It takes a pass over all that is loaded.
std::string content_of(SafetensorsReader& reader, const std::vector<Load>& loads) {
  std::string text;
  for (const Load& load : loads) {
    const Tensor tensor = reader.read(load.tensor);
    text += fmt::format("tensor '{}' {} with checksum {}{}\n", load.tensor, describe(tensor),
                        checkpoint::hexadecimal(detail::crc32c(tensor.raw())),
                        load.is_transposed ? ", transposed" : "");
  }
  return text;
}

}  // namespace

LoadedSafetensors load_safetensors(std::span<const std::string> paths, std::span<const Variable> variables,
                                   const SafetensorsOptions& options,
                                   std::span<const ShardedVariable> sharded, const Strategy& strategy) {
  strategy.extended().require_cross_replica("load_safetensors");
  const TimelineSpan span("load safetensors");
  const std::string where = paths.size() == 1 ? paths.front() : fmt::format("{}", fmt::join(paths, "', '"));
  const checkpoint::Workers workers(strategy.extended(), "loads", where, options.timeout_seconds);
  std::map<std::string, Target> targets;
  std::optional<SafetensorsReader> reader;
  std::vector<Load> loads;
  LoadedSafetensors loaded;
  const auto plan = [&] {
    targets = targets_of(variables, sharded);
    reader.emplace(paths);
    loads = match_all(*reader, where, targets, options, loaded);
    if (workers.size() > 1) return content_of(*reader, loads);
    // What can be wrong in an element; all else was read in the headers.
    for (const Load& load : loads)
      if (load.target->dtype == DType::kBool) static_cast<void>(reader->read(load.tensor));
    return std::string();
  };
  workers.agree(plan, "what the workers read from '" + where + "'");
  workers.together_do([&] {
    for (const Load& load : loads)
      load.target->assign(
          checkpoint::converted(reader->read(load.tensor), load.target->dtype, load.is_transposed));
  });
  return loaded;
}

LoadedSafetensors load_safetensors(const std::string& path, std::span<const Variable> variables,
                                   const SafetensorsOptions& options,
                                   std::span<const ShardedVariable> sharded, const Strategy& strategy) {
  return load_safetensors(std::span<const std::string>(&path, 1), variables, options, sharded, strategy);
}

}  // namespace cohort
