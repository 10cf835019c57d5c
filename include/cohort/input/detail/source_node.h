// The base of sources that have no list of files to divide and nothing upstream.
#pragma once

#include <cohort/input/detail/dataset_node.h>

namespace cohort::detail {

template <class Element>
class SourceNode : public DatasetNode<Element> {
 public:
  [[nodiscard]] DatasetNodePtr<Element> with_files_of(const Shard& /*shard*/) const override {
    return nullptr;
  }
  [[nodiscard]] DatasetNodePtr<Element> with_hints_as(const Shard& /*shard*/) const override {
    return nullptr;
  }
};

}  // namespace cohort::detail
