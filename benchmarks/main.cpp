// cohort-bench: measures the collectives of Cohort beside those of MPI, in the same run, what its
// strategies cost, what its input pipeline delivers, how fast parameter servers are, checkpoints, and starts.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/cluster/bootstrap.h>
#include <cohort/collective/communicator.h>
#include <cohort/collective/thread_communicator.h>
#include <cohort/device/device.h>
#include <cohort/mpi/session.h>

#include "cluster/launcher.h"
#include "command_line.h"
#include "environment.h"
#include "errors.h"
#include "gpu/gpu_side.h"
#include "mpi_team.h"
#include "output.h"
#include "parameters/server_job.h"
#include "peer.h"
#include "profile/profile.h"
#include "run_context.h"
#include "strategy/device_route.h"
#include "sweep/sweep.h"
#include "team.h"

namespace cohort::bench {
namespace {

constexpr const char* kNotWritten = "the report could not be written completely: is the disk full?";

enum ExitStatus { kSuccess = 0, kFailure = 1, kUsage = 2 };

// For members whose tensors are on GPUs: which GPU and which communicator each of them has, both chosen as
// strategies choose them.

/// The first `members` GPUs that this process sees.
/// @throws UsageError when there are fewer, or none, with the reason.
std::vector<Device> gpus_of_threads(int members) {
  std::vector<Device> devices;
  try {
    for (int member = 0; member < members; ++member) {
      devices.emplace_back(DeviceKind::kCuda, member);
      require_exists(devices.back());
    }
  } catch (const Unavailable& error) {
    throw UsageError("--device cuda with {} {}: {}", members, members == 1 ? "member" : "members",
                     error.what());
  }
  return devices;
}

/// The first GPU of this rank. Collective over the ranks.
Device gpu_of_rank(Bootstrap& bootstrap) { return gpus_of_this_worker(&bootstrap).front(); }

/// The communicators for tensors on `devices`, made of those for tensors on the host. Collective over the
/// members; `bootstrap` is null for threads.
std::vector<std::unique_ptr<Communicator>> on_gpus(std::vector<std::unique_ptr<Communicator>> communicators,
                                                   const std::vector<Device>& devices, Bootstrap* bootstrap) {
  const DeviceRoute route("cohort-bench", bootstrap, devices, CommunicationImplementation::kAuto);
  return route.connected(std::move(communicators));
}

/// Everything that the members of a run share.
struct Run {
  const CommandLine& line;
  const std::optional<Model>& model;  ///< of a profile
  const Environment& environment;
  const TickClock& clock;
  std::chrono::duration<double> session_took;
};

/// @throws AgreedError when results are wrong, or could not be measured or written.
void take_part(const Run& run, const MemberContext& context) {
  if (const auto* sweep = std::get_if<SweepOptions>(&run.line.task)) {
    if (context.output != nullptr) context.output->begin(run.environment, describe(*sweep, run.line.run));
    run_sweep(*sweep, run.line.run, context);
  } else {
    const auto& options = std::get<ProfileOptions>(run.line.task);
    const ProfileResult result = measure_profile(*run.model, options, run.line.run, context);
    if (context.output != nullptr) context.output->write(run.environment, result);
    std::uint64_t wrong = 0;
    for (const ProfileRow& row : result.rows) wrong += row.wrong.value_or(0);
    if (wrong > 0) throw AgreedError("{} elements were wrong", wrong);
  }
  const std::string why = context.output == nullptr ? "" : context.output->compare();
  const bool written = context.output == nullptr || context.output->end();
  if (context.team->from_first(why.empty() ? 1 : 0) == 0) throw AgreedError("{}", why);
  if (context.team->from_first(written ? 1 : 0) == 0) {
    throw AgreedError("{}", kNotWritten);
  }
}

/// `ranks` is null for threads.
std::unique_ptr<const PeerLibrary> make_peer(Peer peer, const MemberContext& context, const MpiTeam* ranks) {
  switch (peer) {
    case Peer::kNone: return nullptr;
    case Peer::kMpi: return make_mpi_peer(*ranks);
    case Peer::kNccl: return make_nccl_peer(*context.communicator, *context.team, context.device);
  }
  throw Internal("peer {} is none of the benchmark's", static_cast<int>(peer));
}

/// Lets the member take part, with the peer; member 0 prints what all agree to have gone wrong.
ExitStatus take_part_or_explain(const Run& run, MemberContext context, const MpiTeam* ranks) {
  try {
    const std::unique_ptr<const PeerLibrary> peer = make_peer(run.line.run.peer, context, ranks);
    context.peer = peer.get();
    take_part(run, context);
    return kSuccess;
  } catch (const AgreedError& error) {
    if (context.output != nullptr) {
      static_cast<void>(context.output->end());  // what was measured so far
      complain(error.what());
    }
    return kFailure;
  }
}

std::unique_ptr<Communicator> communicator_of_rank(const RunOptions& options, mpi::Session& session,
                                                   Device device) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.push_back(session.make_communicator({.reproducible = options.reproducible}));
  if (options.device == DeviceKind::kCuda)
    communicators = on_gpus(std::move(communicators), {device}, &session);
  return std::move(communicators.front());
}

ExitStatus run_ranks(const Run& run, mpi::Session& session, Device device, Output* output) {
  const auto on_this_node = [&](const WorkerInfo& worker) { return worker.node == session.self().node; };
  const std::span<const WorkerInfo> workers = session.workers();
  const MpiTeam team;
  const auto communicator = communicator_of_rank(run.line.run, session, device);
  return take_part_or_explain(
      run,
      {.communicator = communicator.get(),
       .team = &team,
       .device = device,
       .peer = nullptr,
       .members_on_node = static_cast<int>(std::count_if(workers.begin(), workers.end(), on_this_node)),
       .clock = &run.clock,
       .output = output},
      &team);
}

ExitStatus run_threads(const Run& run, int members, Output* output) {
  auto communicators = make_thread_communicators(members, {.reproducible = run.line.run.reproducible});
  std::vector<Device> devices(static_cast<std::size_t>(members));
  if (run.line.run.device == DeviceKind::kCuda) {
    devices = gpus_of_threads(members);
    communicators = on_gpus(std::move(communicators), devices, nullptr);
  }
  ExitStatus status = kSuccess;
  run_thread_team(members, [&](int member, const Team& team) {
    try {
      const auto index = static_cast<std::size_t>(member);
      const ExitStatus own = take_part_or_explain(run,
                                                  {.communicator = communicators[index].get(),
                                                   .team = &team,
                                                   .device = devices[index],
                                                   .peer = nullptr,
                                                   .members_on_node = members,
                                                   .clock = &run.clock,
                                                   .output = member == 0 ? output : nullptr},
                                                  nullptr);
      if (member == 0) status = own;
    } catch (const std::exception& error) {
      complain(error.what());
      std::_Exit(kFailure);  // the other members would wait for this one
    }
  });
  return status;
}

/// What there is to do, or the mistake that keeps this rank from doing it.
struct Plan {
  CommandLine line;
  std::optional<Model> model;
  std::optional<Output> output;
  std::string mistake;
};

/// Null for sweeps and profiles.
const CommandTask* command_of(const CommandLine& line) { return std::get_if<CommandTask>(&line.task); }

/// Of what has one. @throws UsageError when it cannot be read.
std::optional<Model> model_of(const CommandLine& line) {
  if (const auto* profile = std::get_if<ProfileOptions>(&line.task)) return read_model(profile->model);
  const CommandTask* task = command_of(line);
  if (task == nullptr) return std::nullopt;
  return std::visit(
      [](const auto& options) -> std::optional<Model> {
        if constexpr (requires { options.model; }) return read_model(options.model);
        return std::nullopt;
      },
      task->options);
}

Plan make_plan(const mpi::Session& session, const std::vector<std::string>& arguments) {
  Plan plan;
  try {
    plan.line = parse_command_line({arguments.begin() + 1, arguments.end()}, collectives());
    if (plan.line.run.threads && session.size() > 1) {
      throw UsageError(
          "--members threads: the members are threads of one process; start it without a launcher");
    }
    const CommandTask* task = command_of(plan.line);
    if (task != nullptr && task->command->ranks == CommandRanks::kOne && session.size() > 1) {
      throw UsageError(
          "{} measures one process; start it without a launcher, or with mpirun -n 1 --bind-to none",
          task->command->name);
    }
    if (plan.line.run.device == DeviceKind::kCuda)
      static_cast<void>(gpus_of_threads(plan.line.run.threads.value_or(1)));
    plan.model = model_of(plan.line);
    if (session.rank() == 0) {
      plan.output.emplace(plan.line.run);
      if (const auto* sweep = std::get_if<SweepOptions>(&plan.line.task)) {
        const std::size_t sizes = sweep->collective->moves_data() ? sizes_in(sweep->sizes).size() : 1;
        plan.output->require_enough_rounds(sizes, static_cast<std::size_t>(sweep->rounds));
      }
    }
  } catch (const UsageError& error) {
    plan.mistake = error.what();
  }
  return plan;
}

/// `output` is null but on rank 0.
ExitStatus run_command(const Run& run, const CommandTask& task, mpi::Session& session, Output* output) {
  const CommandContext context{session, run.clock, run.session_took, run.model ? &*run.model : nullptr};
  try {
    std::visit(
        [&](const auto& options) {
          const auto result = measure(options, context);
          if (output != nullptr) output->write(run.environment, result);
        },
        task.options);
    const std::string why = output == nullptr ? "" : output->compare();
    const bool written = output == nullptr || output->end();
    if (!why.empty()) complain(why);
    if (!written) complain(kNotWritten);
    if (why.empty() && written) return kSuccess;
  } catch (const AgreedError& error) {
    if (output != nullptr) complain(error.what());
  }
  return kFailure;
}

/// All ranks read the same command line, but only rank 0 prints and opens files: the ranks tell
/// each other what is wrong, so that all leave together.
ExitStatus run(mpi::Session& session, std::chrono::duration<double> session_took,
               const std::vector<std::string>& arguments) {
  Plan plan = make_plan(session, arguments);
  const bool prints = session.rank() == 0;
  for (const std::string& text : session.exchange(plan.mistake)) {
    if (text.empty()) continue;
    if (prints) complain(text);
    return kUsage;
  }
  Environment environment = capture_environment(session, mpi::library_version(), arguments);
  environment.threads = plan.line.run.threads;
  const TickClock clock;
  environment.clock = clock.description();
  Device device;
  if (plan.line.run.device == DeviceKind::kCuda) {
    device = gpu_of_rank(session);
    environment.gpu = describe_gpu(device);
    environment.clock = "events on each GPU's compute stream; of iterations, " + environment.clock;
  }
  const Run run{plan.line, plan.model, environment, clock, session_took};
  Output* output = plan.output ? &*plan.output : nullptr;
  if (const CommandTask* task = command_of(plan.line)) return run_command(run, *task, session, output);
  if (plan.line.run.threads) return run_threads(run, *plan.line.run.threads, output);
  return run_ranks(run, session, device, output);
}

/// Known before there is a session: whoever asks for the help need not have an MPI library that works.
std::optional<std::string> help_asked_for(const std::vector<std::string>& arguments) {
  try {
    const CommandLine line = parse_command_line(arguments, collectives());
    if (const auto* help = std::get_if<HelpText>(&line.task)) return help->text;
  } catch (const std::exception&) {
    // All ranks agree later on what is wrong.
  }
  return std::nullopt;
}

/// An error that has been printed.
struct Explained {};

/// An error that leaves through the session ends the job, so it is printed before. All members have the same
/// error when it ended a collective, and rank 0 prints it for them.
ExitStatus run_or_explain(mpi::Session& session, std::chrono::duration<double> session_took,
                          const std::vector<std::string>& arguments) {
  try {
    return run(session, session_took, arguments);
  } catch (const Error& error) {
    if (session.rank() == 0 || error.origin().call.empty()) complain(error.what());
    throw Explained();
  } catch (const std::exception& error) {
    complain(error.what());
    throw Explained();
  }
}

}  // namespace
}  // namespace cohort::bench

int main(int argc, char** argv) {
  using namespace cohort;
  if (const auto help = bench::help_asked_for({argv + 1, argv + argc})) {
    if (is_first_rank()) std::cout << *help;
    return bench::kSuccess;
  }
  try {
    (void)config();
  } catch (const InvalidArgument& error) {
    if (is_first_rank()) bench::complain(error.what());
    return bench::kUsage;
  }
  try {
    // Tasks of the coordinator's job are no MPI processes.
    if (bench::is_serving_task()) return bench::serve_as_task();
    const auto before = std::chrono::steady_clock::now();
    mpi::Session session(argc, argv);
    const auto took = std::chrono::steady_clock::now() - before;
    return bench::run_or_explain(session, took, {argv, argv + argc});
  } catch (const bench::Explained&) {
    return bench::kFailure;
  } catch (const Error& error) {
    bench::complain(error.what());
    return bench::kFailure;
  }
}
