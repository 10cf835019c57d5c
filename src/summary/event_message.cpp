#include "event_message.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <cohort/base/error.h>

namespace cohort {
namespace {

/// The numbers of DataType in types.proto.
int number_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return 1;
    case DType::kFloat64: return 2;
    case DType::kInt32: return 3;
    case DType::kUInt8: return 4;
    case DType::kInt16: return 5;
    case DType::kInt8: return 6;
    case DType::kInt64: return 9;
    case DType::kBool: return 10;
    case DType::kBFloat16: return 14;
    case DType::kUInt16: return 17;
    case DType::kFloat16: return 19;
    case DType::kUInt32: return 22;
    case DType::kUInt64: return 23;
  }
  COHORT_CHECK(false);
}

constexpr int kString = 7;

ProtoMessage shape_message(std::span<const std::int64_t> extents) {
  ProtoMessage shape;
  for (const std::int64_t extent : extents) shape.message(2, ProtoMessage().number(1, extent));
  return shape;
}

ProtoMessage dense(int dtype, std::span<const std::int64_t> extents, std::string_view bytes) {
  return ProtoMessage().number(1, dtype).message(2, shape_message(extents)).bytes(4, bytes);
}

std::string_view view(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ProtoMessage tensor_message(const SummaryValue& value) {
  if (const double* scalar = value.scalar()) {
    const auto single = static_cast<float>(*scalar);
    return dense(number_of(DType::kFloat32), {}, view(std::as_bytes(std::span(&single, 1))));
  }
  if (const Tensor* tensor = value.tensor())
    return dense(number_of(tensor->dtype()), tensor->shape().extents(), view(tensor->raw()));
  const std::vector<std::string>& texts = *value.texts();
  const std::int64_t count = std::ssize(texts);
  const auto extents = std::span(&count, value.is_single ? 0 : 1);
  ProtoMessage message;
  message.number(1, kString).message(2, shape_message(extents));
  for (const std::string& text : texts) message.bytes(8, text);
  return message;
}

ProtoMessage metadata_message(const SummaryMetadata& metadata) {
  ProtoMessage plugin;
  if (!metadata.plugin.empty()) plugin.bytes(1, metadata.plugin);
  if (!metadata.content.empty()) plugin.bytes(2, metadata.content);
  ProtoMessage message;
  if (!plugin.encoded().empty()) message.message(1, plugin);
  if (!metadata.description.empty()) message.bytes(3, metadata.description);
  return message;
}

ProtoMessage event(double wall_time, std::int64_t step) {
  ProtoMessage message;
  message.real(1, wall_time);
  if (step != 0) message.number(2, step);
  return message;
}

/// A google.protobuf.Value.
ProtoMessage hyperparameter(const Hyperparameter& value) {
  if (const auto* number = std::get_if<double>(&value)) return ProtoMessage().real(2, *number);
  if (const auto* count = std::get_if<std::int64_t>(&value))
    return ProtoMessage().real(2, static_cast<double>(*count));
  if (const auto* text = std::get_if<std::string>(&value)) return ProtoMessage().bytes(3, *text);
  return ProtoMessage().number(4, static_cast<std::int64_t>(std::get<bool>(value)));
}

}  // namespace

void ProtoMessage::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) encoded_ += static_cast<char>(value | 0x80);
  encoded_ += static_cast<char>(value);
}

ProtoMessage& ProtoMessage::number(int field, std::int64_t value) {
  varint(static_cast<std::uint64_t>(field) << 3);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::real(int field, double value) {
  varint(static_cast<std::uint64_t>(field) << 3 | 1);
  auto bits = std::bit_cast<std::uint64_t>(value);
  for (int byte = 0; byte < 8; ++byte, bits >>= 8) encoded_ += static_cast<char>(bits);
  return *this;
}

ProtoMessage& ProtoMessage::bytes(int field, std::string_view value) {
  varint(static_cast<std::uint64_t>(field) << 3 | 2);
  varint(value.size());
  encoded_ += value;
  return *this;
}

std::string version_event(double wall_time) {
  return event(wall_time, 0)
      .bytes(3, "brain.Event:2")
      .message(10, ProtoMessage().bytes(1, "cohort"))
      .encoded();
}

std::string value_event(const SummaryValue& value) {
  ProtoMessage message;
  message.bytes(1, value.tag).message(8, tensor_message(value));
  const ProtoMessage metadata = metadata_message(value.metadata);
  if (!metadata.encoded().empty()) message.message(9, metadata);
  return event(value.wall_time, value.step).message(5, ProtoMessage().message(1, message)).encoded();
}

std::string restart_event(std::int64_t step, double wall_time) {
  constexpr int kStart = 1;
  return event(wall_time, step).message(7, ProtoMessage().number(1, kStart)).encoded();
}

std::string session_start(const Hyperparameters& values, double wall_time) {
  ProtoMessage start;
  for (const auto& [name, value] : values)
    start.message(1, ProtoMessage().bytes(1, name).message(2, hyperparameter(value)));
  start.real(5, wall_time);
  return ProtoMessage().message(3, start).encoded();
}

std::string session_end(bool is_success, double wall_time) {
  const int status = is_success ? 1 : 2;
  return ProtoMessage().message(4, ProtoMessage().number(1, status).real(2, wall_time)).encoded();
}

namespace {

constexpr std::size_t kLanes = 8;     // that the compiler can take together
constexpr std::size_t kBlock = 1024;  // values whose buckets are computed before they are counted

struct Interval {
  double begin = 0;
  double end = 0;
};

template <class T>
bool is_finite(T value) {
  return std::abs(value) <= std::numeric_limits<T>::max();  // which NaN is not
}

/// Of the finite values.
template <class T>
Interval around(std::span<const T> values) {
  std::array<T, kLanes> least;
  std::array<T, kLanes> most;
  least.fill(std::numeric_limits<T>::infinity());
  most.fill(-std::numeric_limits<T>::infinity());
  const auto take = [&](T value, std::size_t lane) {
    const bool counts = is_finite(value);
    const T low = counts ? value : least[lane];
    const T high = counts ? value : most[lane];
    least[lane] = low < least[lane] ? low : least[lane];
    most[lane] = high > most[lane] ? high : most[lane];
  };
  const std::size_t whole = values.size() - values.size() % kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) take(values[i + lane], lane);
  for (std::size_t i = whole; i < values.size(); ++i) take(values[i], 0);
  const Interval all{std::ranges::min(least), std::ranges::max(most)};
  return all.begin <= all.end ? all : Interval{};
}

/// Which of the buckets of one width a value lies in. Numbers are halved, because the range of two large ones
/// may overflow.
struct Buckets {
  Buckets(const Interval& all, int buckets)
      : half_begin(all.begin / 2), half_width((all.end / 2 - half_begin) / buckets), last(buckets - 1) {}

  /// last + 1 for values that do not count. If all are one value, they are in the last bucket.
  template <class T>
  [[nodiscard]] std::int32_t of(T value) const {
    const double place = half_width > 0 ? (static_cast<double>(value) / 2 - half_begin) / half_width : last;
    const double least = place < 0 ? 0 : place;
    const double inside = least < last ? least : last;
    return static_cast<std::int32_t>(is_finite(value) ? inside : last + 1);
  }

  double half_begin;
  double half_width;
  double last;
};

/// How many values are in each bucket.
template <class T>
std::vector<std::int64_t> count(std::span<const T> values, const Buckets& buckets) {
  // Two sets of counts in turns: values that follow each other are often in the same bucket.
  const std::size_t stride = static_cast<std::size_t>(buckets.last) + 2;
  std::vector<std::int64_t> counts(2 * stride);
  std::array<std::int32_t, kBlock> places{};
  for (; !values.empty(); values = values.subspan(std::min(kBlock, values.size()))) {
    const std::span<const T> block = values.first(std::min(kBlock, values.size()));
    for (std::size_t i = 0; i < block.size(); ++i) places[i] = buckets.of(block[i]);
    for (std::size_t i = 0; i < block.size(); ++i)
      ++counts[static_cast<std::size_t>(places[i]) + (i % 2) * stride];
  }
  for (std::size_t i = 0; i < stride; ++i) counts[i] += counts[i + stride];
  return counts;
}

template <class T>
Tensor histogram(std::span<const T> values, int buckets) {
  const Interval range = around(values);
  const std::vector<std::int64_t> counts = count(values, Buckets(range, buckets));
  Tensor result = Tensor::zeros({buckets, 3}, DType::kFloat64);
  const std::span<double> rows = result.span<double>();
  const double width = (range.end / 2 - range.begin / 2) / buckets * 2;
  for (int bucket = 0; bucket < buckets; ++bucket) {
    const auto row = rows.subspan(static_cast<std::size_t>(bucket) * 3, 3);
    row[0] = range.begin + width * bucket;
    row[1] = bucket + 1 == buckets ? range.end : range.begin + width * (bucket + 1);
    row[2] = static_cast<double>(counts[static_cast<std::size_t>(bucket)]);
  }
  return result;
}

}  // namespace

Tensor histogram_of(const Tensor& values, int buckets) {
  if (buckets < 1) throw InvalidArgument("histogram: {} buckets, but at least 1 is needed", buckets);
  const Tensor here = values.on_host();
  if (here.dtype() == DType::kFloat32) return histogram(here.span<const float>(), buckets);
  const Tensor doubles = here.cast(DType::kFloat64);
  return histogram(doubles.span<const double>(), buckets);
}

}  // namespace cohort
