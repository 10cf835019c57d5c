#include "tensor_rules.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

namespace cohort::checkpoint {
namespace {

constexpr char kAny = '*';

bool match_rest(std::string_view pattern, std::string_view name, std::vector<std::string_view>& texts) {
  const std::size_t star = pattern.find(kAny);
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  pattern.remove_prefix(star + 1);
  name.remove_prefix(star);
  for (std::size_t length = 0; length <= name.size(); ++length) {
    texts.push_back(name.substr(0, length));
    if (match_rest(pattern, name.substr(length), texts)) return true;
    texts.pop_back();
  }
  return false;
}

bool has_stars(std::string_view pattern) { return pattern.find(kAny) != std::string_view::npos; }

/// The pattern with these texts in the places of its stars.
std::string filled(std::string_view pattern, const std::vector<std::string_view>& texts) {
  std::string result;
  auto text = texts.begin();
  for (const char character : pattern) {
    if (character == kAny)
      result += *text++;
    else
      result += character;
  }
  return result;
}

}  // namespace

std::optional<std::vector<std::string_view>> match(std::string_view pattern, std::string_view name) {
  std::vector<std::string_view> texts;
  return match_rest(pattern, name, texts) ? std::optional(std::move(texts)) : std::nullopt;
}

TensorRules::TensorRules(std::span<const std::pair<std::string, std::string>> rename,
                         std::span<const std::string> transpose)
    : rename_(rename.begin(), rename.end()),
      transpose_(transpose.begin(), transpose.end()),
      is_rename_used_(rename.size()),
      is_transpose_used_(transpose.size()) {
  for (const auto& [from, to] : rename_) {
    if (from.empty() || to.empty())
      throw InvalidArgument("a tensor cannot be renamed from '{}' to '{}': give both names", from, to);
    if (std::ranges::count(from, kAny) != std::ranges::count(to, kAny)) {
      throw InvalidArgument("cannot rename '{}' to '{}': both names need the same number of '*'", from, to);
    }
  }
}

std::string TensorRules::rename(const std::string& name) {
  for (std::size_t i = 0; i < rename_.size(); ++i) {
    if (const auto texts = match(rename_[i].first, name)) {
      is_rename_used_[i] = true;
      return filled(rename_[i].second, *texts);
    }
  }
  return name;
}

bool TensorRules::is_transposed(const std::string& old_name, const std::string& new_name,
                                const Shape& shape) {
  bool result = false;
  for (std::size_t i = 0; i < transpose_.size(); ++i) {
    if (!match(transpose_[i], old_name) && !match(transpose_[i], new_name)) continue;
    if (shape.rank() != 2) {
      if (has_stars(transpose_[i])) continue;
      throw InvalidArgument("'{}' cannot be transposed: it is {}, and a matrix has two axes", old_name,
                            to_string(shape));
    }
    is_transpose_used_[i] = true;
    result = true;
  }
  return result;
}

void TensorRules::require_used(std::string_view where) const {
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < rename_.size(); ++i)
    if (!is_rename_used_[i]) unused.push_back(fmt::format("rename '{}'", rename_[i].first));
  for (std::size_t i = 0; i < transpose_.size(); ++i)
    if (!is_transpose_used_[i]) unused.push_back(fmt::format("transpose '{}'", transpose_[i]));
  if (unused.empty()) return;
  throw InvalidArgument("'{}' has nothing that these rules are for: {}; look at the names that it has", where,
                        list_names(unused));
}

Shape transposed(const Shape& shape) { return {shape[1], shape[0]}; }

void require_transposable(const std::string& name, const SafetensorsTensor& tensor) {
  if (!tensor.is_foreign || tensor.stored_as.starts_with("F8")) return;
  throw Unimplemented(
      "tensor '{}' in '{}' is {}, which is read as what it consists of: it cannot be transposed", name,
      tensor.file, tensor.stored_as);
}

Tensor converted(const Tensor& tensor, DType dtype, bool is_transposed) {
  if (!is_transposed) return tensor.on_host().cast(dtype);
  const Tensor matrix = tensor.on_host();
  Tensor result = Tensor::uninitialized(transposed(matrix.shape()), matrix.dtype());
  const auto rows = static_cast<std::size_t>(matrix.shape()[0]);
  const auto columns = static_cast<std::size_t>(matrix.shape()[1]);
  visit_dtype(matrix.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto from = matrix.span<T>();
    const auto to = result.span<T>();
    // In blocks of which both sides stay in the first-level cache.
    constexpr std::size_t kBlock = 32;
    for (std::size_t row = 0; row < rows; row += kBlock)
      for (std::size_t column = 0; column < columns; column += kBlock)
        for (std::size_t j = column; j < std::min(column + kBlock, columns); ++j)
          for (std::size_t i = row; i < std::min(row + kBlock, rows); ++i)
            to[j * rows + i] = from[i * columns + j];
  });
  return result.cast(dtype);
}

std::string list_names(std::span<const std::string> names) {
  constexpr std::size_t kShown = 5;
  const auto shown = names.first(std::min(kShown, names.size()));
  const std::size_t others = names.size() - shown.size();
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (others > 0) text += fmt::format(" and {} other{}", others, others == 1 ? "" : "s");
  return text;
}

}  // namespace cohort::checkpoint
