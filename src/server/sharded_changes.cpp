// How a ShardedVariable is changed: each shard gets its rows of what the whole gets.
#include <cohort/base/error.h>
#include <cohort/server/sharded_variable.h>

#include "server/shard_access.h"

namespace cohort {
namespace {

/// `what`, a value or slices, for messages.
template <class Value>
void require_fitting(std::string_view operation, const Value& what, const Shape& shape, DType dtype,
                     const ShardedVariable& variable) {
  if (shape == variable.shape() && dtype == variable.dtype()) return;
  throw InvalidArgument("{} of {} to variable '{}', which is {}{}: dtype and shape must agree", operation,
                        describe(what), variable.name(), to_string(variable.dtype()),
                        to_string(variable.shape()));
}

}  // namespace

std::vector<Tensor> ShardedVariable::split(const Tensor& value) const {
  if (variables().size() == 1) return {value};
  std::vector<Tensor> parts;
  for (int shard = 0; shard < layout().shards(); ++shard) {
    const RowRange rows = layout().range(shard);
    parts.push_back(value.rows(rows.begin, rows.end));
  }
  return parts;
}

std::vector<IndexedSlices> ShardedVariable::split(const IndexedSlices& rows) const {
  if (variables().size() == 1) return {rows};
  const Tensor indices = rows.indices.on_host().cast(DType::kInt64);
  const Tensor values = rows.values.on_host();
  std::vector<IndexedSlices> parts;
  for (const Variable& shard : variables()) {
    parts.push_back({Tensor::uninitialized(shard.shape().with(0, 0), dtype()),
                     Tensor::uninitialized({0}, DType::kInt64), shard.shape()});
  }
  for (const ShardRows& part : layout().split(std::span<const std::int64_t>(indices.span<std::int64_t>()))) {
    IndexedSlices& of_shard = parts[static_cast<std::size_t>(part.shard)];
    of_shard.indices = Tensor::from(part.rows);
    of_shard.values = Tensor::uninitialized(of_shard.dense_shape.with(0, std::ssize(part.rows)), dtype());
    copy_rows(values, part.positions, of_shard.values, {});
  }
  for (IndexedSlices& part : parts) part.values = part.values.to(rows.values.device());
  return parts;
}

void ShardedVariable::assign_by(std::string_view operation, AssignMember member, const Tensor& value) const {
  require_fitting(operation, value, value.shape(), value.dtype(), *this);
  const std::vector<Tensor> parts = split(value);
  change_together(variables(), [&] {
    for (std::size_t shard = 0; shard < parts.size(); ++shard) (variables()[shard].*member)(parts[shard]);
  });
}

void ShardedVariable::scatter_by(std::string_view operation, ScatterMember member,
                                 const IndexedSlices& rows) const {
  validate(rows);
  require_fitting(operation, rows, rows.dense_shape, rows.values.dtype(), *this);
  const std::vector<IndexedSlices> parts = split(rows);
  change_together(variables(), [&] {
    for (std::size_t shard = 0; shard < parts.size(); ++shard) (variables()[shard].*member)(parts[shard]);
  });
}

const ShardedVariable& ShardedVariable::assign(const Tensor& value) const {
  assign_by("assign", &Variable::assign, value);
  return *this;
}
const ShardedVariable& ShardedVariable::assign_add(const Tensor& value) const {
  assign_by("assign_add", &Variable::assign_add, value);
  return *this;
}
const ShardedVariable& ShardedVariable::assign_sub(const Tensor& value) const {
  assign_by("assign_sub", &Variable::assign_sub, value);
  return *this;
}

const ShardedVariable& ShardedVariable::scatter_add(const IndexedSlices& rows) const {
  scatter_by("scatter_add", &Variable::scatter_add, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_sub(const IndexedSlices& rows) const {
  scatter_by("scatter_sub", &Variable::scatter_sub, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_mul(const IndexedSlices& rows) const {
  scatter_by("scatter_mul", &Variable::scatter_mul, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_div(const IndexedSlices& rows) const {
  scatter_by("scatter_div", &Variable::scatter_div, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_min(const IndexedSlices& rows) const {
  scatter_by("scatter_min", &Variable::scatter_min, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_max(const IndexedSlices& rows) const {
  scatter_by("scatter_max", &Variable::scatter_max, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_update(const IndexedSlices& rows) const {
  scatter_by("scatter_update", &Variable::scatter_update, rows);
  return *this;
}

std::vector<GradientAndVariable> ShardedVariable::split_gradient(const Tensor& gradient) const {
  require_fitting("a gradient", gradient, gradient.shape(), gradient.dtype(), *this);
  const std::vector<Tensor> parts = split(gradient);
  std::vector<GradientAndVariable> result;
  for (std::size_t shard = 0; shard < parts.size(); ++shard)
    result.push_back({parts[shard], variables()[shard]});
  return result;
}

std::vector<SparseGradientAndVariable> ShardedVariable::split_gradient(const IndexedSlices& gradient) const {
  validate(gradient);
  require_fitting("a gradient", gradient, gradient.dense_shape, gradient.values.dtype(), *this);
  const std::vector<IndexedSlices> parts = split(gradient);
  std::vector<SparseGradientAndVariable> result;
  for (std::size_t shard = 0; shard < parts.size(); ++shard)
    result.push_back({parts[shard], variables()[shard]});
  return result;
}

}  // namespace cohort
