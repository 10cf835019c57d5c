// Contrastive learning over ranks, with libtorch: every point has to find its partner among
// the partners of all points. So each replica needs the embeddings of all replicas, and the
// gradients of the loss flow back to them through the collectives.
//
// Trains on all ranks, then in one process, and compares the weights:
//
//     mpirun -n 4 contrastive
#include <cstdio>
#include <cstdlib>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <cohort/mpi/session.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/torch/collectives.h>

#include "../page.h"

namespace {

constexpr int kPoints = 50;
constexpr int kSteps = 100;
constexpr double kLearningRate = 0.05;

struct Pairs {
  torch::Tensor points;    ///< [kPoints, 6]
  torch::Tensor partners;  ///< the same points, with noise
};

Pairs make_pairs() {
  torch::manual_seed(7);
  const torch::Tensor points = torch::randn({kPoints, 6}, torch::kFloat64);
  return {points, points + 0.5 * torch::randn_like(points)};
}

/// The embeddings, centred over the points of all replicas.
torch::Tensor embedded(const torch::Tensor& points, const torch::Tensor& weights) {
  const torch::Tensor embedding = points.mm(weights);
  return embedding - cohort::libtorch::all_reduce(cohort::ReduceOp::kSum, embedding.sum(0)) / kPoints;
}

struct Trained {
  torch::Tensor weights;
  double loss = 0;  ///< over all points
};

/// Runs on each replica, with its share of the points.
Trained train(const Pairs& pairs, const cohort::ReplicaContext& replica) {
  const int first = kPoints * replica.replica_id_in_sync_group() / replica.num_replicas_in_sync();
  const int last = kPoints * (replica.replica_id_in_sync_group() + 1) / replica.num_replicas_in_sync();
  const torch::Tensor points = pairs.points.slice(0, first, last);
  const torch::Tensor partners = pairs.partners.slice(0, first, last);
  const torch::Tensor numbers = torch::arange(first, last, torch::kInt64);

  Trained trained{.weights = torch::linspace(-1, 1, 24, torch::kFloat64).reshape({6, 4}).requires_grad_()};
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor all_partners = cohort::libtorch::all_gather(embedded(partners, trained.weights), 0);
    const torch::Tensor similarity = embedded(points, trained.weights).mm(all_partners.t());
    const torch::Tensor loss =
        at::cross_entropy_loss(similarity, numbers, {}, at::Reduction::Sum) / static_cast<double>(kPoints);
    loss.backward();

    const torch::NoGradGuard no_gradients;
    trained.loss = replica.all_reduce(cohort::ReduceOp::kSum, loss.item<double>());
    trained.weights -=
        kLearningRate * cohort::libtorch::all_reduce(cohort::ReduceOp::kSum, trained.weights.grad());
    trained.weights.mutable_grad().reset();
  }
  return trained;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status =
          end_at_arguments(argc, argv, "contrastive: trains with collectives of libtorch's autograd"))
    return *status;
  cohort::mpi::Session session(argc, argv);
  at::set_num_threads(1);
  const Pairs pairs = make_pairs();
  const cohort::MultiWorkerMirroredStrategy strategy(session);
  const auto together = strategy.run([&](cohort::ReplicaContext& replica) { return train(pairs, replica); });
  const Trained alone = train(pairs, *cohort::get_replica_context());

  const auto difference = (together[0].weights - alone.weights).abs().max().item<double>();
  if (session.is_chief()) {
    std::printf("loss %.4f on %d replicas, %.4f on one; weights differ by %.0e at most\n", together[0].loss,
                strategy.num_replicas_in_sync(), alone.loss, difference);
  }
  return difference < 1e-9 ? EXIT_SUCCESS : EXIT_FAILURE;
}
