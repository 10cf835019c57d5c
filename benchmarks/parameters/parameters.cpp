#include "parameters/parameters.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <cohort/base/error.h>

#include "parameters/server_job.h"
#include "server_job.h"
#include "timing.h"
#include "value_table.h"

namespace cohort::bench {
namespace {

constexpr std::size_t kLoopBytes = std::size_t{32} << 20;
constexpr std::size_t kMostCalls = 2000;
constexpr std::int64_t kRowElements = 16;  // rows of 64 bytes
constexpr std::size_t kRowBytes = kRowElements * sizeof(float);
constexpr std::int64_t kLookup = 8192;  // rows at a time

/// Keeps the compiler from leaving out what makes `value`.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

Shape shape_of(std::size_t bytes) { return {static_cast<std::int64_t>(bytes / sizeof(float))}; }

/// No two of them alike.
Tensor numbered(std::size_t bytes, std::uint64_t seed) {
  Tensor result = Tensor::uninitialized(shape_of(bytes), DType::kFloat32);
  std::uint64_t index = 0;
  for (float& element : result.span<float>()) element = static_cast<float>(mixed_bits(seed, index++) >> 40);
  return result;
}

void require_equal(const Tensor& read, const Tensor& written) {
  if (std::memcmp(read.raw().data(), written.raw().data(), written.raw().size()) != 0)
    throw Internal("a variable of {} bytes was read as something else than it was assigned",
                   written.raw().size());
}

/// The first host of servers other than `own`, or else that one.
const std::string& host_to_measure(const std::vector<std::string>& hosts, const std::string& own) {
  const auto other = std::ranges::find_if(hosts, [&](const std::string& each) { return each != own; });
  return other == hosts.end() ? own : *other;
}

class ParametersMeasurement {
 public:
  ParametersMeasurement(const ParametersOptions& options, const TickClock& clock)
      : options_(options), clock_(clock), result_{options.table_mib, options.loops, {}} {}

  [[nodiscard]] ParametersResult measure();

 private:
  /// Times `call` and `limit`, which both move `bytes` bytes in `parts` parts, in turns.
  template <class Call, class Limit>
  void add(ParametersRow row, std::size_t bytes, std::size_t parts, Call call, Limit limit);

  void measure_job(ServerJob& job);
  void measure_variables(std::size_t bytes);
  void measure_rows();

  /// A variable on each server that counts.
  [[nodiscard]] std::vector<Variable> make_variables(const VariableOptions& options) const;

  const ParametersOptions& options_;
  const TickClock& clock_;
  ParametersResult result_;
  std::vector<bool> counts_;  ///< by server
  int servers_ = 0;           ///< that count
  std::optional<Wire> wire_;  ///< to them, when they are on another host
};

template <class Call, class Limit>
void ParametersMeasurement::add(ParametersRow row, std::size_t bytes, std::size_t parts, Call call,
                                Limit limit) {
  const std::size_t n = std::clamp<std::size_t>(kLoopBytes / bytes, 1, kMostCalls);
  const auto timed = [&](auto& what) {
    const std::uint64_t start = clock_.now();
    for (std::size_t i = 0; i < n; ++i) what();
    return clock_.microseconds(clock_.now() - start) / static_cast<double>(n);
  };
  call();  // memory gets its pages
  limit();
  std::vector<double> us;
  std::vector<double> limit_us;
  for (int loop = 0; loop < options_.loops; ++loop) {
    us.push_back(timed(call));
    limit_us.push_back(timed(limit));
  }
  const auto gib_per_s = [&](double microseconds) {
    return static_cast<double>(bytes) / microseconds * 1e6 / (1 << 30);
  };
  row.us = median(us) / static_cast<double>(parts);
  row.gib_per_s = gib_per_s(median(us));
  row.limit_gib_per_s = gib_per_s(median(limit_us));
  result_.rows.push_back(std::move(row));
}

std::vector<Variable> ParametersMeasurement::make_variables(const VariableOptions& options) const {
  std::vector<Variable> variables;
  for (const bool counts : counts_) {
    // They go to the servers in turn.
    Variable variable(options);
    if (counts) variables.push_back(std::move(variable));
  }
  return variables;
}

void ParametersMeasurement::measure_variables(std::size_t bytes) {
  const auto parts = static_cast<std::size_t>(servers_);
  const Tensor value = numbered(bytes, bytes);
  const std::vector<Variable> variables = make_variables({.shape = value.shape()});
  std::vector<Tensor> copies;
  copies.reserve(parts);
  for (int i = 0; i < servers_; ++i) copies.push_back(value.clone());
  add(
      {.name = "push", .servers = servers_, .bytes = bytes}, parts * bytes, parts,
      [&] {
        for (const Variable& variable : variables) variable.assign(value);
      },
      [&] {
        for (Tensor& copy : copies) {
          if (wire_)
            wire_->exchange(bytes, 1);
          else
            std::memcpy(copy.raw().data(), value.raw().data(), bytes);
        }
        keep(copies);
      });
  Tensor destination = value.clone();
  add(
      {.name = "pull", .servers = servers_, .bytes = bytes}, parts * bytes, parts,
      [&] {
        for (const Variable& variable : variables) keep(variable.read());
      },
      [&] {
        for (const Tensor& copy : copies) {
          if (wire_)
            wire_->exchange(1, bytes);
          else
            std::memcpy(destination.raw().data(), copy.raw().data(), bytes);
          keep(destination);
        }
      });
  for (const Variable& variable : variables) require_equal(variable.read(), value);
}

void ParametersMeasurement::measure_rows() {
  const std::int64_t rows = (std::int64_t{options_.table_mib} << 20) / static_cast<std::int64_t>(kRowBytes);
  const Tensor table = numbered(static_cast<std::size_t>(rows) * kRowBytes, 1).reshape({rows, kRowElements});
  const std::vector<Variable> variables = make_variables({.initial_value = table});
  Tensor wanted = Tensor::uninitialized({kLookup}, DType::kInt64);
  std::uint64_t drawn = 0;
  const auto draw = [&] {
    for (std::int64_t& row : wanted.span<std::int64_t>())
      row = static_cast<std::int64_t>(mixed_bits(2, drawn++) % static_cast<std::uint64_t>(rows));
  };
  Tensor gathered = Tensor::uninitialized({kLookup, kRowElements}, DType::kFloat32);
  const auto gather = [&] {
    std::byte* to = gathered.raw().data();
    for (const std::int64_t row : wanted.span<std::int64_t>()) {
      std::memcpy(to, table.raw().data() + static_cast<std::size_t>(row) * kRowBytes, kRowBytes);
      to += kRowBytes;
    }
    keep(gathered);
  };
  const auto parts = static_cast<std::size_t>(servers_ * kLookup);
  add(
      {.name = "rows", .servers = servers_, .bytes = kRowBytes}, parts * kRowBytes, parts,
      [&] {
        for (const Variable& variable : variables) {
          draw();
          keep(embedding_lookup(variable, wanted));
        }
      },
      [&] {
        for (int i = 0; i < servers_; ++i) {
          draw();
          if (wire_)
            wire_->exchange(wanted.raw().size(), gathered.raw().size());
          else
            gather();
        }
      });
  gather();
  for (const Variable& variable : variables) require_equal(embedding_lookup(variable, wanted), gathered);
}

void ParametersMeasurement::measure_job(ServerJob& job) {
  const auto scope = job.strategy().scope();
  const std::vector<std::string> hosts = job.hosts_of_servers();
  const std::string& host = host_to_measure(hosts, job.host());
  counts_.clear();
  for (const std::string& each : hosts) counts_.push_back(each == host);
  servers_ = static_cast<int>(std::ranges::count(counts_, true));
  if (host != job.host()) wire_.emplace(job, host);
  for (const std::size_t bytes : sizes_in(options_.sizes)) measure_variables(bytes);
  measure_rows();
  wire_.reset();
}

ParametersResult ParametersMeasurement::measure() {
  if (has_tasks()) {
    ServerJob job(size_of_tasks());
    measure_job(job);
  } else {
    for (int servers = 1; servers <= 3; ++servers) {
      ServerJob job({1, servers});
      measure_job(job);
    }
  }
  return std::move(result_);
}

}  // namespace

ParametersResult measure(const ParametersOptions& options, const CommandContext& context) {
  return ParametersMeasurement(options, context.clock).measure();
}

}  // namespace cohort::bench
