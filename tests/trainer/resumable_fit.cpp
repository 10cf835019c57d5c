// Trains a line and goes on from its newest checkpoint, with the ranks of the job as workers:
//
//   resumable_fit FOLDER EVERY [DIES_AFTER]
//
// saves a checkpoint in FOLDER after every EVERY steps, appends `step: examples` of each rank to
// FOLDER.examples.RANK, and kills itself after so many steps of its own, or never.
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <cohort/input/distribute.h>
#include <cohort/mpi/session.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/trainer/trainer.h>

#include "linear_model.h"

namespace {

using namespace cohort;
using cohort::testing::LinearModel;
using Batch = LinearModel::Batch;

class Record : public Callback {
 public:
  Record(const std::string& path, int dies_after, const Tensor& seen)
      : file_(path, std::ios::app), left_(dies_after), seen_(seen) {}

  void on_train_batch_end(std::int64_t /*batch*/, const Logs& /*logs*/) override {
    fmt::print(file_, "{}: {}\n", training().step(), fmt::join(seen_.span<float>(), " "));
    file_.flush();
    if (--left_ == 0) ::raise(SIGKILL);
  }

 private:
  std::ofstream file_;
  int left_;
  const Tensor& seen_;
};

}  // namespace

int main(int argc, char** argv) {
  mpi::Session session(argc, argv);
  if (argc < 3) return 2;
  const std::string folder = argv[1];
  const MultiWorkerMirroredStrategy strategy(session);
  const auto scope = strategy.scope();
  const LinearModel model;
  const auto parameters = model.parameters();
  Adam optimizer({.learning_rate = 0.01});
  Tensor seen;
  Trainer<Batch> trainer(strategy,
                         {.train =
                              [&](const Batch& mine) {
                                seen = mine.first.clone();
                                const Tensor outputs = model.forward(mine);
                                optimizer.apply_gradients(model.gradients(mine, outputs, {}));
                                return model.loss(mine, outputs);
                              },
                          .parameters = {parameters.begin(), parameters.end()},
                          .optimizer = &optimizer},
                         {.distribute = {.auto_shard_policy = AutoShardPolicy::kData}});
  Record record(fmt::format("{}.examples.{}", folder, session.rank()), argc > 3 ? std::atoi(argv[3]) : 0,
                seen);
  const auto data =
      Dataset<Batch>::from_tensor_slices(cohort::testing::linear_examples(61)).shuffle({.seed = 7}).batch(4);
  const History history = trainer.fit(
      data, {.epochs = 4,
             .callbacks = {record},
             .checkpoint = {.folder = folder, .manager = {.save_every_steps = std::atoi(argv[2])}}});
  if (!session.is_chief()) return 0;
  fmt::print("{}", history.to_text());
  for (const Variable& parameter : parameters)
    for (const float value : parameter.read().span<float>()) fmt::print("{:a}\n", value);
  for (const Variable& slot : optimizer.slots(parameters[0]))
    for (const float value : slot.read().span<float>()) fmt::print("{:a}\n", value);
}
