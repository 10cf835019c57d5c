#include "server/executions.h"

#include <algorithm>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/server/detail/codec.h>

#include "server/open_commit.h"

namespace cohort::server {
namespace {

/// How often the variable was changed since the task of each gradient read it.
std::vector<std::byte> ages_of_gradients(std::span<const Write> writes, const Store& store) {
  Encoder encoder;
  for (const Write& write : writes) {
    if (write.read_version == Write::kNotRead || write.variable >= store.size()) continue;
    // A standby that took over may not have what the task has read in the memory of the one before.
    const std::uint64_t version = store.version(write.variable);
    encoder.number(version - std::min(version, write.read_version));
  }
  return encoder.take();
}

}  // namespace

void Executions::require_not_fenced(const Execution& execution) const {
  if (store_.is_fenced(execution.incarnation))
    throw Aborted("this worker was taken for lost: what it writes is not wanted any more");
}

bool Executions::is_settled(const Execution& execution) const {
  const auto forgotten = forgotten_.find(execution.incarnation);
  return (forgotten != forgotten_.end() && execution.number <= forgotten->second) ||
         store_.find_commit(execution).has_value();
}

/// Nobody asks any more for the executions of the incarnation up to `number`.
void Executions::forget(std::uint64_t incarnation, std::uint64_t number) {
  std::uint64_t& forgotten = forgotten_[incarnation];
  forgotten = std::max(forgotten, number);
  store_.forget(incarnation, number);
  std::erase_if(prepared_, [&](const auto& entry) {
    return entry.first.incarnation == incarnation && entry.first.number <= number;
  });
}

std::vector<std::byte> Executions::commit(const CommitMessage& message) {
  forget(message.execution.incarnation, message.forget);
  std::vector<std::byte> answer = ages_of_gradients(message.writes, store_);
  OpenCommit open(store_);
  for (const Write& write : message.writes) apply(write);
  open.make(message.execution, message.result);
  return answer;
}

void Executions::prepare(CommitMessage message) {
  forget(message.execution.incarnation, message.forget);
  for (Write& write : message.writes) {
    require_fitting(write, store_);
    fetch_value(write);  // its sender does not wait for the end of the commit
  }
  {
    const OpenCommit trial(store_);  // what cannot be written is found out before anything is
    for (const Write& write : message.writes) apply(write);
  }
  prepared_.insert_or_assign(message.execution, std::move(message));
}

bool Executions::make_prepared(const Execution& execution) {
  const auto prepared = prepared_.find(execution);
  if (prepared == prepared_.end()) return false;
  OpenCommit open(store_);
  for (const Write& write : prepared->second.writes) apply(write);
  open.make(execution, {});
  prepared_.erase(prepared);
  return true;
}

FenceAnswer Executions::fence(std::uint64_t incarnation) {
  store_.fence(incarnation);
  store_.fence(outside_executions(incarnation));
  FenceAnswer answer{store_.commits_of(incarnation), {}};
  for (const auto& [execution, message] : prepared_) {
    if (execution.incarnation == incarnation) answer.prepared.push_back(execution.number);
  }
  return answer;
}

void Executions::drop(std::uint64_t incarnation) {
  for (const std::uint64_t lost : {incarnation, outside_executions(incarnation)})
    forget(lost, ~std::uint64_t{0});
}

}  // namespace cohort::server
