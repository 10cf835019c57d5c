// Datasets distributed over several workers.
#include <filesystem>
#include <fstream>

#include "input.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kOffAlike = "without sharding all workers step alike";
constexpr std::string_view kAllRaise = "too few files are an error on every worker";

struct Policy {
  std::string_view name;
  AutoShardPolicy policy;
};
constexpr Policy kPolicies[] = {{"OFF", AutoShardPolicy::kOff},
                                {"AUTO", AutoShardPolicy::kAuto},
                                {"FILE", AutoShardPolicy::kFile},
                                {"DATA", AutoShardPolicy::kData}};

struct WorkerSizes {
  std::int64_t count;
  std::int64_t batch;
};

/// What comes out instead where the original rotates the sizes of OFF.
std::vector<Difference> off_differences(const WorkerSizes& sizes, bool drop) {
  const auto steps = [](const Json& expected) {
    return std::vector<Difference>{{"mwms2", kOffAlike, [=](const Layout&) { return expected; }}};
  };
  if (sizes.count == 8 && sizes.batch == 3) {
    Json expected{{{0, 1}}, {{2}}, {{3, 4}}, {{5}}};
    if (!drop) expected.push_back({{6, 7}});
    expected.push_back("END");
    return steps(expected);
  }
  if (sizes.count == 4 && sizes.batch == 1) return steps({{{0}}, {{1}}, {{2}}, {{3}}, "END"});
  return {};
}

/// Lines such as `OFF_range8_batch4_keep`.
void add_ranges_of_workers(std::vector<Scenario>& scenarios) {
  for (const auto& [name, policy] : kPolicies) {
    if (policy == AutoShardPolicy::kFile) continue;
    for (const auto& sizes : {WorkerSizes{8, 4}, WorkerSizes{9, 2}, WorkerSizes{8, 3}, WorkerSizes{12, 8},
                              WorkerSizes{4, 1}, WorkerSizes{7, 6}}) {
      for (const bool drop : {false, true}) {
        scenarios.push_back(
            {fmt::format("mwinput/{}_range{}_batch{}_{}", name, sizes.count, sizes.batch,
                         drop ? "drop" : "keep"),
             [=, policy = policy](const Layout& l) {
               return distributed(l, numbers(sizes.count).batch(sizes.batch, drop),
                                  {.auto_shard_policy = policy});
             },
             policy == AutoShardPolicy::kOff ? off_differences(sizes, drop) : std::vector<Difference>{}});
      }
    }
    scenarios.push_back({fmt::format("mwinput/{}_legacy", name), [policy = policy](const Layout& l) {
                           const auto same = [](const Tensor& batch) { return batch; };
                           return distributed(l, numbers(12).batch(8).map(same),
                                              {.auto_shard_policy = policy});
                         }});
    scenarios.push_back({fmt::format("mwinput/{}_repeat_take", name), [policy = policy](const Layout& l) {
                           return distributed(l, numbers(4).batch(4).repeat().take(3),
                                              {.auto_shard_policy = policy});
                         }});
  }
}

/// Files of three lines each, the file's number and the line's, as long as it lives.
class Files {
 public:
  Files(const Layout& l, int count)
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("cohort_golden_{}_{}", ::getpid(), l.worker())) {
    std::filesystem::create_directories(folder_);
    for (int file = 0; file < count; ++file) {
      std::ofstream lines(folder_ / std::to_string(file));
      for (int line = 0; line < 3; ++line) lines << file << line << '\n';
    }
  }
  ~Files() { std::filesystem::remove_all(folder_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  /// The lines as numbers, of `cycle` files in turn.
  [[nodiscard]] Dataset<Tensor> lines(int cycle) const {
    return Dataset<std::string>::list_files(folder_ / "*").interleave(lines_of, {.cycle_length = cycle});
  }

 private:
  static Dataset<Tensor> lines_of(const std::string& path) {
    return Dataset<Tensor>::from_generator([path] {
      return [file = std::make_shared<std::ifstream>(path)]() -> std::optional<Tensor> {
        std::int64_t line = 0;
        if (*file >> line) return Tensor::scalar(line);
        return std::nullopt;
      };
    });
  }

  std::filesystem::path folder_;
};

/// Numbers as the lines that they were read from.
Json as_lines(const Json& value) {
  if (value.is_number()) return fmt::format("{:02}", static_cast<int>(value.get<double>()));
  if (!value.is_array()) return value;
  Json lines = Json::array();
  for (const Json& part : value) lines.push_back(as_lines(part));
  return lines;
}

Json read_files(const Layout& l, int count, int cycle, std::int64_t batch, AutoShardPolicy policy) {
  const Files files(l, count);
  return as_lines(distributed(l, files.lines(cycle).batch(batch), {.auto_shard_policy = policy}));
}

void add_files(std::vector<Scenario>& scenarios) {
  for (const auto& [name, policy] : kPolicies) {
    for (const int count : {2, 3, 4, 5}) {
      scenarios.push_back(
          {fmt::format("mwinput/files{}_{}", count, name),
           [=, policy = policy](const Layout& l) { return read_files(l, count, 1, 4, policy); }});
    }
    scenarios.push_back({fmt::format("mwinput/interleave4_{}", name),
                         [policy = policy](const Layout& l) { return read_files(l, 4, 2, 4, policy); }});
    scenarios.push_back({fmt::format("mwinput/files1_{}", name),
                         [policy = policy](const Layout& l) { return read_files(l, 1, 1, 2, policy); },
                         {{"mwms2", kAllRaise, [](const Layout&) { return an_error(); }}}});
  }
  scenarios.push_back({"mwinput/FILE_on_range", [](const Layout& l) {
                         return distributed(l, numbers(8).batch(4),
                                            {.auto_shard_policy = AutoShardPolicy::kFile});
                       }});
}

/// `count(worker)` numbers, in batches of 2 for each replica.
Scenario uneven(const std::string& name, std::int64_t (*count)(int worker)) {
  return {"mwinput/" + name, [=](const Layout& l) {
            return show_pass(l.strategy().distribute_datasets_from_function([&](const InputContext& context) {
              return numbers(count(context.input_pipeline_id)).batch(2);
            }));
          }};
}

void add_ends(std::vector<Scenario>& scenarios) {
  scenarios.push_back(
      uneven("uneven_workers", [](int worker) -> std::int64_t { return worker == 0 ? 8 : 9; }));
  scenarios.push_back(uneven("very_uneven", [](int worker) -> std::int64_t { return 2 * (3 * worker + 1); }));
  scenarios.push_back({"mwinput/reduce_mean_partial", [](const Layout& l) {
                         Json means = Json::array();
                         for (const auto& batches : l.strategy().distribute_dataset(numbers(7).batch(4)))
                           means.push_back(show(l.strategy().reduce(ReduceOp::kMean, batches, 0)));
                         return means;
                       }});
  constexpr DistributeOptions kData{.auto_shard_policy = AutoShardPolicy::kData};
  scenarios.push_back({"mwinput/DATA_fewer_than_workers",
                       [=](const Layout& l) { return distributed(l, numbers(1).batch(1), kData); }});
  scenarios.push_back(
      {"mwinput/DATA_empty", [=](const Layout& l) { return distributed(l, numbers(0).batch(2), kData); }});
  scenarios.push_back({"mwinput/spec_finite_infinite", [](const Layout& l) {
                         const Dataset<Tensor> batches = numbers(8).batch(4, true);
                         return Json{spec_of(l, l.strategy().distribute_dataset(batches)),
                                     spec_of(l, l.strategy().distribute_dataset(batches.repeat()))};
                       }});
  scenarios.push_back({"mwinput/batch_not_divisible", [](const Layout& l) {
                         static_cast<void>(
                             l.strategy().distribute_datasets_from_function([](const InputContext& context) {
                               return numbers(5).batch(context.per_replica_batch_size(5));
                             }));
                         return Json();
                       }});
}

}  // namespace

std::vector<Scenario> input_worker_scenarios() {
  std::vector<Scenario> scenarios;
  add_ranges_of_workers(scenarios);
  add_files(scenarios);
  add_ends(scenarios);
  return scenarios;
}

}  // namespace cohort::conformance
