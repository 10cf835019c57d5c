// The command that makes a checkpoint of safetensors files.

#include <charconv>
#include <functional>
#include <map>
#include <string>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/safetensors.h>
#include <cohort/strategy/strategy.h>
#include <cohort/strategy/strategy_extended.h>

#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/workers.h"
#include "command.h"
#include "selection.h"

namespace cohort::tool {
namespace {

std::int64_t step_given(const Arguments& arguments) {
  const std::string text = arguments.text("--step").value_or("0");
  std::int64_t step = -1;
  const char* const last = text.data() + text.size();
  const auto [end, status] = std::from_chars(text.data(), last, step);
  if (status != std::errc() || end != last || step < 0)
    throw WrongUse(fmt::format("--step is '{}', and must be a number from 0", text));
  return step;
}

}  // namespace

int import_tensors(const Arguments& arguments) {
  const auto folder = arguments.text("--to");
  if (!folder) throw WrongUse("import needs --to FOLDER");
  const std::int64_t step = step_given(arguments);
  TensorSelection selection(arguments);

  SafetensorsReader reader(arguments.paths);
  std::map<std::string, checkpoint::NamedValue> values;
  std::string foreign;
  for (const auto& [name, tensor] : reader.tensors()) {
    if (!selection.takes(name)) continue;
    TensorSelection::Outcome outcome = selection.apply(name, tensor.dtype, tensor.shape);
    if (tensor.is_foreign) {
      outcome.dtype = tensor.dtype;
      foreign += fmt::format("  '{}' is {}: taken as {}{}\n", outcome.name, tensor.stored_as,
                             to_string(tensor.dtype), to_string(outcome.shape));
      if (outcome.is_transposed) checkpoint::require_transposable(name, tensor);
    }
    checkpoint::require_name(outcome.name);
    const auto read = [&reader, stored_name = name, outcome] {
      return checkpoint::converted(reader.read(stored_name), outcome.dtype, outcome.is_transposed);
    };
    values.emplace(outcome.name, checkpoint::NamedValue{.dtype = outcome.dtype,
                                                        .shape = [outcome] { return outcome.shape; },
                                                        .read = read,
                                                        .is_everywhere = true});
  }
  selection.require_used(arguments.paths.front());

  const Strategy alone = get_strategy();
  const std::string path = checkpoint::checkpoint_path(*folder, step);
  const checkpoint::Workers workers(alone.extended(), "imports", path, 0);
  checkpoint::CheckpointWriter(workers, values, *folder, step, nullptr, {}).write(workers);
  fmt::print("{}: {} values\n{}", path, values.size(), foreign);
  return kSound;
}

}  // namespace cohort::tool
