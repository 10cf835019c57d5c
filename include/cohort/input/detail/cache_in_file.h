// Elements kept in a file from the first pass that reaches the end.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <cohort/input/detail/cache_file.h>
#include <cohort/input/detail/dataset_node.h>
#include <cohort/input/detail/element_bytes.h>

namespace cohort::detail {

template <class Element>
class FromCacheFile final : public ElementIterator<Element> {
 public:
  explicit FromCacheFile(const std::string& path) : file_(path) {}

  std::optional<Element> next() override {
    if (file_.at_end()) return std::nullopt;
    ByteReader reader(file_.next());
    std::optional<Element> element(std::in_place);
    try {
      read_element(reader, *element);
      reader.require_end();
    } catch (const DataLoss& error) {
      throw DataLoss("cannot use the cache '{}': {}; remove it, or use another path", file_.path(),
                     error.what());
    }
    return element;
  }
  std::int64_t skip(std::int64_t count) override { return file_.skip(count); }

 private:
  CacheFileReader file_;
};

/// Reads the source, and writes the file at the same time.
template <class Element>
class IntoCacheFile final : public ElementIterator<Element> {
 public:
  IntoCacheFile(std::unique_ptr<ElementIterator<Element>> source, const std::string& path)
      : source_(std::move(source)), file_(std::in_place, path) {}

  // A pass with an error leaves no file, which would lack an element.
  std::optional<Element> next() override {
    std::optional<Element> element;
    try {
      element = source_->next();
      if (file_) keep(element);
    } catch (...) {
      file_.reset();
      throw;
    }
    return element;
  }

 private:
  void keep(const std::optional<Element>& element) {
    if (!element) {
      file_->finish();
      file_.reset();
      return;
    }
    writer_.clear();
    write_element(writer_, *element);
    file_->append(writer_.bytes());
  }

  std::unique_ptr<ElementIterator<Element>> source_;
  std::optional<CacheFileWriter> file_;  // null once it cannot become complete
  ByteWriter writer_;
};

template <class Element>
class FileCacheNode final : public DatasetNode<Element> {
 public:
  FileCacheNode(DatasetNodePtr<Element> source, std::string path)
      : source_(std::move(source)), path_(std::move(path)) {}

  // Every pass is the source's first one, whichever pass fills the cache.
  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    if (pass.number() == 0) remove_abandoned_caches(path_);
    if (std::filesystem::exists(path_)) return std::make_unique<FromCacheFile<Element>>(path_);
    return std::make_unique<IntoCacheFile<Element>>(source_->iterate(Pass(0)), path_);
  }
  [[nodiscard]] Cardinality cardinality() const override { return source_->cardinality(); }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return source_->batch_size(); }

  // Workers that read different parts need a file each, even if they see the same folder.
  [[nodiscard]] DatasetNodePtr<Element> with_files_of(const Shard& shard) const override {
    return of_part(source_->with_files_of(shard), shard);
  }
  [[nodiscard]] DatasetNodePtr<Element> with_hints_as(const Shard& shard) const override {
    return of_part(source_->with_hints_as(shard), shard);
  }

 private:
  [[nodiscard]] DatasetNodePtr<Element> of_part(DatasetNodePtr<Element> source, const Shard& shard) const {
    if (!source) return nullptr;
    std::string path = shard.count == 1 ? path_ : path_of_part(path_, shard);
    return std::make_shared<FileCacheNode>(std::move(source), std::move(path));
  }

  DatasetNodePtr<Element> source_;
  std::string path_;
};

}  // namespace cohort::detail
