// `merge_call`: what it sees, what it returns, and how errors end it.
#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "common.h"

namespace cohort::conformance {
namespace {

/// What the replicas of a run have noted.
class Log {
 public:
  void add(const std::string& entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(entry);
  }
  [[nodiscard]] std::vector<std::string> entries() const { return entries_; }
  [[nodiscard]] std::vector<std::string> sorted() const {
    std::vector<std::string> result = entries_;
    std::ranges::sort(result);
    return result;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> entries_;
};

Json order(const Layout& l) {
  Log log;
  l.strategy().run([&](ReplicaContext& replica) {
    const std::string name = fmt::format("r{}", replica.replica_id_in_sync_group());
    for (const char* segment : {"a", "b"}) {
      log.add(name + segment);
      replica.merge_call([&](const Strategy&) { log.add("merge"); });
    }
    log.add(name + "c");
  });
  // Between two merges, the order is anybody's guess.
  std::vector<std::string> entries = log.entries();
  for (auto begin = entries.begin(); begin != entries.end();) {
    const auto end = std::find(begin, entries.end(), "merge");
    std::sort(begin, end);
    begin = end == entries.end() ? end : end + 1;
  }
  return show(entries);
}

Json merges(const Layout& l, const std::function<int(int replica)>& count) {
  return show(l.strategy().run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    for (int i = 0; i < count(id); ++i) replica.merge_call([](const Strategy&) {});
    return number(id);
  }));
}

/// Runs `body` and shows the error that ends it, with the replicas that ran.
Json who_ran(const Layout& l, const std::function<void(int replica)>& body) {
  Log log;
  try {
    l.run([&](int r) {
      log.add(std::to_string(r));
      body(r);
      return None();
    });
  } catch (const MyError& error) {
    Json ran = Json::array();
    for (const std::string& id : log.sorted()) ran.push_back(std::stoi(id));
    return {"MyErr", error.what(), "ran", ran};
  }
  return {"no error", show(l.local_ids())};
}

std::string stopped_by(int replica) {
  const std::string name = fmt::format("r{}:", replica);
  try {
    throw;
  } catch (const MyError&) {
    return name + "MyErr";
  } catch (...) {
    return name + "_RequestedStop";
  }
}

Json error_in_merge(const Layout& l) {
  Log log;
  try {
    l.strategy().run([&](ReplicaContext& replica) {
      try {
        replica.merge_call([](const Strategy&) { throw MyError("in merge"); });
      } catch (...) {
        log.add(stopped_by(replica.replica_id_in_sync_group()));
        throw;
      }
    });
  } catch (const MyError& error) {
    return {"MyErr", error.what(), show(log.sorted())};
  }
  return "no error";
}

Json error_while_others_wait(const Layout& l) {
  Log log;
  try {
    l.strategy().run([&](ReplicaContext& replica) {
      if (replica.replica_id_in_sync_group() == l.replicas() - 1 && l.replicas() > 1) throw MyError("last");
      try {
        replica.merge_call([&](const Strategy&) { log.add("merge"); });
      } catch (...) {
        log.add(stopped_by(replica.replica_id_in_sync_group()));
        throw;
      }
    });
  } catch (const MyError& error) {
    return {"MyErr", error.what(), show(log.sorted())};
  }
  return show(log.entries());
}

Json late_error(const Layout& l) {
  try {
    l.strategy().run([&](ReplicaContext& replica) {
      replica.merge_call([](const Strategy&) {});
      if (replica.replica_id_in_sync_group() == 0) throw MyError("late");
    });
  } catch (const MyError& error) {
    return {"MyErr", error.what(), Json::array()};
  }
  return nullptr;
}

Json nested_run(const Layout& l) {
  return show(l.strategy().run([](ReplicaContext& replica) {
    return replica.merge_call(
        [](const Strategy& strategy, const PerReplica<double>& values) {
          return strategy.run(
              [](ReplicaContext& inner, double y) { return y * 10 + inner.replica_id_in_sync_group(); },
              values);
        },
        replica.replica_id_in_sync_group() + 1.0);
  }));
}

}  // namespace

std::vector<Scenario> merge_scenarios() {
  return {
      {"merge/order", order, {{kSeveralReplicas, kConcurrent, order}}},
      {"merge/args_seen",
       [](const Layout& l) {
         Json seen = Json::array();
         l.strategy().run([&](ReplicaContext& replica) {
           const Tensor r = number(replica.replica_id_in_sync_group());
           replica.merge_call(
               [&](const Strategy&, const auto&... values) {
                 seen.push_back(Json{Json{show(values)...}, Json::object()});
               },
               r, 5, None(), std::tuple(r, std::string("x")));
         });
         return seen;
       },
       {{kSeveralReplicas, kIdentity,
         [](const Layout& l) {
           const Json ids = show(l.each([](int r) { return r; }));
           return Json::array({Json::array(
               {Json{ids, on_each(l, 5), nullptr, Json{ids, on_each(l, "x")}}, Json::object()})});
         }}}},
      {"merge/result_tensor",
       [](const Layout& l) {
         return show(l.strategy().run([](ReplicaContext& replica) {
           return replica.merge_call([](const Strategy&) { return number(42); });
         }));
       },
       {{kSeveralReplicas, kIdentity, [](const Layout& l) { return on_each(l, 42.0); }}}},
      {"merge/result_perreplica",
       [](const Layout& l) {
         return show(l.strategy().run([](ReplicaContext& replica) {
           return 10.0 + replica.merge_call([](const Strategy&, const PerReplica<int>& ids) { return ids; },
                                            replica.replica_id_in_sync_group());
         }));
       }},
      {"merge/result_none",
       [](const Layout& l) {
         l.strategy().run([](ReplicaContext& replica) { replica.merge_call([](const Strategy&) {}); });
         return Json(nullptr);
       }},
      {"merge/reduce_in_merge",
       [](const Layout& l) {
         return show(l.strategy().run([](ReplicaContext& replica) {
           return replica.merge_call(
               [](const Strategy& strategy, const PerReplica<Tensor>& values) {
                 return strategy.reduce(ReduceOp::kSum, values);
               },
               number(replica.replica_id_in_sync_group() + 1));
         }));
       },
       {{"mirrored2 central2", kIdentity, [](const Layout& l) { return on_each(l, 3.0); }},
        {"mirrored3", kIdentity, [](const Layout& l) { return on_each(l, 6.0); }}}},
      {"merge/first_arg",
       [](const Layout& l) {
         Json seen;
         l.strategy().run([&](ReplicaContext& replica) {
           replica.merge_call([&](const Strategy& strategy) {
             seen = {class_of(l, strategy), strategy == l.strategy()};
           });
         });
         return seen;
       }},
      {"merge/different_fns",
       [](const Layout& l) {
         return show(l.strategy().run([](ReplicaContext& replica) {
           const int id = replica.replica_id_in_sync_group();
           return replica.merge_call([id](const Strategy&) { return 100 + id; });
         }));
       },
       {{kSeveralReplicas, kIdentity, [](const Layout& l) { return on_each(l, 100); }}}},
      {"merge/count_mismatch_only_r0",
       [](const Layout& l) { return merges(l, [](int r) { return r == 0 ? 1 : 0; }); }},
      {"merge/count_mismatch_not_r0",
       [](const Layout& l) { return merges(l, [](int r) { return r == 0 ? 0 : 1; }); }},
      {"merge/count_mismatch_2_1",
       [](const Layout& l) {
         static_cast<void>(merges(l, [](int r) { return r == 0 ? 2 : 1; }));
         return Json(nullptr);
       }},
      {"merge/exception_r0",
       [](const Layout& l) {
         return who_ran(l, [](int r) {
           if (r == 0) throw MyError("boom0");
         });
       },
       {{kSeveralReplicas, kConcurrent,
         [](const Layout& l) {
           return Json{"MyErr", "boom0", "ran", show(l.local_ids())};
         }}}},
      {"merge/exception_last",
       [](const Layout& l) {
         return who_ran(l, [&](int r) {
           if (r == l.replicas() - 1) throw MyError(fmt::format("boom{}", r));
         });
       }},
      {"merge/exception_all",
       [](const Layout& l) {
         return who_ran(l, [](int r) { throw MyError(fmt::format("boom{}", r)); }).at(1);
       }},
      {"merge/exception_in_merge",
       error_in_merge,
       {{kSeveralReplicas, kConcurrent,
         [](const Layout& l) {
           Json stopped = Json::array();
           for (const int id : l.local_ids()) stopped.push_back(fmt::format("r{}:_RequestedStop", id));
           return Json{"MyErr", "in merge", stopped};
         }},
        {"mwms2", "one replica merges where it runs",
         [](const Layout& l) {
           return Json{"MyErr", "in merge", Json::array({fmt::format("r{}:MyErr", l.worker())})};
         }}}},
      {"merge/exception_r0_after_merge", late_error},
      {"merge/exception_while_others_wait",
       error_while_others_wait,
       {{"mirrored3", kConcurrent,
         [](const Layout&) {
           return Json{"MyErr", "last", Json::array({"r0:_RequestedStop", "r1:_RequestedStop"})};
         }}}},
      {"merge/nested_run", nested_run},
      {"merge/nested_exc_run",
       [](const Layout& l) {
         l.strategy().run([](ReplicaContext& replica) {
           replica.merge_call([](const Strategy& strategy) { strategy.run([] { throw MyError("inner"); }); });
         });
         return Json("no error");
       }},
      {"merge/merge_in_merge",
       [](const Layout& l) {
         Json seen;
         l.strategy().run([&](ReplicaContext& replica) {
           replica.merge_call(
               [&](const Strategy&) { seen = get_replica_context() == nullptr ? "None" : "a context"; });
         });
         return seen;
       }},
      {"merge/default_ctx",
       [](const Layout& l) {
         return get_replica_context()->merge_call(
             [&](const Strategy& strategy, const PerReplica<int>& value) {
               return Json{strategy == get_strategy() && !has_strategy() ? "_DefaultDistributionStrategy"
                                                                         : class_of(l, strategy),
                           value[0], in_cross_replica_context()};
             },
             4);
       }},
  };
}

}  // namespace cohort::conformance
