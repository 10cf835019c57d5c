#include <cohort/train/losses/loss.h>

#include <cohort/base/error.h>

#include "train/rows.h"

namespace cohort {
namespace {

DType dtype_of_losses(const Tensor& predictions) {
  return predictions.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

Shape shape_of_losses(const Tensor& predictions) {
  const Shape& shape = predictions.shape();
  return shape.rank() < 2 ? shape : shape.without(-1);
}

void require_output(const std::string& name, const Tensor& output, const Shape& shape, DType dtype) {
  if (output.shape() == shape && output.dtype() == dtype) return;
  throw InvalidArgument("{}: the result is {}{}, but the output {}", name, to_string(dtype), to_string(shape),
                        describe(output));
}

}  // namespace

Tensor Loss::operator()(const Tensor& labels, const Tensor& predictions) const {
  require_floating(predictions, name_);
  Tensor losses = Tensor::uninitialized(shape_of_losses(predictions), dtype_of_losses(predictions));
  rule_->values(labels, predictions, losses);
  return losses;
}

void Loss::values(const Tensor& labels, const Tensor& predictions, const Tensor& output) const {
  require_floating(predictions, name_);
  require_output(name_, output, shape_of_losses(predictions), dtype_of_losses(predictions));
  if (is_cpu(output)) return rule_->values(labels, predictions, output);
  output.copy_from((*this)(labels, predictions).to(output.device()));
}

Tensor Loss::gradients(const Tensor& labels, const Tensor& predictions,
                       const std::optional<Tensor>& sample_weight) const {
  Tensor result = Tensor::uninitialized(predictions.shape(), predictions.dtype(), predictions.device());
  write_gradients(labels, predictions, sample_weight, result);
  return result;
}

void Loss::write_gradients(const Tensor& labels, const Tensor& predictions,
                           const std::optional<Tensor>& sample_weight, const Tensor& output) const {
  require_floating(predictions, name_);
  require_output(name_, output, predictions.shape(), predictions.dtype());
  rule_->gradients(labels, predictions, sample_weight ? &*sample_weight : nullptr, output);
}

}  // namespace cohort
