#include <cohort/coordinator/detail/function.h>

#include <vector>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>

namespace cohort::coordinator {
namespace {

/// Filled before `main`, and only read after that.
std::vector<Function>& functions() {
  static std::vector<Function> all;
  return all;
}

}  // namespace

FunctionNumber register_function(const Function& function) {
  functions().push_back(function);
  return static_cast<FunctionNumber>(functions().size() - 1);
}

const Function& function(FunctionNumber number) {
  if (number < functions().size()) return functions()[number];
  throw InvalidArgument(
      "there is no function {} in this program, which has {}: all tasks must run the same program", number,
      functions().size());
}

std::uint64_t fingerprint_of_functions() {
  Fingerprint fingerprint;
  for (const Function& function : functions()) fingerprint.add(function.name);
  return fingerprint.value();
}

}  // namespace cohort::coordinator
