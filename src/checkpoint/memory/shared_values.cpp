#include "shared_values.h"

#include <cstring>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::checkpoint {
namespace {

bool is_of_first(const NamedValue& value) { return !value.is_everywhere && !value.is_collective; }

void append(std::string& text, const void* bytes, std::size_t count) {
  text.append(static_cast<const char*>(bytes), count);
}

/// Rank, extents and elements of each value that the first worker alone has.
std::string pack(const std::map<std::string, NamedValue>& values) {
  std::string packed;
  for (const auto& [name, value] : values) {
    if (!is_of_first(value)) continue;
    const Tensor host = value.read().on_host();
    const std::int64_t rank = host.shape().rank();
    append(packed, &rank, sizeof rank);
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t extent = host.shape()[static_cast<int>(i)];
      append(packed, &extent, sizeof extent);
    }
    const auto bytes = host.raw();
    append(packed, bytes.data(), bytes.size());
  }
  return packed;
}

/// Takes values from what pack() has made of them; both have the same names and dtypes.
class Unpacking {
 public:
  explicit Unpacking(const std::string& packed) : packed_(packed) {}

  Tensor next(DType dtype) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(number()));
    for (std::int64_t& extent : extents) extent = number();
    Tensor tensor = Tensor::uninitialized(Shape(extents), dtype);
    const auto bytes = tensor.raw();
    take(bytes.data(), bytes.size());
    return tensor;
  }

 private:
  std::int64_t number() {
    std::int64_t value = 0;
    take(&value, sizeof value);
    return value;
  }
  void take(void* target, std::size_t count) {
    COHORT_CHECK(at_ + count <= packed_.size());
    if (count > 0) std::memcpy(target, packed_.data() + at_, count);
    at_ += count;
  }

  const std::string& packed_;
  std::size_t at_ = 0;
};

NamedValue constant(const Tensor& tensor) {
  return {.dtype = tensor.dtype(),
          .shape = [tensor] { return tensor.shape(); },
          .read = [tensor] { return tensor; },
          .is_everywhere = true};
}

}  // namespace

std::map<std::string, NamedValue> shared_with_all(const Workers& workers,
                                                  const std::map<std::string, NamedValue>& values) {
  const auto list = [&] {
    std::string text;
    for (const auto& [name, value] : values) text += fmt::format("'{}' {}\n", name, to_string(value.dtype));
    return text;
  };
  workers.agree(list, "the values of the checkpoint");
  const std::string packed =
      workers.together([&] { return workers.is_first() ? pack(values) : std::string(); })[0];
  Unpacking unpacking(packed);
  std::map<std::string, NamedValue> shared;
  for (const auto& [name, value] : values) {
    if (value.is_collective)
      shared.emplace(name, constant(value.read().on_host()));
    else
      shared.emplace(name, value.is_everywhere ? value : constant(unpacking.next(value.dtype)));
  }
  return shared;
}

}  // namespace cohort::checkpoint
