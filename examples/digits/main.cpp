// Trains a small network on handwritten digits, under the strategy named on the command line.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

#include <fmt/format.h>

#include <cohort/checkpoint/preemption_checkpoint_handler.h>
#include <cohort/cohort.h>
#include <cohort/mpi/session.h>

#include "digits_data.h"
#include "mlp.h"
#include "on_servers.h"
#include "options.h"
#include "report.h"
#include "roles.h"
#include "training.h"

namespace digits {
namespace {

using namespace cohort;

Strategy make_strategy(const Options& options, mpi::Session& session, const Roles& roles) {
  if (options.strategy == "multi_worker_mirrored") {
    std::vector<Device> devices = cpu_devices(options.devices);
    if (roles.resolver() != nullptr) return MultiWorkerMirroredStrategy(*roles.resolver(), {}, devices);
    return MultiWorkerMirroredStrategy(session, {}, devices);
  }
  if (session.size() > 1) {
    throw UsageError(
        fmt::format("--strategy {} runs in one process, but this job has {} workers; use --strategy "
                    "multi_worker_mirrored, or start one process",
                    options.strategy, session.size()));
  }
  if (options.strategy == "mirrored") return MirroredStrategy(cpu_devices(options.devices));
  if (options.strategy == "central_storage") return CentralStorageStrategy(cpu_devices(options.devices));
  if (options.strategy == "one_device") return OneDeviceStrategy();
  return get_strategy();
}

/// Takes the parameters from the replicas that train, after each epoch.
void evaluate(const Options& options, const Roles& roles) {
  const Digits digits = load_digits(options.data);
  const Mlp model(options.hidden, static_cast<std::uint64_t>(options.seed));
  for (int epoch = 0; epoch < options.epochs;) {
    epoch = roles.hand_over(model.parameters(), epoch);
    fmt::print("evaluator: epoch {}, test accuracy {:.4f}\n", epoch,
               test_accuracy(options, get_strategy(), model, digits));
  }
}

/// Tasks of parameter servers are no MPI processes. A wrong command line is refused by `run`.
std::optional<Options> options_on_servers(int argc, char** argv) {
  try {
    const auto options = parse_options(argc, argv);
    return options && is_on_servers(options->strategy) ? options : std::nullopt;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

int run(int argc, char** argv) {
  if (const auto options = options_on_servers(argc, argv)) return run_on_servers(*options);
  mpi::Session session(argc, argv);
  try {
    const auto options = parse_options(argc, argv);
    if (!options) {
      if (session.is_chief()) fmt::print("{}", help_text());
      return EXIT_SUCCESS;
    }
    const Roles roles(session, options->roles);
    if (roles.evaluates()) {
      evaluate(*options, roles);
      return EXIT_SUCCESS;
    }
    const Strategy strategy = make_strategy(*options, session, roles);
    std::optional<ResultsFile> file;
    if (roles.is_chief() && !options->json.empty()) file.emplace(options->json);
    const Results results = train(
        *options, strategy,
        {
            .reports = roles.is_chief(),
            .after_epoch = [&](const Mlp& model, int epoch) { roles.hand_over(model.parameters(), epoch); },
        });
    if (roles.is_chief()) {
      print(results);
      if (file) file->write(results);
    }
    return EXIT_SUCCESS;
  } catch (const UsageError& error) {
    // Every worker got the same command line, so all of them leave here, in good order.
    if (session.is_chief()) fmt::print(stderr, "digits: {}\n", error.what());
    return 2;
  } catch (const Preempted& preempted) {
    if (session.is_chief()) fmt::print("digits: {}\n", preempted.what());
    return preempted.exit_code();
  }
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  try {
    return digits::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "digits: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
