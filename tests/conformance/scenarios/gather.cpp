// `gather` and `all_gather`.
#include "common.h"

namespace cohort::conformance {
namespace {

Tensor filled(const Shape& shape, double value) { return Tensor::full(shape, DType::kFloat32, value); }

Json gathered(const Layout& l, int axis, const std::function<Tensor(int)>& make) {
  return show(l.strategy().gather(l.each(make), axis));
}

using GatheredNest = std::tuple<Tensor, std::tuple<Tensor>>;

Json show_nest(const GatheredNest& nest) {
  return {{"a", show(std::get<0>(nest))}, {"b", show(std::get<1>(nest))}};
}

}  // namespace

std::vector<Scenario> gather_scenarios() {
  const auto columns = [](int r) { return filled({2, r + 1}, r); };
  return {
      {"gather/axis0_equal",
       [](const Layout& l) {
         return gathered(l, 0, [](int r) { return tensor({1.0 * r, r + 1.0}, {1, 2}); });
       }},
      {"gather/axis1_equal",
       [](const Layout& l) {
         return gathered(l, 1, [](int r) { return tensor({1.0 * r, r + 1.0}, {1, 2}); });
       }},
      {"gather/axis0_unequal",
       [](const Layout& l) { return gathered(l, 0, [](int r) {
                               return filled({r + 1, 2}, r);
                             }); }},
      {"gather/axis1_unequal", [=](const Layout& l) { return gathered(l, 1, columns); }},
      {"gather/axis_neg1",
       [=](const Layout& l) { return gathered(l, -1, columns); },
       {{"mirrored2 mirrored3 mwms2", "gather takes negative axes and every dtype",
         [=](const Layout& l) { return gathered(l, 1, columns); }}}},
      {"gather/3d_axis2",
       [](const Layout& l) { return gathered(l, 2, [](int r) {
                               return filled({1, 2, 1}, r);
                             }); }},
      {"gather/int64",
       [](const Layout& l) {
         return gathered(l, 0, [](int r) { return Tensor::from({static_cast<std::int64_t>(r)}); });
       }},
      {"gather/dim_mismatch",
       [](const Layout& l) { return gathered(l, 0, [](int r) {
                               return filled({1, r + 1}, r);
                             }); }},
      {"gather/axis_out_of_range",
       [](const Layout& l) { return gathered(l, 1, [](int r) { return vector({1.0 * r}); }); }},
      {"gather/bool",
       [](const Layout& l) { return gathered(l, 0, [](int r) { return Tensor::from({r == 0}); }); },
       {{"", "gather takes negative axes and every dtype",
         [](const Layout& l) {
           return gathered(l, 0, [](int r) { return vector({r == 0 ? 1.0 : 0.0}); });
         }}}},
      {"gather/plain",
       [](const Layout& l) {
         return show(l.strategy().gather(vector({1, 2}), 0));
       }},
      {"gather/nested",
       [](const Layout& l) {
         const auto nests = l.each([](int r) {
           return GatheredNest{vector({1.0 * r}), {vector({1.0 * r, 1.0 * r})}};
         });
         return show_nest(l.strategy().gather(nests, 0));
       },
       {{"mirrored2 mirrored3 central2 mwms2", "structures everywhere",
         [](const Layout& l) {
           std::vector<double> once;
           std::vector<double> twice;
           for (int r = 0; r < l.replicas(); ++r) {
             once.push_back(r);
             twice.insert(twice.end(), 2, r);
           }
           return show_nest({vector(once), {vector(twice)}});
         }}}},
      {"allgather/axis0_unequal",
       [](const Layout& l) {
         return show(l.strategy().run([](ReplicaContext& replica) {
           const int r = replica.replica_id_in_sync_group();
           return replica.all_gather(filled({r + 1, 1}, r), 0);
         }));
       }},
      {"allgather/plain_shared",
       [](const Layout& l) {
         const Tensor shared = vector({3});
         return show(
             l.strategy().run([&](ReplicaContext& replica) { return replica.all_gather(shared, 0); }));
       },
       {{kSeveralReplicas, kSharedTensor,
         [](const Layout& l) { return on_each(l, Json(static_cast<std::size_t>(l.replicas()), 3.0)); }}}},
      {"allgather/default_ctx",
       [](const Layout& /*l*/) {
         return show(get_replica_context()->all_gather(vector({1, 2}), 0));
       }},
  };
}

}  // namespace cohort::conformance
