#include <ostream>

#include <nlohmann/json.hpp>

#include "json_environment.h"
#include "report.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Result& row) {
  return {{"collective", row.collective},
          {"library", row.library},
          {"algorithm", row.algorithm},
          {"choice", row.choice},
          {"dtype", row.dtype},
          {"op", row.op},
          {"members", row.members},
          {"bytes", row.bytes},
          {"elements", row.elements},
          {"in_place", row.in_place},
          {"inputs", row.inputs},
          {"buffers", row.buffers},
          {"loops", row.loops},
          {"iterations", row.iterations},
          {"median_us", row.median_us},
          {"min_us", row.min_us},
          {"p99_us", row.p99_us},
          {"iteration_us", row.iteration_us},
          {"algbw_gbs", row.algbw_gbs},
          {"busbw_gbs", row.busbw_gbs},
          {"ratio_to_peer", or_null(row.ratio_to_peer)},
          {"wrong", or_null(row.wrong)},
          {"memory_limit_us", or_null(row.memory_limit_us)},
          {"memory_limit_share",
           row.memory_limit_us ? Json(*row.memory_limit_us / row.median_us) : Json(nullptr)}};
}

/// One object with `environment` and `results`, whose fields are named as the columns of the CSV.
class JsonReport final : public Report {
 public:
  explicit JsonReport(std::ostream& stream) : stream_(stream) {}

  void begin(const Environment& environment, const std::string& /*subject*/) override {
    environment_ = bench::to_json(environment);
  }
  void add(const Result& result) override { results_.push_back(to_json(result)); }
  void note(const std::string& text) override { notes_.push_back(text); }
  void end() override {
    stream_ << Json{{"environment", environment_}, {"results", results_}, {"notes", notes_}}.dump(2)
            << std::endl;
  }

 private:
  std::ostream& stream_;
  Json environment_;
  Json results_ = Json::array();
  Json notes_ = Json::array();
};

}  // namespace

std::unique_ptr<Report> make_json_report(std::ostream& stream) {
  return std::make_unique<JsonReport>(stream);
}

}  // namespace cohort::bench
