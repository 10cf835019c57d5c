#include <cohort/device/dtype.h>

#include <string>

#include <cohort/base/error.h>

namespace cohort {

std::string_view to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::kInt8: return "int8";
    case DType::kInt16: return "int16";
    case DType::kInt32: return "int32";
    case DType::kInt64: return "int64";
    case DType::kUInt8: return "uint8";
    case DType::kUInt16: return "uint16";
    case DType::kUInt32: return "uint32";
    case DType::kUInt64: return "uint64";
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
    case DType::kBool: return "bool";
  }
  return "unknown";
}

DType parse_dtype(std::string_view name) {
  std::string known;
  for (const DType dtype : kAllDTypes) {
    if (to_string(dtype) == name) return dtype;
    known += known.empty() ? "" : ", ";
    known += to_string(dtype);
  }
  throw InvalidArgument("unknown dtype '{}'; known: {}.", name, known);
}

void detail::throw_unknown_dtype(DType dtype) {
  throw Internal("dtype {} is not one of Cohort's", static_cast<int>(dtype));
}

}  // namespace cohort
