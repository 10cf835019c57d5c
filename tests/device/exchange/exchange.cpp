// What tests/device/exchange/exchange.py calls through ctypes: tensors of Cohort, and capsules of Python that
// carry them through DLPack. The interpreter that loads this library has the functions of capsules.
#include <exception>
#include <memory>
#include <string>

#include <cohort/device/dlpack.h>

extern "C" {
void* PyCapsule_New(void* pointer, const char* name, void (*destructor)(void*));
int PyCapsule_IsValid(void* capsule, const char* name);
void* PyCapsule_GetPointer(void* capsule, const char* name);
int PyCapsule_SetName(void* capsule, const char* name);
}

namespace {

using cohort::Tensor;

constexpr const char* kFresh = "dltensor";
constexpr const char* kUsed = "used_dltensor";

int storages_freed = 0;
std::string message;

/// Another tensor over the same storage, whose end is counted.
Tensor counted(const Tensor& tensor) {
  const std::shared_ptr<void> owner(new Tensor(tensor), [](Tensor* storage) {
    ++storages_freed;
    delete storage;
  });
  const auto buffer =
      std::make_shared<const cohort::Buffer>(tensor.data(), tensor.bytes(), cohort::Device(), owner);
  return Tensor::wrap(buffer, 0, tensor.shape(), tensor.dtype());
}

/// Nobody took the tensor.
void give_back(void* capsule) {
  if (PyCapsule_IsValid(capsule, kFresh) == 0) return;
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
  managed->deleter(managed);
}

}  // namespace

extern "C" {

int freed() { return storages_freed; }
const char* last_message() { return message.c_str(); }

/// Elements 0, 1, 2, ... in `rows` rows.
Tensor* make(const char* dtype, int rows, int columns) {
  const Tensor numbers = Tensor::uninitialized({rows, columns}, cohort::DType::kFloat64);
  double next = 0;
  for (double& number : numbers.span<double>()) number = next++;
  return new Tensor(counted(numbers.cast(cohort::parse_dtype(dtype)).clone()));
}

void drop(const Tensor* tensor) { delete tensor; }
void* address(const Tensor* tensor) { return tensor->data(); }

const char* describe(const Tensor* tensor) {
  message = cohort::describe(*tensor);
  return message.c_str();
}

double element(const Tensor* tensor, int row, int column) {
  return tensor->row(row).rows(column, column + 1).cast(cohort::DType::kFloat64).item<double>();
}

void set_element(const Tensor* tensor, int row, int column, double value) {
  tensor->row(row).rows(column, column + 1).fill(value);
}

void* to_capsule(const Tensor* tensor) {
  return PyCapsule_New(cohort::to_dlpack(*tensor), kFresh, give_back);
}

/// Null, with `last_message`, when Cohort does not take it.
Tensor* from_capsule(void* capsule) {
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
  PyCapsule_SetName(capsule, kUsed);
  try {
    return new Tensor(cohort::from_dlpack(managed));
  } catch (const std::exception& error) {
    message = error.what();
    return nullptr;
  }
}
}
