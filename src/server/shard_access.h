// How the shards of a variable are read and written together, wherever they are kept.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <cohort/server/shard_layout.h>
#include <cohort/value/variable.h>

namespace cohort {

/// The values of all shards, on whatever devices they lie. All servers are asked at once.
[[nodiscard]] std::vector<Tensor> read_shards(std::span<const Variable> shards);

/// The rows that each of `parts` names, on the host. All servers are asked at once.
[[nodiscard]] std::vector<Tensor> read_rows(std::span<const Variable> shards,
                                            std::span<const ShardRows> parts);

/// Calls `function`, which changes shards. Those that servers keep change together when it has ended, or not
/// at all if it throws.
void change_together(std::span<const Variable> shards, const std::function<void()>& function);

/// Rows `rows` of `from`, a CPU tensor, become the rows `positions` of `to`.
void copy_rows(const Tensor& from, std::span<const std::int64_t> rows, const Tensor& to,
               std::span<const std::int64_t> positions);

}  // namespace cohort
