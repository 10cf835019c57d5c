#include <cohort/input/detail/file_source.h>

#include <glob.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/input/detail/selection.h>

namespace cohort::detail {
namespace {

/// What glob() found, freed with this object.
class Matches {
 public:
  explicit Matches(const std::string& pattern) {
    const int status = glob(pattern.c_str(), GLOB_ERR, nullptr, &matches_);
    if (status == 0) return;
    globfree(&matches_);
    if (status == GLOB_NOMATCH) {
      throw Unavailable("no file matches '{}'; look at the path, and whether this host sees it", pattern);
    }
    throw Unavailable("cannot list the files that match '{}': {}", pattern,
                      status == GLOB_NOSPACE ? "out of memory" : "a folder cannot be read");
  }
  ~Matches() { globfree(&matches_); }
  Matches(const Matches&) = delete;
  Matches& operator=(const Matches&) = delete;

  void append_to(std::vector<std::string>& paths) const {
    paths.insert(paths.end(), matches_.gl_pathv, matches_.gl_pathv + matches_.gl_pathc);
  }

 private:
  glob_t matches_{};
};

class FilePaths final : public ElementIterator<std::string> {
 public:
  explicit FilePaths(std::shared_ptr<const std::vector<std::string>> paths) : paths_(std::move(paths)) {}

  std::optional<std::string> next() override {
    if (index_ == paths_->size()) return std::nullopt;
    return (*paths_)[index_++];
  }

  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = std::min(count, static_cast<std::int64_t>(paths_->size() - index_));
    index_ += static_cast<std::size_t>(skipped);
    return skipped;
  }

 private:
  std::shared_ptr<const std::vector<std::string>> paths_;
  std::size_t index_ = 0;
};

}  // namespace

std::vector<std::string> matching_files(const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) Matches(pattern).append_to(paths);
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

std::vector<std::string> files_of(const std::vector<std::string>& paths, const Shard& shard) {
  check_shard(shard);
  if (paths.size() < static_cast<std::size_t>(shard.count)) {
    throw InvalidArgument(
        "auto-sharding by file needs at least one file per worker: {} file{}, {} workers{}; to divide each "
        "batch among them instead, pass {{.auto_shard_policy = AutoShardPolicy::kData}}",
        paths.size(), paths.size() == 1 ? "" : "s", shard.count,
        paths.empty() ? "" : fmt::format(" (the first file is '{}')", paths.front()));
  }
  std::vector<std::string> mine;
  for (auto index = static_cast<std::size_t>(shard.index); index < paths.size();
       index += static_cast<std::size_t>(shard.count)) {
    mine.push_back(paths[index]);
  }
  return mine;
}

FileListNode::FileListNode(std::vector<std::string> paths)
    : paths_(std::make_shared<const std::vector<std::string>>(std::move(paths))) {}

std::unique_ptr<ElementIterator<std::string>> FileListNode::iterate(const Pass& /*pass*/) const {
  return std::make_unique<FilePaths>(paths_);
}

Cardinality FileListNode::cardinality() const {
  return Cardinality::of(static_cast<std::int64_t>(paths_->size()));
}

DatasetNodePtr<std::string> FileListNode::with_files_of(const Shard& shard) const {
  return std::make_shared<FileListNode>(files_of(*paths_, shard));
}

void require_files(const std::vector<std::string>& files, std::string_view format) {
  if (files.empty()) throw InvalidArgument("a dataset of {} files needs at least one file", format);
}

}  // namespace cohort::detail
