// The messages of TensorBoard's event files, in the encoding of protocol buffers: each field is its number
// and kind, and then its value. Numbers of fields are those of TensorFlow's event.proto, summary.proto,
// tensor.proto and TensorBoard's plugin_data.proto of hyperparameters. And the tensor that a histogram is
// sent as.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <cohort/device/tensor.h>
#include <cohort/summary/summary_value.h>
#include <cohort/summary/summary_writer.h>

namespace cohort {

/// A message under construction.
class ProtoMessage {
 public:
  ProtoMessage& number(int field, std::int64_t value);
  ProtoMessage& real(int field, double value);
  /// A text, bytes, or another message.
  ProtoMessage& bytes(int field, std::string_view value);
  ProtoMessage& message(int field, const ProtoMessage& value) { return bytes(field, value.encoded_); }

  [[nodiscard]] const std::string& encoded() const noexcept { return encoded_; }

 private:
  void varint(std::uint64_t value);

  std::string encoded_;
};

/// What a file begins with.
[[nodiscard]] std::string version_event(double wall_time);

[[nodiscard]] std::string value_event(const SummaryValue& value);

/// Readers leave out what was before it of `step` and later steps.
[[nodiscard]] std::string restart_event(std::int64_t step, double wall_time);

/// Content for the plugin "hparams": with what a run begins, and how it ended.
[[nodiscard]] std::string session_start(const Hyperparameters& values, double wall_time);
[[nodiscard]] std::string session_end(bool is_success, double wall_time);

/// How values are spread, as float64[buckets, 3]: where each of `buckets` intervals of one width begins,
/// where it ends, and how many of the values lie in it. The last one has its end too. Values that are not
/// finite are in none; without finite values all is 0. @throws InvalidArgument for fewer than 1 bucket.
[[nodiscard]] Tensor histogram_of(const Tensor& values, int buckets);

}  // namespace cohort
