// One line of golden.jsonl or golden2.jsonl: a scenario, and what the original did.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cohort::conformance {

using Json = nlohmann::json;

struct Record {
  std::string id;      ///< for example `mirrored2/reduce/SUM_none_scalar`
  std::string layout;  ///< `mirrored2`; empty where no strategy takes part, or a family of lines has its own
  std::string name;    ///< `reduce/SUM_none_scalar`
  std::string input;   ///< what was done, in words
  Json arguments;      ///< what was done, where it is told as data (golden2.jsonl); else null
  Json outcome;        ///< what came out; `{"error": class}` where it raised
};

struct Recording {
  std::vector<Record> records;
  bool is_whole = true;  ///< all that docs/conformance.md is about
};

/// The lines of the files that follow `--records` on the command line, else those of the two that are kept
/// here. Ends the program with status 2 for a line that cannot be read, naming it, and for other arguments.
[[nodiscard]] Recording read_records(int argc, char** argv);

}  // namespace cohort::conformance
