// The variable in shards that lines of golden2.jsonl describe.
#pragma once

#include <cstdint>
#include <vector>

#include <cohort/server/shard_layout.h>

#include "common.h"

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

}  // namespace cohort::conformance
