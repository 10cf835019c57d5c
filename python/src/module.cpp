// What the Python package sees of the extension.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <pybind11/chrono.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/utils/pybind.h>

#include "backend.h"
#include "heap.h"

namespace cohort::pytorch {
namespace {

/// For what PyTorch says of the group; not in all of its versions.
template <class Options>
void set_members(Options& options, const std::string& group, const std::vector<std::int64_t>& ranks) {
  if constexpr (requires { options.group_name; }) options.group_name = group;
  if constexpr (requires { options.global_ranks_in_group; })
    options.global_ranks_in_group.assign(ranks.begin(), ranks.end());
}

c10::intrusive_ptr<c10d::Backend> create_backend(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout,
    const std::string& group, const std::vector<std::int64_t>& ranks,
    const std::optional<c10::intrusive_ptr<c10d::Backend>>& parent) {
  auto options = c10::make_intrusive<CohortBackend::Options>(timeout);
  set_members(*options, group, ranks);
  std::optional<CohortBackend::Subgroup> subgroup;
  if (auto* const all = parent ? dynamic_cast<CohortBackend*>(parent->get()) : nullptr)
    subgroup.emplace(CohortBackend::Subgroup{*all, {ranks.begin(), ranks.end()}, group});
  return c10::make_intrusive<CohortBackend>(store, rank, size, std::move(options), subgroup);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("create_backend", &create_backend, pybind11::arg("store"), pybind11::arg("rank"),
             pybind11::arg("size"), pybind11::arg("timeout"), pybind11::arg("group"), pybind11::arg("ranks"),
             pybind11::arg("parent"), pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("use_heap", &use_heap, pybind11::arg("on"));
  module.def("shut_down_all", &CohortBackend::shut_down_all,
             pybind11::call_guard<pybind11::gil_scoped_release>());
}

}  // namespace cohort::pytorch
