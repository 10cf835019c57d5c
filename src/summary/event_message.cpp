#include "summary/event_message.h"

#include <bit>
#include <span>

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

}  // namespace cohort
