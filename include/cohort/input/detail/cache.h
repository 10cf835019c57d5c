// Elements kept, in memory or in a file, from the first pass that reaches the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cohort/input/detail/cache_file.h>
#include <cohort/input/detail/dataset_node.h>
#include <cohort/value/detail/bytes.h>

namespace cohort::detail {

/// The state that all passes over one cache in memory share. Threads may use it at the same time.
template <class Element>
class MemoryCache {
 public:
  using Elements = std::shared_ptr<const std::vector<Element>>;

  /// Null until a pass has reached the end.
  [[nodiscard]] Elements elements() const {
    const std::lock_guard lock(mutex_);
    return elements_;
  }
  void keep(std::vector<Element> elements) {
    const std::lock_guard lock(mutex_);
    if (!elements_) elements_ = std::make_shared<const std::vector<Element>>(std::move(elements));
  }

 private:
  mutable std::mutex mutex_;
  Elements elements_;
};

template <class Element>
class FromMemoryCache final : public ElementIterator<Element> {
 public:
  explicit FromMemoryCache(typename MemoryCache<Element>::Elements elements)
      : elements_(std::move(elements)) {}

  std::optional<Element> next() override {
    if (index_ == elements_->size()) return std::nullopt;
    return (*elements_)[index_++];
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = std::min(count, static_cast<std::int64_t>(elements_->size() - index_));
    index_ += static_cast<std::size_t>(skipped);
    return skipped;
  }

 private:
  typename MemoryCache<Element>::Elements elements_;
  std::size_t index_ = 0;
};

/// Reads the source, and fills the cache at the same time.
template <class Element>
class IntoMemoryCache final : public ElementIterator<Element> {
 public:
  IntoMemoryCache(std::unique_ptr<ElementIterator<Element>> source,
                  std::shared_ptr<MemoryCache<Element>> cache)
      : source_(std::move(source)), cache_(std::move(cache)) {}

  // A pass with an error is not kept: it lacks an element.
  std::optional<Element> next() override {
    std::optional<Element> element;
    try {
      element = source_->next();
    } catch (...) {
      drop();
      throw;
    }
    if (!cache_) return element;
    if (element) {
      read_.push_back(*element);
    } else {
      cache_->keep(std::move(read_));
      drop();
    }
    return element;
  }

 private:
  void drop() {
    cache_.reset();
    read_.clear();
  }

  std::unique_ptr<ElementIterator<Element>> source_;
  std::shared_ptr<MemoryCache<Element>> cache_;  // null once there is nothing to fill
  std::vector<Element> read_;
};

template <class Element>
class MemoryCacheNode final : public TransformationNode<Element> {
 public:
  using TransformationNode<Element>::TransformationNode;

  // Every pass is the source's first one, whichever pass fills the cache.
  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& /*pass*/) const override {
    if (auto elements = cache_->elements())
      return std::make_unique<FromMemoryCache<Element>>(std::move(elements));
    return std::make_unique<IntoMemoryCache<Element>>(this->source().iterate(Pass(0)), cache_);
  }
  [[nodiscard]] Cardinality cardinality() const override { return this->source().cardinality(); }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<MemoryCacheNode>(std::move(source));
  }

  std::shared_ptr<MemoryCache<Element>> cache_ = std::make_shared<MemoryCache<Element>>();
};

template <class Element>
class FromCacheFile final : public ElementIterator<Element> {
 public:
  explicit FromCacheFile(const std::string& path) : file_(path) {}

  std::optional<Element> next() override {
    if (file_.at_end()) return std::nullopt;
    ByteReader reader(file_.next(), "a record");
    try {
      std::optional<Element> element(std::in_place, read_value<Element>(reader));
      if (!reader.rest().empty()) throw DataLoss("a record goes on after its element");
      return element;
    } catch (const DataLoss&) {
      throw DataLoss(
          "cannot use the cache '{}': it holds elements of another type than this dataset's; remove it, or "
          "use another path",
          file_.path());
    }
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
    write_value(writer_, *element);
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
