// Cluster specs as JSON, in the form that TF_CONFIG has: an object with a list of
// addresses per job, or an object of addresses by index where indices have gaps.
#pragma once

#include <string>
#include <string_view>

#include <cohort/cluster/cluster_spec.h>

namespace cohort {

/// Reads `{"worker": ["n0:2222", "n1:2222"], "ps": {"3": "n2:2222"}}`.
/// @throws InvalidArgument saying where the text is not JSON, or which job has another form.
[[nodiscard]] ClusterSpec cluster_spec_from_json(std::string_view json);

/// The same form, on one line; jobs by name.
[[nodiscard]] std::string to_json(const ClusterSpec& spec);

}  // namespace cohort
