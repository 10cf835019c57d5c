// What a call on a GPU costs there and on the host, with one member: gpu_calls [--sizes MIN:MAX]. An
// all-reduce of one member is a copy, so a copy by CUDA is the least that it can take; what NCCL's own call
// takes more is NCCL's, the rest Cohort's. A captured step of such calls is launched once for all of them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <cohort/collective/thread_communicator.h>
#include <cohort/cuda/copy.h>
#include <cohort/cuda/graph.h>
#include <cohort/device/device.h>
#include <cohort/device/tensor.h>
#include <cohort/nccl/communicator.h>
#include <cohort/nccl/library.h>

#include "errors.h"
#include "gpu/gpu_side.h"
#include "option_values.h"
#include "peer.h"
#include "team.h"
#include "timing.h"

namespace cohort::bench {
namespace {

constexpr int kCallsInARow = 20;
constexpr int kTurns = 7;  // of which the median counts

struct Cost {
  double on_gpu_us;
  double on_host_us;
};

/// Per call, where `row` makes kCallsInARow of them.
Cost cost_of(Device gpu, const std::function<void()>& row) {
  const cuda::Stream& stream = cuda::compute_stream(gpu);
  const cuda::Event start(gpu, cuda::Event::Purpose::kTiming);
  const cuda::Event end(gpu, cuda::Event::Purpose::kTiming);
  std::vector<double> on_gpu;
  std::vector<double> on_host;
  for (int i = 0; i <= kTurns; ++i) {
    stream.synchronize();
    start.record(stream);
    const auto before = std::chrono::steady_clock::now();
    row();
    const std::chrono::duration<double, std::micro> host = std::chrono::steady_clock::now() - before;
    end.record(stream);
    end.synchronize();
    if (i == 0) continue;  // sets up what later ones use
    on_gpu.push_back(end.microseconds_since(start) / kCallsInARow);
    on_host.push_back(host.count() / kCallsInARow);
  }
  return {median(on_gpu), median(on_host)};
}

std::function<void()> in_a_row(const std::function<void()>& call) {
  return [call] {
    for (int i = 0; i < kCallsInARow; ++i) call();
  };
}

void measure_size(std::size_t bytes, Communicator& communicator, const PeerLibrary& nccl) {
  const Device gpu = communicator.device();
  const auto elements = static_cast<std::int64_t>(std::max<std::size_t>(bytes / sizeof(float), 1));
  const Tensor input = Tensor::full({elements}, DType::kFloat32, 1.0, gpu);
  const Tensor output = Tensor::zeros({elements}, DType::kFloat32, gpu);
  const auto all_reduce = [&] { communicator.all_reduce(input, output, ReduceOp::kSum); };
  const PeerCall peer{.collective = &kAllReduce,
                      .role = {.member = 0, .members = 1, .elements = static_cast<std::size_t>(elements)},
                      .input = input.data(),
                      .output = output.data()};
  const cuda::Stream& stream = cuda::compute_stream(gpu);

  const Cost copy = cost_of(gpu, in_a_row([&] { cuda::copy_async(input, output, stream); }));
  const Cost raw = cost_of(gpu, in_a_row(nccl.prepare(peer)));
  const Cost own = cost_of(gpu, in_a_row(all_reduce));
  cuda::Graph graph = cuda::capture(gpu, in_a_row(all_reduce));
  const Cost captured = cost_of(gpu, [&] { graph.launch(); });

  const auto cell = [](const Cost& cost) { std::printf("  %9.2f %9.2f", cost.on_gpu_us, cost.on_host_us); };
  std::printf("%10zu", static_cast<std::size_t>(elements) * sizeof(float));
  for (const Cost& cost : {copy, raw, own, captured}) cell(cost);
  std::printf("\n");
  std::fflush(stdout);
}

void print_header(Device gpu) {
  std::printf("# %s, NCCL %s; us per call of %d in a row, on the GPU and on the host\n",
              describe_gpu(gpu).c_str(), nccl::library().version.c_str(), kCallsInARow);
  std::printf("%10s  %19s  %19s  %19s  %19s\n", "bytes", "copy", "ncclAllReduce", "cohort",
              "cohort, captured");
}

/// The exit status.
int measure_sizes(const SizeRange& sizes, const Team& team) {
  try {
    const Device gpu(DeviceKind::kCuda, 0);
    require_exists(gpu);
    const auto communicators = nccl::make_communicators(make_thread_communicators(1), std::span(&gpu, 1));
    const auto nccl = make_nccl_peer(*communicators.front(), team, gpu);
    print_header(gpu);
    for (const std::size_t bytes : sizes_in(sizes)) measure_size(bytes, *communicators.front(), *nccl);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_calls: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace cohort::bench

int main(int argc, char** argv) {
  using namespace cohort::bench;
  SizeRange sizes = {.first = 8, .last = std::size_t{256} << 20};
  try {
    if (argc == 3 && std::string_view(argv[1]) == "--sizes")
      sizes = parse_size_range(argv[2]);
    else if (argc != 1)
      throw UsageError("gpu_calls [--sizes MIN:MAX]");
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  int status = 0;
  run_thread_team(1, [&](int, const Team& team) { status = measure_sizes(sizes, team); });
  return status;
}
