// Within a CachingScope, each variable on a parameter server is read from there once: later reads on this
// thread, and in replicas that it runs, give the same value again, also after an assignment. So one step
// computes from one value of each variable, and asks the servers once.
//
//     const CachingScope one_value_each;
//     const Step step = model.step(batch);
//
// A new scope reads anew. Reads of some rows, as by `embedding_lookup`, ask the server each time, and
// variables that lie in this task are not cached.
#pragma once

#include <memory>

namespace cohort {

class ReadCache;

class CachingScope {
 public:
  /// @throws WrongContext while the thread has one already: scopes do not nest.
  CachingScope();
  ~CachingScope();
  CachingScope(const CachingScope&) = delete;
  CachingScope& operator=(const CachingScope&) = delete;

 private:
  std::unique_ptr<ReadCache> cache_;
};

}  // namespace cohort
