#include "sweep/cohort_calls.h"

#include <array>

namespace cohort::bench {
namespace {

struct Entry {
  const Collective* collective;
  CohortFunction function;
};

constexpr std::array kCalls{
    Entry{&kAllReduce, [](const CohortCall& c) { c.communicator->all_reduce(c.input, c.output, c.op); }},
    Entry{&kReduce, [](const CohortCall& c) { c.communicator->reduce(c.input, c.output, c.op, kRoot); }},
    Entry{&kBroadcast, [](const CohortCall& c) { c.communicator->broadcast(c.output, kRoot); }},
    Entry{&kAllGather, [](const CohortCall& c) { c.communicator->all_gather(c.input, c.output); }},
    Entry{&kAllGatherUneven,
          [](const CohortCall& c) { c.communicator->all_gather_uneven(c.input, c.output, c.counts); }},
    Entry{&kReduceScatter,
          [](const CohortCall& c) { c.communicator->reduce_scatter(c.input, c.output, c.op); }},
    Entry{&kAllToAll, [](const CohortCall& c) { c.communicator->all_to_all(c.input, c.output); }},
    Entry{&kGather, [](const CohortCall& c) { c.communicator->gather(c.input, c.output, kRoot); }},
    Entry{&kScatter, [](const CohortCall& c) { c.communicator->scatter(c.input, c.output, kRoot); }},
    Entry{&kBarrier, [](const CohortCall& c) { c.communicator->barrier(); }},
};

}  // namespace

CohortFunction cohort_function(const Collective& collective) {
  for (const Entry& entry : kCalls) {
    if (entry.collective == &collective) return entry.function;
  }
  throw Internal("{} has no entry in the table of Cohort's calls", collective.name);
}

}  // namespace cohort::bench
