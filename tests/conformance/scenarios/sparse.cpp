// IndexedSlices in `reduce`, `all_reduce` and `gather`.
#include "common.h"

namespace cohort::conformance {
namespace {

IndexedSlices slices(const std::vector<std::int64_t>& indices, std::vector<double> values) {
  const auto rows = static_cast<std::int64_t>(indices.size());
  return {vector(std::move(values)), Tensor::from(std::span<const std::int64_t>(indices), {rows}), {5}};
}

/// Row 0 has r + 1, and row r has 1.
IndexedSlices two_rows(int r) { return slices({0, r}, {r + 1.0, 1}); }

/// Rows 0 to r, all of them r.
IndexedSlices uneven(int r) {
  std::vector<std::int64_t> rows;
  for (int row = 0; row <= r; ++row) rows.push_back(row);
  return slices(rows, std::vector<double>(rows.size(), r));
}

using Make = IndexedSlices (*)(int replica);

Scenario all_reduced(std::string name, ReduceOp op, Make make) {
  return {std::move(name), [=](const Layout& l) {
            return show(l.strategy().run([&](ReplicaContext& replica) {
              return replica.all_reduce(op, make(replica.replica_id_in_sync_group()));
            }));
          }};
}

Scenario reduced(std::string name, ReduceOp op) {
  return {std::move(name), [=](const Layout& l) { return show(l.strategy().reduce(op, l.each(two_rows))); }};
}

/// [1, 0, 0, 0, 0] of each replica, one after the other.
Json gathered_rows(const Layout& l) {
  Json dense = Json::array();
  for (int r = 0; r < l.replicas(); ++r)
    for (const double value : {1, 0, 0, 0, 0}) dense.push_back(value);
  return dense;
}

}  // namespace

std::vector<Scenario> sparse_scenarios() {
  return {
      reduced("reduce/indexed_slices", ReduceOp::kSum),
      reduced("reduce/indexed_slices_mean", ReduceOp::kMean),
      all_reduced("allreduce/SUM_slices", ReduceOp::kSum, two_rows),
      all_reduced("allreduce/SUM_slices_uneven", ReduceOp::kSum, uneven),
      all_reduced("allreduce/MEAN_slices_uneven", ReduceOp::kMean, uneven),
      {"gather/sparse",
       [](const Layout& l) {
         return show(l.strategy().gather(l.each([](int) { return slices({0}, {1}); }), 0));
       },
       {{"default1 onedevice1 mwms2", "sparse values are gathered everywhere", gathered_rows}}},
  };
}

}  // namespace cohort::conformance
