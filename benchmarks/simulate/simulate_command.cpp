#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "commands.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kSimulateAbout =
    R"(simulate: predicts the times of collectives between many nodes, by the library's own code on a virtual clock and
over a network by a model; what members do on their node takes no time. Or carries out jobs in which members are killed
and links are cut. In one process.

  cohort-bench simulate [options]
)";

OptionsDescription simulate_options() {
  OptionsDescription all = make_options("Options of simulate");
  add_option(all, "nodes", "N", "up to N nodes, from 2 on in powers of two; default 256");
  add_option(all, "lanes", "N", "members of each node, with 0.7 MiB of memory for each; default 4");
  add_option(all, "latency-ns", "NS", "of a message between two nodes; default 2000");
  add_option(all, "gbits", "N", "a node's link, in Gbit/s; default 100");
  add_option(all, "eager-bytes", "N", "longer messages wait for their receives; default 8192");
  add_option(all, "bytes", "N", "of each call's largest buffer; default: of each call, some sizes");
  add_option(all, "collective", "NAME", "only this one, for example all-reduce; default: all");
  add_option(all, "gap-ns", "NS", "at least, between two messages of a node; default 200");
  add_option(all, "message-bytes", "N", "the longest message of a long call; default 57344");
  add_option(all, "group", "N", "nodes below one switch; default 0: all");
  add_option(all, "taper", "N", "nodes' bandwidth over that of their switch's link; default 1");
  add_option(all, "plot", "FILE", "write a picture of the times there, in SVG");
  add_option(all, "faults", "N", "carry out N jobs with a fault instead, and check them");
  add_option(all, "seed", "N", "of the first such job; default 1");
  return all;
}

/// As commands are called.
std::string name_of(CollectiveKind kind) {
  std::string name(to_string(kind));
  std::ranges::replace(name, '_', '-');
  return name;
}

CollectiveKind parse_kind(const std::string& name) {
  const auto found = std::ranges::find(kSimulatedKinds, name, name_of);
  if (found != kSimulatedKinds.end()) return *found;
  std::vector<std::string> names;
  std::ranges::transform(kSimulatedKinds, std::back_inserter(names), name_of);
  throw UsageError("--collective {}: choose one of {}", name, fmt::join(names, ", "));
}

CommandOptions parse_simulate(const GivenOptions& given) {
  SimulateOptions simulate;
  constexpr int kMany = 1 << 20;
  if (given.has("nodes")) simulate.nodes = given.count("nodes", 2, 4096);
  if (given.has("lanes")) simulate.lanes = given.count("lanes", 1, 64);
  if (given.has("latency-ns")) simulate.network.latency_seconds = given.count("latency-ns", 0, kMany) * 1e-9;
  if (given.has("gbits")) simulate.network.seconds_per_byte = 8e-9 / given.count("gbits", 1, kMany);
  if (given.has("eager-bytes"))
    simulate.network.eager_bytes = static_cast<std::size_t>(given.count("eager-bytes", 1, 1 << 30));
  if (given.has("bytes")) simulate.bytes = static_cast<std::size_t>(given.count("bytes", 1, 1 << 30));
  if (given.has("collective")) simulate.kind = parse_kind(given.text("collective"));
  if (given.has("gap-ns")) simulate.network.gap_seconds = given.count("gap-ns", 0, kMany) * 1e-9;
  if (given.has("message-bytes"))
    simulate.network.message_bytes = static_cast<std::size_t>(given.count("message-bytes", 1, 1 << 30));
  if (given.has("group")) simulate.network.nodes_of_group = given.count("group", 0, kMany);
  if (given.has("taper")) simulate.network.taper = given.count("taper", 1, kMany);
  if (given.has("faults")) simulate.faults = static_cast<std::uint64_t>(given.count("faults", 1, kMany));
  if (simulate.faults) given.refuse({"plot", "collective", "bytes"}, "jobs with faults have no times");
  simulate.plot = given.text("plot");
  if (given.has("seed")) simulate.seed = static_cast<std::uint64_t>(given.count("seed", 1, 1 << 30));
  return simulate;
}

}  // namespace

Command simulate_command() {
  return {.name = "simulate",
          .group = "Machines with many cores",
          .text = "collectives between up to 4096 nodes, simulated",
          .about = kSimulateAbout,
          .options = simulate_options,
          .parse = parse_simulate};
}

}  // namespace cohort::bench
