#include <cohort/input/files/text_line.h>

#include <utility>

#include <cohort/input/detail/file_source.h>

#include "input_file.h"

namespace cohort {
namespace {

constexpr std::string_view kTextName = "text";

class TextLines final : public ElementIterator<std::string> {
 public:
  explicit TextLines(const std::string& path) : lines_(path, kTextName) {}

  std::optional<std::string> next() override {
    std::optional<std::string_view> line = lines_.next();
    if (!line) return std::nullopt;
    if (line->ends_with('\r')) line->remove_suffix(1);
    return std::string(*line);
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    while (skipped < count && lines_.next()) ++skipped;
    return skipped;
  }

 private:
  detail::LineReader lines_;
};

class TextLineFormat final : public detail::FileFormat<std::string> {
 public:
  [[nodiscard]] std::string_view name() const override { return kTextName; }

  [[nodiscard]] std::unique_ptr<ElementIterator<std::string>> open(const std::string& path) const override {
    return std::make_unique<TextLines>(path);
  }
};

}  // namespace

Dataset<std::string> text_line_dataset(std::vector<std::string> files) {
  return Dataset<std::string>(
      detail::read_files<std::string>(std::move(files), std::make_shared<const TextLineFormat>()));
}

}  // namespace cohort
