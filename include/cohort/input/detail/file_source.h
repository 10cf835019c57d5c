// The sources of pipelines that read files: the paths themselves, and the elements of one file of a list
// after the other, where the format decides what a file's elements are. AutoShardPolicy::kFile divides the
// list among the workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/input/detail/dataset_node.h>

namespace cohort::detail {

/// The files that are named, or match a shell pattern (`*`, `?`, `[a-z]`), sorted and each once. @throws
/// Unavailable naming a pattern that nothing matches.
[[nodiscard]] std::vector<std::string> matching_files(const std::vector<std::string>& patterns);

/// Every `shard.count`-th path, from the `shard.index`-th on. @throws InvalidArgument, on every worker, for
/// fewer files than shards.
[[nodiscard]] std::vector<std::string> files_of(const std::vector<std::string>& paths, const Shard& shard);

/// The paths of files, for stages that read them.
class FileListNode final : public SourceNode<std::string> {
 public:
  explicit FileListNode(std::vector<std::string> paths);

  [[nodiscard]] std::unique_ptr<ElementIterator<std::string>> iterate(const Pass& pass) const override;
  [[nodiscard]] Cardinality cardinality() const override;
  [[nodiscard]] DatasetNodePtr<std::string> with_files_of(const Shard& shard) const override;

 private:
  std::shared_ptr<const std::vector<std::string>> paths_;
};

template <class Element>
class FileFormat {
 public:
  virtual ~FileFormat() = default;

  /// What messages call it: `TFRecord`.
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// The elements of one file. @throws Error naming the file when it cannot be read.
  [[nodiscard]] virtual std::unique_ptr<ElementIterator<Element>> open(const std::string& path) const = 0;

  /// How many elements the file has, if that is known without reading the file to its end.
  [[nodiscard]] virtual Cardinality cardinality(const std::string& /*path*/) const {
    return Cardinality::unknown();
  }
};

template <class Element>
using FileFormatPtr = std::shared_ptr<const FileFormat<Element>>;

using PathList = std::shared_ptr<const std::vector<std::string>>;

/// @throws InvalidArgument naming the format when there is no file.
void require_files(const std::vector<std::string>& files, std::string_view format);

template <class Element>
class FileElements final : public ElementIterator<Element> {
 public:
  FileElements(PathList files, FileFormatPtr<Element> format)
      : files_(std::move(files)), format_(std::move(format)) {}

  std::optional<Element> next() override {
    while (open_file()) {
      if (std::optional<Element> element = current_->next()) return element;
      current_.reset();
    }
    return std::nullopt;
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    while (skipped < count && open_file()) {
      skipped += current_->skip(count - skipped);
      if (skipped < count) current_.reset();
    }
    return skipped;
  }

 private:
  /// False after the last file.
  bool open_file() {
    if (current_) return true;
    if (next_file_ == files_->size()) return false;
    current_ = format_->open((*files_)[next_file_++]);
    return true;
  }

  PathList files_;
  FileFormatPtr<Element> format_;
  std::size_t next_file_ = 0;
  std::unique_ptr<ElementIterator<Element>> current_;
};

template <class Element>
class FileSourceNode final : public DatasetNode<Element> {
 public:
  FileSourceNode(std::vector<std::string> files, FileFormatPtr<Element> format)
      : files_(std::make_shared<const std::vector<std::string>>(std::move(files))),
        format_(std::move(format)) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& /*pass*/) const override {
    return std::make_unique<FileElements<Element>>(files_, format_);
  }

  // A file that is missing here may be in another worker's part of the list; if it is not, reading fails with
  // its error.
  [[nodiscard]] Cardinality cardinality() const override {
    std::int64_t sum = 0;
    for (const std::string& file : *files_) {
      try {
        const Cardinality of_file = format_->cardinality(file);
        if (!of_file.is_known()) return of_file;
        sum += of_file.count();
      } catch (const Error&) {
        return Cardinality::unknown();
      }
    }
    return Cardinality::of(sum);
  }

  [[nodiscard]] DatasetNodePtr<Element> with_files_of(const Shard& shard) const override {
    return std::make_shared<FileSourceNode>(files_of(*files_, shard), format_);
  }
  [[nodiscard]] DatasetNodePtr<Element> with_hints_as(const Shard& /*shard*/) const override {
    return nullptr;
  }

 private:
  PathList files_;
  FileFormatPtr<Element> format_;
};

/// The source over `files`. @throws InvalidArgument when there are none.
template <class Element>
[[nodiscard]] DatasetNodePtr<Element> read_files(std::vector<std::string> files,
                                                 FileFormatPtr<Element> format) {
  require_files(files, format->name());
  return std::make_shared<FileSourceNode<Element>>(std::move(files), std::move(format));
}

}  // namespace cohort::detail
