#include "nccl_arithmetic.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include <cohort/device/float16.h>

namespace nccl_stand_in {
namespace {

/// What elements are combined in.
template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, cohort::float16> || std::is_same_v<T, cohort::bfloat16>, float, T>;

template <class W>
W combined(W a, W b, ncclRedOp_t op) {
  switch (op) {
    case ncclSum:
    case ncclAvg:
      if constexpr (std::is_integral_v<W>)
        return static_cast<W>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      else
        return a + b;
    case ncclProd:
      if constexpr (std::is_integral_v<W>)
        return static_cast<W>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      else
        return a * b;
    case ncclMin: return std::min(a, b);
    case ncclMax: return std::max(a, b);
    default: std::abort();
  }
}

template <class T>
void reduce_as(const std::vector<const std::byte*>& inputs, void* output, std::size_t count, ncclRedOp_t op) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto input = [&](std::size_t rank) {
      return static_cast<Wide<T>>(reinterpret_cast<const T*>(inputs[rank])[i]);
    };
    Wide<T> value = input(0);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) value = combined(value, input(rank), op);
    if (op == ncclAvg) value = static_cast<Wide<T>>(value / static_cast<Wide<T>>(inputs.size()));
    static_cast<T*>(output)[i] = static_cast<T>(value);
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: std::abort();
  }
}

void reduce(const std::vector<const std::byte*>& inputs, void* output, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op) {
  switch (type) {
    case ncclInt8: return reduce_as<std::int8_t>(inputs, output, count, op);
    case ncclUint8: return reduce_as<std::uint8_t>(inputs, output, count, op);
    case ncclInt32: return reduce_as<std::int32_t>(inputs, output, count, op);
    case ncclUint32: return reduce_as<std::uint32_t>(inputs, output, count, op);
    case ncclInt64: return reduce_as<std::int64_t>(inputs, output, count, op);
    case ncclUint64: return reduce_as<std::uint64_t>(inputs, output, count, op);
    case ncclFloat16: return reduce_as<cohort::float16>(inputs, output, count, op);
    case ncclBfloat16: return reduce_as<cohort::bfloat16>(inputs, output, count, op);
    case ncclFloat32: return reduce_as<float>(inputs, output, count, op);
    case ncclFloat64: return reduce_as<double>(inputs, output, count, op);
    default: std::abort();
  }
}

}  // namespace nccl_stand_in
