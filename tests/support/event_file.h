// What TensorBoard's event files hold, decoded by the tests' own hand.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace cohort::testing {

/// Of a file up to where it was cut: {"step", "what": "file_version", "file_version", "source_metadata"},
/// {"step", "what": "restart"} or {"step", "what": "summary", "values": [{"tag", "kind": "tensor", "tensor",
/// "dtype", "plugin", "plugin_content_hex", "display_name", "description", "data_class"}]}.
[[nodiscard]] nlohmann::json events_of(const std::string& path);

/// The files of a folder, in the order in which one process has made them.
[[nodiscard]] std::vector<std::string> files_of(const std::string& folder);

/// [tag, step, value] of each scalar in the event files of a folder.
[[nodiscard]] nlohmann::json scalars_of(const std::string& folder);

[[nodiscard]] std::string hex_of(std::string_view bytes);

}  // namespace cohort::testing
