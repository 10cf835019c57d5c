#include <cohort/checkpoint/restore_status.h>

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "restored.h"

namespace cohort {
namespace {

/// What is wrong, in words; empty if nothing is.
std::string complaint(const checkpoint::Restored& restored, bool left_over_counts) {
  std::string text;
  if (!restored.missing.empty())
    text += fmt::format("; it does not have {}", fmt::join(restored.missing, ", "));
  if (left_over_counts && !restored.left_over.empty())
    text += fmt::format("; the program does not have {}", fmt::join(restored.left_over, ", "));
  return text.empty() ? text : fmt::format("checkpoint '{}' was not restored in full{}", restored.path, text);
}

void require(const std::string& complaint) {
  if (!complaint.empty()) throw InvalidArgument("{}", complaint);
}

}  // namespace

checkpoint::Restored::~Restored() {
  if (is_judged) return;
  try {
    const std::string text = complaint(*this, true);
    if (!text.empty()) logging::warning("{}; expect_partial() says that this is meant", text);
  } catch (const std::exception&) {
    // No memory for a warning.
  }
}

void checkpoint::Restored::keep_left_over() {
  reader.reset();
  if (left_over.empty()) return;
  reader.emplace(path);
  for (const std::string& name : left_over) reader->open(name, manifest.values.at(name));
}

void checkpoint::Restored::take(const std::string& name) {
  left_over.erase(name);
  if (left_over.empty()) reader.reset();
}

std::int64_t RestoreStatus::step() const { return restored_->manifest.step; }

std::vector<std::string> RestoreStatus::missing() const {
  return {restored_->missing.begin(), restored_->missing.end()};
}

std::vector<std::string> RestoreStatus::left_over() const {
  return {restored_->left_over.begin(), restored_->left_over.end()};
}

const RestoreStatus& RestoreStatus::assert_consumed() const {
  restored_->is_judged = true;
  require(complaint(*restored_, true));
  return *this;
}

const RestoreStatus& RestoreStatus::assert_existing_restored() const {
  restored_->is_judged = true;
  require(complaint(*restored_, false));
  return *this;
}

const RestoreStatus& RestoreStatus::expect_partial() const {
  restored_->is_judged = true;
  return *this;
}

}  // namespace cohort
