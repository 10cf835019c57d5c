// The snippets of docs/gpu.md, as in snippets.cpp.
#include <vector>

#include <cohort/cohort.h>
#include <cohort/cuda/graph.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace on_gpus {
using namespace cohort;

extern MultiWorkerMirroredStrategy& strategy;
extern Sgd& optimizer;
extern Variable& weights;
extern Tensor& gradient;
extern Tensor& input;
extern Device& gpu;
extern std::vector<Tensor>& batches;

void graph() {
#include "gpu.graph.inc"
}

}  // namespace on_gpus
