// The values of single options, parsed and checked. Knows nothing of Cohort: peer_sweep takes them, too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::bench {

/// @throws UsageError unless `text` is a whole number from 1 to `most`.
[[nodiscard]] int parse_count(std::string_view option, const std::string& text, int most);

/// @throws UsageError unless `text` is a number of milliseconds from 0 to an hour.
[[nodiscard]] double parse_milliseconds(std::string_view option, const std::string& text);

/// @throws UsageError unless `text` is a number above 0 and at most 1.
[[nodiscard]] double parse_part(std::string_view option, const std::string& text);

/// True for `first`, false for `second`. @throws UsageError for anything else.
[[nodiscard]] bool parse_choice(std::string_view option, const std::string& text, std::string_view first,
                                std::string_view second);

/// The sizes of a sweep: from a smallest to a largest number of bytes, each four times the one before.
/// Written `4:64M`, or `1M` for a single size; K, M and G are powers of 1024.
struct SizeRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// @throws UsageError saying which part is wrong and what a range looks like.
[[nodiscard]] SizeRange parse_size_range(std::string_view text);

/// The sizes of the sweep, ascending; `last` is among them only if a step meets it.
[[nodiscard]] std::vector<std::size_t> sizes_in(SizeRange range);

/// A size as the options take it, for example `64M` or `1000`.
[[nodiscard]] std::string format_size(std::size_t bytes);

}  // namespace cohort::bench
