// A report as a page: one file, which needs no network and shows what it has by itself. The results are in it
// as JSON, as --format json writes them, so that it can be a baseline.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "report.h"

namespace cohort::bench {

/// Whatever texts `report` has, they are texts on the page, and nothing else.
void write_page(std::ostream& stream, const Json& report);

/// The JSON in a page; empty where there is none.
[[nodiscard]] std::string results_in_page(std::string_view page);

}  // namespace cohort::bench
