// The paths of files, for stages that read them. AutoShardPolicy::kFile divides this list among the workers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cohort/input/detail/source_node.h>

namespace cohort::detail {

/// The files that are named, or match a shell pattern (`*`, `?`, `[a-z]`), sorted and each once. @throws
/// Unavailable naming a pattern that nothing matches.
[[nodiscard]] std::vector<std::string> matching_files(const std::vector<std::string>& patterns);

/// Every `shard.count`-th path, from the `shard.index`-th on. @throws InvalidArgument, on every worker, for
/// fewer files than shards.
[[nodiscard]] std::vector<std::string> files_of(const std::vector<std::string>& paths, const Shard& shard);

class FileListNode final : public SourceNode<std::string> {
 public:
  explicit FileListNode(std::vector<std::string> paths);

  [[nodiscard]] std::unique_ptr<ElementIterator<std::string>> iterate(const Pass& pass) const override;
  [[nodiscard]] Cardinality cardinality() const override;
  [[nodiscard]] DatasetNodePtr<std::string> with_files_of(const Shard& shard) const override;

 private:
  std::shared_ptr<const std::vector<std::string>> paths_;
};

}  // namespace cohort::detail
