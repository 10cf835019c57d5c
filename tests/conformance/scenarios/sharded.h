// Variables in shards that lines of golden2.jsonl describe, plain ones and ones that servers keep: lines that
// were recorded of plain ones are replayed with both, and both must give the same.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <cohort/server/shard_layout.h>
#include <cohort/server/sharded_variable.h>

#include "common.h"
#include "server_threads.h"

namespace cohort::conformance {

inline constexpr std::string_view kAnyShards = "shards need not be equal";

[[nodiscard]] inline ShardLayout layout_of(const Json& input) {
  return ShardLayout(input.at("shards").get<std::vector<std::int64_t>>());
}

/// The whole: element j of row i is 10 i + j + 1.
[[nodiscard]] inline Tensor counted_rows(const Json& input) {
  const std::int64_t rows = layout_of(input).rows();
  const auto columns = input.at("cols").get<std::int64_t>();
  std::vector<double> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      values.push_back(static_cast<double>(10 * row + column + 1));
    }
  }
  return Tensor::from(values, {rows, columns}).cast(parse_dtype(input.value("dtype", "float32")));
}

/// A variable of these rows, made where the calling thread makes variables.
[[nodiscard]] ShardedVariable in_shards(const Tensor& whole, const ShardLayout& layout);

[[nodiscard]] Json show_shards(const ShardedVariable& variable);

/// What is done with a line's variable.
using ShardedUse = std::function<Json(const Record&, const ShardedVariable&)>;

/// This process, and servers that all lines share from the first one on.
class ShardedPlaces {
 public:
  /// What comes of `scenario` in both places.
  [[nodiscard]] Json everywhere(const std::function<Json()>& scenario);

  /// Lines whose `use` begins with the variable that they describe.
  [[nodiscard]] static Family family(const std::shared_ptr<ShardedPlaces>& places,
                                     std::vector<std::string_view> patterns, const ShardedUse& use,
                                     std::vector<FamilyDifference> differences = {});

 private:
  std::optional<ServerThreads> servers_;
  std::optional<ParameterServerStrategy> strategy_;
};

}  // namespace cohort::conformance
