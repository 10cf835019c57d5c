// A safetensors file of a test, right or wrong.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <cohort/device/tensor.h>

#include "checkpoint/format/safetensors.h"

namespace cohort::testing {

/// The bytes of a file with this header and these data.
inline std::string safetensors_file(const std::string& header, const std::string& data) {
  const auto length = static_cast<std::uint64_t>(header.size());
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

/// The bytes of a file with these tensors.
inline std::string safetensors_file(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<checkpoint::NamedTensor> named;
  named.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor.dtype(), tensor.shape()});
  std::string bytes = checkpoint::begin_safetensors(named, {{"format", "pt"}});
  for (const checkpoint::NamedTensor& next : named)
    for (const auto& [name, tensor] : tensors)
      if (name == next.name) bytes.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  return bytes;
}

}  // namespace cohort::testing
