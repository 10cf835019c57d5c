// The snippets of README.md and docs/ that are no whole programs, each with what its page takes as given.
// They are compiled and never linked, so what is given is declared and no more. extract.sh takes them out of
// the pages; an error names the page and its line.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/cohort.h>
#include <cohort/collective/algorithm.h>
#include <cohort/cuda/graph.h>
#include <cohort/mpi/session.h>
#include <cohort/resolvers/role_cluster_resolver.h>
#include <cohort/resolvers/task_cluster_resolver.h>
#include <cohort/resolvers/tf_config_cluster_resolver.h>
#include <cohort/rpc/client.h>
#include <cohort/rpc/server.h>

// What a reader is shown need not be used.
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-result"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wreturn-type"  // a main function has no need of one

using namespace cohort;

namespace given {

extern int argc;
extern char** argv;
extern mpi::Session& session;
extern MultiWorkerMirroredStrategy& strategy;
extern Sgd& optimizer;
extern Communicator& communicator;

}  // namespace given
using namespace given;

namespace trained {

using Batch = std::pair<Tensor, Tensor>;
class SoftmaxRegression {
 public:
  using Batch = trained::Batch;
  std::array<Variable, 2> parameters() const;
  Tensor forward(const Batch& batch) const;
  Tensor loss(const Batch& batch, const Tensor& logits) const;
  std::vector<GradientAndVariable> gradients(const Batch& batch, const Tensor& logits,
                                             const std::optional<Tensor>& weights) const;
};
extern Dataset<Batch>& train;
extern Dataset<Batch>& test;
extern Trainer<Batch>& trainer;
extern Variable& kernel;
extern Tensor& loss;

void readme() {
#include "README.fit.inc"
}
void fit() {
#include "training.fit.inc"
}
void logs() {
#include "training.logs.inc"
}
void summary(std::int64_t step) {
#include "training.summary.inc"
}
void updates() {
#include "training.optimizer.inc"
}
void caught() {
#include "errors.caught.inc"
}
void guide_fit(SoftmaxRegression& model) {
#include "train.fit.inc"
}

}  // namespace trained

namespace saved {

extern Checkpoint& checkpoint;
extern CheckpointManager& manager;
extern Variable& kernel;
extern DatasetPosition& position;
extern double best;
extern double accuracy;
extern std::uint64_t epochs;
extern std::int64_t steps;
extern Dataset<Tensor>& dataset;
extern std::vector<Variable>& variables;
void train(const Tensor& batch);
void train_step();

void loop() {
#include "checkpoints.loop.inc"
}
void async(std::int64_t step) {
#include "checkpoints.async.inc"
}
void kept(std::int64_t step) {
#include "checkpoints.kept.inc"
}
#define main preemption
#include "checkpoints.preemption.inc"
#undef main
void memory(std::int64_t step) {
#include "checkpoints.memory.inc"
}
void weights() {
#include "checkpoints.weights.inc"
}

}  // namespace saved

namespace moved {

extern Tensor& weights;
extern std::unique_ptr<Communicator>& world;
extern int columns;

void deadlines() {
#include "collectives.deadlines.inc"
}
void groups() {
#include "collectives.groups.inc"
}

class Own : public Algorithm {
  std::size_t bytes;
  int next, previous;
#include "collectives.algorithm.inc"
};

}  // namespace moved

namespace batched {

extern Tensor& images;
extern Tensor& labels;
extern DatasetPosition& position;

#include "input.digits.first.inc"
void train(const Batch& batch);
void digits() {
#include "input.digits.rest.inc"
}

void positions(const Dataset<Batch>& digits) {
#include "input.positions.inc"
}
void distributed(const Dataset<Batch>& digits, void (*step)(const Batch&)) {
#include "input.distributed.inc"
}

#include "input.files.first.inc"
void files() {
#include "input.files.rest.inc"
}

}  // namespace batched

namespace started {

void roles() {
#include "launch.roles.inc"
}
void tasks() {
#include "launch.tasks.inc"
}

}  // namespace started

namespace served {

using Batch = std::pair<Tensor, Tensor>;
struct Step {
  float loss;
  std::vector<GradientAndVariable> gradients;
};
struct Model {
  Model();
  explicit Model(const std::vector<Variable>& parameters);
  std::vector<Variable> parameters() const;
  std::vector<GradientAndVariable> gradients(const Batch& batch) const;
  Step step(const Batch& batch) const;
};
struct WorkerBatches {
  Batch next();
};
WorkerBatches make_batches(const InputContext& worker, std::int64_t batch);
extern Dataset<Batch>& batches;
extern Tensor& ids;
extern Tensor& gradient;
extern Tensor& tensor;
extern TaskClusterResolver& cluster;
Tensor scaled(const Tensor& tensor, double factor);
void use(const Tensor& one, const Tensor& other);

int loop() {
#include "parameter-servers.loop.inc"
  return 0;
}

#include "parameter-servers.coordinator.first.inc"
int coordinator(const ParameterServerStrategy& strategy) {
#include "parameter-servers.coordinator.rest.inc"
  return 0;
}

void shards() {
#include "parameter-servers.shards.inc"
}
int methods() {
#include "parameter-servers.methods.inc"
  return 0;
}

}  // namespace served

namespace watched {

struct Tracer {
  template <class Time>
  void open(std::uint64_t handle, std::string_view call, Time time);
  template <class Time>
  void close(std::uint64_t handle, Time time);
};
extern Tracer& tracer;

void hooks() {
#include "what-went-wrong.hooks.inc"
}

}  // namespace watched

namespace on_gpus {

extern Variable& weights;
extern Tensor& gradient;
extern Tensor& input;
extern Device& gpu;
extern std::vector<Tensor>& batches;

void graph() {
#include "gpu.graph.inc"
}

}  // namespace on_gpus

namespace guide {

using Batch = std::pair<Tensor, Tensor>;
extern served::Model& model;
extern Dataset<Batch>& batches;
using served::Step;

void start() {
#include "start.program.inc"
}
void concepts() {
#include "concepts.step.inc"
}

struct Flat {
  float area;
  float rent;
};
COHORT_FIELDS(Flat, area, rent)
void data() {
#include "train.data.inc"
}

#include "extend.callback.inc"

}  // namespace guide
