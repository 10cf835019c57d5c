// cohort-bench: measures the collectives of Cohort beside those of MPI, in the same run.
#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/mpi/session.h>

#include "agreed_error.h"
#include "command_line.h"
#include "environment.h"
#include "harness.h"
#include "launcher_rank.h"
#include "mpi_group.h"
#include "output.h"
#include "usage_error.h"

namespace cohort::bench {
namespace {

enum ExitStatus { kSuccess = 0, kFailure = 1, kUsage = 2 };

Problem make_problem(const CommandLine& line, std::size_t bytes, const Bootstrap& session) {
  const auto on_this_node = [&](const WorkerInfo& worker) { return worker.node == session.self().node; };
  const std::span<const WorkerInfo> workers = session.workers();
  return {.dtype = line.dtype,
          .op = line.op,
          .elements = std::max<std::size_t>(bytes / size_of(line.dtype), 1),
          .member = session.rank(),
          .members = session.size(),
          .members_on_node = static_cast<int>(std::count_if(workers.begin(), workers.end(), on_this_node))};
}

std::string subject_of(const CommandLine& line) {
  return fmt::format(
      "{}{}, inputs {}; peer: {}", line.collective->name, line.collective->in_place ? ", in place" : "",
      line.harness.inputs == Inputs::kRewritten ? "rewritten before each call" : "kept between calls",
      line.collective->peer);
}

/// Runs the sweep on all ranks. `output` is null on all but rank 0.
/// @throws AgreedError when the results are wrong or could not be had.
void sweep(const CommandLine& line, mpi::Session& session, Output* output,
           const std::vector<std::string>& arguments) {
  const Environment environment = capture_environment(session, mpi::library_version(), arguments);
  if (output != nullptr) output->begin(environment, subject_of(line));

  const MpiGroup group;
  const auto communicator = session.make_communicator({});
  const auto measure_size = [&](const Problem& problem) {
    return measure(*line.collective, problem, line.harness, *communicator, group);
  };
  // A rehearsal: the first calls of a run are slow, whatever their size.
  (void)measure_size(make_problem(line, line.sizes.first, session));

  std::uint64_t wrong = 0;
  std::string why_no_peer;
  for (const std::size_t bytes : sizes_in(line.sizes)) {
    const Problem problem = make_problem(line, bytes, session);
    const std::vector<Result> results = measure_size(problem);
    for (const Result& result : results) wrong += result.wrong.value_or(0);
    if (why_no_peer.empty()) why_no_peer = line.collective->why_no_peer(problem);
    if (output != nullptr) output->add(results);
  }
  if (output != nullptr && !why_no_peer.empty()) output->note("no peer in some rows: " + why_no_peer);
  const bool written = output == nullptr || output->end();
  if (group.from_rank_0(written ? 1 : 0) == 0) {
    throw AgreedError("the report could not be written completely: is the disk full?");
  }
  if (wrong > 0) throw AgreedError("{} elements were wrong", wrong);
}

/// All ranks read the same command line, but only rank 0 prints and opens files: the ranks tell
/// each other what is wrong, so that all leave together.
ExitStatus run(mpi::Session& session, const std::vector<std::string>& arguments) {
  const bool prints = session.rank() == 0;
  CommandLine line;
  std::optional<Output> output;
  std::string mistake;
  try {
    line = parse_command_line({arguments.begin() + 1, arguments.end()}, collectives());
    if (prints && line.help.empty()) output.emplace(line);
  } catch (const UsageError& error) {
    mistake = error.what();
  }
  for (const std::string& text : session.exchange(mistake)) {
    if (text.empty()) continue;
    if (prints) complain(text);
    return kUsage;
  }
  if (!line.help.empty()) {
    if (prints) std::cout << line.help;
    return kSuccess;
  }
  try {
    sweep(line, session, output ? &*output : nullptr, arguments);
  } catch (const AgreedError& error) {
    if (output) static_cast<void>(output->end());  // what was measured so far
    if (prints) complain(error.what());
    return kFailure;
  }
  return kSuccess;
}

/// An error that has been printed.
struct Explained {};

/// An error that leaves through the session ends the job, so it has to be printed before. One that
/// ended a collective is the same on all members, and rank 0 speaks for them.
ExitStatus run_or_explain(mpi::Session& session, const std::vector<std::string>& arguments) {
  try {
    return run(session, arguments);
  } catch (const Error& error) {
    if (session.rank() == 0 || error.origin().call.empty()) complain(error.what());
    throw Explained();
  }
}

}  // namespace
}  // namespace cohort::bench

int main(int argc, char** argv) {
  using namespace cohort;
  try {
    (void)config();
  } catch (const InvalidArgument& error) {
    if (is_first_rank()) bench::complain(error.what());
    return bench::kUsage;
  }
  try {
    mpi::Session session(argc, argv);
    return bench::run_or_explain(session, {argv, argv + argc});
  } catch (const bench::Explained&) {
    return bench::kFailure;
  } catch (const Error& error) {
    bench::complain(error.what());
    return bench::kFailure;
  }
}
