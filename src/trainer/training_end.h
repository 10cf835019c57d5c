// A file in the folder of checkpoints by which an evaluator knows that the training has ended, though it has
// not had all its steps.
#pragma once

#include <cstdint>
#include <string>

namespace cohort::detail {

/// Says that a training to `max_steps` has ended after `step` steps. @throws Unavailable naming the file.
void mark_training_end(const std::string& folder, std::int64_t step, std::int64_t max_steps);

/// Whether a training to `max_steps` has ended.
[[nodiscard]] bool has_training_ended(const std::string& folder, std::int64_t max_steps);

}  // namespace cohort::detail
