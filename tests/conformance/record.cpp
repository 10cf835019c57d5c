#include "record.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "layout.h"

namespace cohort::conformance {
namespace {

/// Topics whose scenarios need a cluster of processes.
constexpr std::array kTopicsOfTasks{"w2/coordinator/", "w2/fault/", "w2/ps_v1/"};

/// Topics that golden_training replays.
constexpr std::array kTopicsOfTraining{"w2/batchnorm/", "w2/callback/",     "w2/estimator/", "w2/fit/",
                                       "w2/loss/",      "w2/lr_schedule/",  "w2/metric/",    "w2/metric_v1/",
                                       "w2/optimizer/", "w2/optimizer_v1/", "w2/summary/"};

bool is_one_of(std::string_view id, std::span<const char* const> topics) {
  return std::ranges::any_of(topics, [&](const char* topic) { return id.starts_with(topic); });
}

/// Those whose scenarios need two ranks.
constexpr std::string_view kTopicOfRanks = "w2/preemption/mwms2/";

/// Errors that were recorded as part of an outcome, in the form of errors that are the outcome.
Json with_errors(const Json& outcome) {
  if (outcome.is_object() || outcome.is_array()) {
    Json result = outcome;
    for (Json& part : result) part = with_errors(part);
    return result;
  }
  if (!outcome.is_string()) return outcome;
  const auto& text = outcome.get_ref<const std::string&>();
  const std::size_t colon = text.find("Error: ");
  const bool is_error = colon != std::string::npos && text.find(' ') == colon + 6;
  return is_error ? Json{{"error", text.substr(0, colon + 5)}} : outcome;
}

/// Without what depends on the time that something took: keys that begin with `_`.
Json without_times(Json outcome) {
  if (!outcome.is_object()) return outcome;
  for (auto item = outcome.begin(); item != outcome.end();)
    item = item.key().starts_with('_') ? outcome.erase(item) : std::next(item);
  return outcome;
}

Record parse(const std::string& line) {
  const Json json = Json::parse(line);
  Record record;
  record.id = json.at("id").get<std::string>();
  record.name = record.id;
  if (json.at("input").is_object()) {
    record.arguments = json.at("input");
    record.input = record.arguments.dump();
  } else {
    record.input = json.at("input").get<std::string>();
  }
  if (is_one_of(record.id, kTopicsOfTraining)) {
    record.layout = kTrainingLayout;
  } else if (is_one_of(record.id, kTopicsOfTasks)) {
    record.layout = json.at("strategy").get<std::string>();
  } else if (record.id.starts_with(kTopicOfRanks)) {
    record.layout = kWorkersLayout;
  } else if (record.arguments.is_null() && !json.at("strategy").is_null()) {
    const std::size_t slash = record.id.find('/');
    record.layout = record.id.substr(0, slash);
    record.name = record.id.substr(slash + 1);
  }
  record.outcome = json.at("error_type").is_null() ? without_times(with_errors(json.at("output")))
                                                   : Json{{"error", json.at("error_type")}};
  return record;
}

void read_file(const std::string& path, std::vector<Record>& records) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("{}: cannot be read", path));
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    try {
      records.push_back(parse(line));
    } catch (const Json::exception& error) {
      throw std::runtime_error(fmt::format("{}, line {}: {}", path, number, error.what()));
    }
  }
}

}  // namespace

Recording read_records(int argc, char** argv) {
  const std::span arguments(argv + 1, argv + argc);
  Recording recording;
  recording.is_whole = arguments.empty();
  try {
    if (recording.is_whole) {
      for (const char* name : {"golden.jsonl", "golden2.jsonl"})
        read_file(fmt::format("{}/{}", COHORT_GOLDEN_FOLDER, name), recording.records);
    } else if (arguments.size() > 1 && std::string_view(arguments[0]) == "--records") {
      for (const char* path : arguments.subspan(1)) read_file(path, recording.records);
    } else {
      throw std::runtime_error(fmt::format("usage: {} [--records FILE...]", argv[0]));
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    std::exit(2);
  }
  return recording;
}

}  // namespace cohort::conformance
