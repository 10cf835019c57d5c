// The snippets of docs/libtorch.md, as in snippets.cpp.
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <cohort/cohort.h>
#include <cohort/mpi/session.h>
#include <cohort/torch/distributed_model.h>
#include <cohort/torch/model.h>

namespace with_torch {
using namespace cohort;

extern mpi::Session& session;
extern torch::nn::Sequential& net;

void loop(torch::optim::SGD& optimizer, std::vector<std::pair<at::Tensor, at::Tensor>>& batches_of_this_rank,
          at::Tensor (*loss_of)(const at::Tensor&, const at::Tensor&)) {
#include "libtorch.loop.inc"
}

void fit(MultiWorkerMirroredStrategy& strategy, const Dataset<std::pair<Tensor, Tensor>>& images) {
#include "libtorch.fit.inc"
}

}  // namespace with_torch
