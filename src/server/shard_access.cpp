#include "server/shard_access.h"

#include <cstring>
#include <utility>

#include <cohort/base/error.h>

#include "server/server_variable.h"
#include "value/read_cache.h"
#include "value/thread_scopes.h"

namespace cohort {
namespace {

using server::ServerVariable;
using server::Wanted;

/// @throws WrongContext while another strategy is active, as Variable::read.
void require_own_strategy(const ServerVariable& variable) {
  const VariableOwner* active = current_mode().strategy;
  if (active == nullptr || active == variable.owner()) return;
  throw WrongContext(
      "use of variable '{}', which belongs to {}, while {} is active: mixing different strategies",
      variable.options().name, variable.owner()->strategy_name(), active->strategy_name());
}

/// The states of shards that one client reads from servers; none where some are kept otherwise.
std::vector<const ServerVariable*> kept_by_servers(std::span<const Variable> shards) {
  std::vector<const ServerVariable*> kept;
  for (const Variable& shard : shards) {
    const auto* variable = dynamic_cast<const ServerVariable*>(shard.state().get());
    if (variable == nullptr) return {};
    require_own_strategy(*variable);
    if (!kept.empty() && &variable->client() != &kept.front()->client()) return {};
    kept.push_back(variable);
  }
  return kept;
}

}  // namespace

std::vector<Tensor> read_shards(std::span<const Variable> shards) {
  const std::vector<const ServerVariable*> kept = kept_by_servers(shards);
  if (kept.empty()) {
    std::vector<Tensor> values;
    for (const Variable& shard : shards) values.push_back(shard.read());
    return values;
  }
  ReadCache* const cache = thread_scopes().cache;
  std::vector<Tensor> values(kept.size());
  std::vector<Wanted> wanted;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (std::optional<Tensor> value = cache == nullptr ? std::nullopt : cache->find(*kept[i])) {
      values[i] = std::move(*value);
      continue;
    }
    wanted.push_back(kept[i]->wanted());
    places.push_back(i);
  }
  std::vector<Tensor> read = kept.front()->client().read(wanted);
  for (std::size_t i = 0; i < places.size(); ++i) {
    values[places[i]] =
        cache == nullptr ? std::move(read[i]) : cache->keep(*kept[places[i]], std::move(read[i]));
  }
  return values;
}

std::vector<Tensor> read_rows(std::span<const Variable> shards, std::span<const ShardRows> parts) {
  if (parts.empty()) return {};
  const std::vector<const ServerVariable*> kept = kept_by_servers(shards);
  std::vector<Tensor> values;
  std::vector<Wanted> wanted;
  for (const ShardRows& part : parts) {
    const auto shard = static_cast<std::size_t>(part.shard);
    if (kept.empty()) {
      const Tensor all = shards[shard].read().on_host();
      values.push_back(Tensor::uninitialized(all.shape().with(0, std::ssize(part.rows)), all.dtype()));
      copy_rows(all, part.rows, values.back(), {});
      continue;
    }
    wanted.push_back(kept[shard]->wanted(Tensor::from(part.rows)));
  }
  return kept.empty() ? values : kept.front()->client().read(wanted);
}

void change_together(std::span<const Variable> shards, const std::function<void()>& function) {
  const std::vector<const ServerVariable*> kept = kept_by_servers(shards);
  if (kept.empty()) return function();
  kept.front()->client().write_together(function);
}

void copy_rows(const Tensor& from, std::span<const std::int64_t> rows, const Tensor& to,
               std::span<const std::int64_t> positions) {
  const std::size_t row_bytes = from.shape().row().elements() * size_of(from.dtype());
  const std::size_t count = rows.empty() ? positions.size() : rows.size();
  if (row_bytes == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t source = rows.empty() ? i : static_cast<std::size_t>(rows[i]);
    const std::size_t target = positions.empty() ? i : static_cast<std::size_t>(positions[i]);
    std::memcpy(to.data() + target * row_bytes, from.data() + source * row_bytes, row_bytes);
  }
}

}  // namespace cohort
