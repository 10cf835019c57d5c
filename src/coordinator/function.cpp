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

/// `name` is that of a RegisteredFunction as the compiler writes it: `... RegisteredFunction<train_step>;
/// ...`.
std::string_view Function::short_name() const noexcept {
  constexpr std::string_view kBefore = "RegisteredFunction<";
  std::string_view text = name;
  const std::size_t begin = text.rfind(kBefore);
  if (begin == std::string_view::npos || text.find("lambda") != std::string_view::npos) return "lambda";
  text.remove_prefix(begin + kBefore.size());
  text = text.substr(0, text.find_first_of(";]"));
  text = text.substr(0, text.rfind('>'));
  const std::size_t first = text.find_first_not_of("(& ");
  const std::size_t last = text.find_last_not_of(") ");
  return first == std::string_view::npos ? "lambda" : text.substr(first, last - first + 1);
}

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
