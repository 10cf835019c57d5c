// What page tables cost where the processes of a node map each other's heaps: each of them has its own ones
// for all heaps, 8 bytes for each page of 4 KiB that it uses, and next to nothing for huge pages.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace cohort {

/// What to say where each of a node's processes has so many bytes of its heap in small pages; nothing where
/// the tables take less than a hundredth of the heaps, or less than 256 MiB.
[[nodiscard]] std::optional<std::string> page_table_warning(std::size_t bytes_in_small_pages, int processes);

}  // namespace cohort
