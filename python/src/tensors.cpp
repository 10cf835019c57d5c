#include "tensors.h"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

namespace cohort::pytorch {
namespace {

struct Element {
  DType dtype = DType::kUInt8;
  std::size_t count = 1;  ///< of Cohort's elements in one of PyTorch's
};

std::optional<Element> element_of(at::ScalarType type) {
  switch (type) {
    case at::kChar: return Element{DType::kInt8};
    case at::kShort: return Element{DType::kInt16};
    case at::kInt: return Element{DType::kInt32};
    case at::kLong: return Element{DType::kInt64};
    case at::kByte: return Element{DType::kUInt8};
    case at::kUInt16: return Element{DType::kUInt16};
    case at::kUInt32: return Element{DType::kUInt32};
    case at::kUInt64: return Element{DType::kUInt64};
    case at::kHalf: return Element{DType::kFloat16};
    case at::kBFloat16: return Element{DType::kBFloat16};
    case at::kFloat: return Element{DType::kFloat32};
    case at::kDouble: return Element{DType::kFloat64};
    case at::kBool: return Element{DType::kBool};
    case at::kComplexHalf: return Element{DType::kFloat16, 2};
    case at::kComplexFloat: return Element{DType::kFloat32, 2};
    case at::kComplexDouble: return Element{DType::kFloat64, 2};
    default: return std::nullopt;
  }
}

Tensor wrap(const at::Tensor& tensor, Element element) {
  TORCH_CHECK(tensor.is_cpu(), "cohort moves tensors of CPUs; for this one on ", tensor.device(),
              " add a backend of that device, for example init_process_group(\"cpu:cohort,cuda:nccl\")");
  TORCH_INTERNAL_ASSERT(tensor.is_contiguous());
  auto owner = std::make_shared<at::Tensor>(tensor);
  auto* const data = static_cast<std::byte*>(tensor.data_ptr());
  return Tensor::wrap(std::make_shared<const Buffer>(data, tensor.nbytes(), Device(), std::move(owner)), 0,
                      Shape{tensor.numel() * static_cast<std::int64_t>(element.count)}, element.dtype);
}

void copy_elements(const at::Tensor& from, const at::Tensor& to) {
  if (from.is_contiguous() && to.is_contiguous() && from.scalar_type() == to.scalar_type())
    std::memcpy(to.data_ptr(), from.data_ptr(), from.nbytes());
  else
    to.copy_(from.view(to.sizes()));
}

}  // namespace

Tensor numbers_of(const at::Tensor& tensor) {
  const std::optional<Element> element = element_of(tensor.scalar_type());
  TORCH_CHECK_TYPE(element, "cohort cannot combine tensors of ", tensor.scalar_type(),
                   "; cast them first, for example to bfloat16");
  return wrap(tensor, *element);
}

Tensor contents_of(const at::Tensor& tensor) {
  const std::optional<Element> element = element_of(tensor.scalar_type());
  return wrap(tensor,
              element.value_or(Element{DType::kUInt8, static_cast<std::size_t>(tensor.element_size())}));
}

Tensor part_of(const Tensor& row, std::size_t offset, std::size_t count) {
  return row.rows(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(offset + count));
}

at::Tensor row_major_result(const at::Tensor& tensor) {
  return tensor.is_contiguous() ? tensor
                                : at::empty(tensor.sizes(), tensor.options().memory_format(std::nullopt));
}

void put_into(const at::Tensor& tensor, const at::Tensor& result) {
  if (!result.is_same(tensor)) copy_elements(result, tensor);
}

at::Tensor scratch(std::int64_t elements, const at::Tensor& like) {
  auto buffer = allocate(static_cast<std::size_t>(elements * like.element_size()), Device());
  std::byte* const data = buffer->data();
  return at::from_blob(
      data, {elements}, [kept = std::move(buffer)](void*) {},
      at::TensorOptions().dtype(like.scalar_type()).device(at::kCPU));
}

std::int64_t total_elements(std::span<const at::Tensor> tensors) {
  std::int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) elements += tensor.numel();
  return elements;
}

at::Tensor room_for(std::span<const at::Tensor> tensors) {
  std::int64_t elements = 0;
  const at::Tensor& first = tensors.front();
  bool in_a_row = true;
  for (const at::Tensor& tensor : tensors) {
    in_a_row = in_a_row && tensor.is_contiguous() && tensor.is_alias_of(first) &&
               tensor.storage_offset() == first.storage_offset() + elements;
    elements += tensor.numel();
  }
  if (in_a_row) return first.as_strided({elements}, {1});
  return scratch(elements, first);
}

namespace {

template <class Function>
void for_each_part(const at::Tensor& row, std::span<const at::Tensor> tensors, const Function& function) {
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor part = row.narrow(0, offset, tensor.numel());
    if (part.data_ptr() != tensor.data_ptr()) function(part, tensor);
    offset += tensor.numel();
  }
}

}  // namespace

void pack(std::span<const at::Tensor> tensors, const at::Tensor& row) {
  for_each_part(row, tensors, [](const at::Tensor& part, const at::Tensor& tensor) {
    if (tensor.is_contiguous())
      copy_elements(tensor, part);
    else
      part.view(tensor.sizes()).copy_(tensor);
  });
}

void unpack(const at::Tensor& row, std::span<const at::Tensor> tensors) {
  for_each_part(row, tensors,
                [](const at::Tensor& part, const at::Tensor& tensor) { copy_elements(part, tensor); });
}

}  // namespace cohort::pytorch
