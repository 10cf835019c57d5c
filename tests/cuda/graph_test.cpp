// Steps of one GPU, captured once and launched again and again.
#include <cohort/cuda/graph.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cuda_runtime_api.h>

#include <cohort/cuda/copy.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/tensor.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>

#include "calls_counted.h"
#include "cuda/capture.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

Device gpu() { return cuda::devices().back(); }

Tensor filled(double value) { return Tensor::full({1000}, DType::kFloat32, value, gpu()); }

std::vector<float> values(const Tensor& tensor) {
  const Tensor here = tensor.to(Device());
  const auto span = here.span<float>();
  return {span.begin(), span.end()};
}

/// Numbers without exact sums, other ones in each step.
Tensor batch(int step) {
  Tensor tensor = Tensor::uninitialized({1000}, DType::kFloat32);
  float value = 0.1F + 0.01F * static_cast<float>(step);
  for (float& element : tensor.span<float>()) {
    value = 3.7F * value * (1 - value);
    element = value - 0.5F;
  }
  return tensor;
}

/// What the steps of a training leave. `make_step(step)` says how each is to be made, once it has been run.
using MakeStep = std::function<std::function<void()>(const std::function<void()>& step)>;

std::vector<float> trained(const MakeStep& make_step) {
  const OneDeviceStrategy strategy(gpu());
  const auto scope = strategy.scope();
  const Variable weights({.initial_value = batch(100)});
  const Variable total({.initial_value = batch(101)});
  Momentum optimizer({.learning_rate = 0.1});
  const Tensor input = filled(0);
  const auto step = [&] {
    strategy.run([&](ReplicaContext& replica) {
      Tensor gradient = Tensor::full({1000}, DType::kFloat32, 0.25, replica.device());
      const Tensor copy = Tensor::uninitialized({1000}, DType::kFloat32, replica.device());
      copy.copy_from(input);
      total.assign_add(copy);
      gradient.copy_from(copy);
      optimizer.apply_gradients({{gradient, weights}});
    });
  };
  input.copy_from(batch(0));
  step();
  const std::function<void()> next = make_step(step);
  for (int i = 1; i < 6; ++i) {
    input.copy_from(batch(i));
    next();
  }
  std::vector<float> result = values(weights.components().front());
  for (const float value : values(total.components().front())) result.push_back(value);
  return result;
}

TEST(Graphs, LeaveTheBitsOfTheStepsThatTheyReplace) {
  const std::vector<float> wanted = trained([](const std::function<void()>& step) { return step; });
  const std::vector<float> replayed = trained([](const std::function<void()>& step) {
    const auto graph = std::make_shared<cuda::Graph>(cuda::capture(gpu(), step));
    return [graph] { graph->launch(); };
  });
  EXPECT_THAT(replayed, ElementsAreArray(wanted));
}

TEST(Graphs, RunNothingBeforeTheyAreLaunched) {
  const Tensor tensor = filled(1);
  cuda::Graph graph = cuda::capture(gpu(), [&] { tensor.fill(2); });
  EXPECT_EQ(graph.device(), gpu());
  EXPECT_THAT(values(tensor), Each(1));
  graph.launch();
  EXPECT_THAT(values(tensor), Each(2));
}

TEST(Graphs, KeepWhatTheStepMadeAndWhatItReleased) {
  Tensor made;
  std::optional<Tensor> released = batch(1).to(gpu());
  const Tensor input = filled(0);
  std::optional<cuda::Graph> graph = cuda::capture(gpu(), [&] {
    made = Tensor::uninitialized({1000}, DType::kFloat32, gpu());
    made.copy_from(*released);
    released.reset();
    input.copy_from(made);
  });
  for (int i = 0; i < 3; ++i) {
    const Tensor other = filled(7);  // takes what memory there is
    input.fill(0);
    made.fill(0);
    graph->launch();
    const Tensor wanted = batch(1);
    EXPECT_THAT(values(input), ElementsAreArray(wanted.span<float>()));
    EXPECT_THAT(values(made), ElementsAreArray(wanted.span<float>()));
  }
  graph.reset();
  EXPECT_EQ(values(made).front(), batch(1).span<float>().front());
}

TEST(Graphs, KeepWhatTheProgramDropsLater) {
  Tensor made;
  const Tensor output = filled(0);
  cuda::Graph graph = cuda::capture(gpu(), [&] {
    made = filled(3);
    output.copy_from(made);
  });
  made = Tensor();
  const Tensor other = filled(7);  // takes what memory there is
  graph.launch();
  EXPECT_THAT(values(output), Each(3));
  EXPECT_THAT(values(other), Each(7));
}

TEST(Graphs, MayGoWhileTheyRun) {
  const Tensor tensor = filled(1);
  {
    cuda::Graph graph = cuda::capture(gpu(), [&] {
      const Tensor passing = filled(5);
      tensor.copy_from(passing);
    });
    graph.launch();
  }
  EXPECT_THAT(values(tensor), Each(5));
}

TEST(Graphs, AskForNothingWhenTheyAreLaunched) {
  if (call_counter() == nullptr) GTEST_SKIP() << "only the stand-in counts";
  const Tensor tensor = filled(1);
  cuda::Graph graph = cuda::capture(gpu(), [&] { tensor.copy_from(filled(2)); });
  const auto count = [] {
    return calls_of(kDearCalls) + calls_of(kWaitingCalls) +
           calls_of({"cudaMallocAsync", "cudaFreeAsync", "cudaLaunchKernel"});
  };
  const std::uint64_t before = count();
  for (int i = 0; i < 10; ++i) graph.launch();
  EXPECT_EQ(count(), before);
}

TEST(Graphs, HoldOtherStreamsThatAreOrderedWithTheStep) {
  const cuda::Stream side(gpu());
  const Tensor source = filled(1);
  const Tensor target = filled(0);
  const Tensor sum = filled(0);
  cuda::Graph graph = cuda::capture(gpu(), [&] {
    source.fill(3);
    order(cuda::compute_stream(gpu()), side);
    copy_async(source, target, side);
    order(side, cuda::compute_stream(gpu()));
    source.fill(4);  // must not overtake the copy
    sum.copy_from(target);
  });
  for (int i = 0; i < 4; ++i) {
    target.fill(0);
    graph.launch();
    EXPECT_THAT(values(sum), Each(3)) << i;
    EXPECT_THAT(values(source), Each(4)) << i;
  }
}

/// The GPU goes on as if nothing had been tried.
void expect_free() {
  EXPECT_FALSE(cuda::is_captured(gpu()));
  EXPECT_THAT(values(filled(6)), Each(6));
}

TEST(Graphs, RefuseWhatTheyCannotHold) {
  const Tensor tensor = filled(1);
  const Tensor here = batch(0);
  cuda::Graph other = cuda::capture(gpu(), [&] { tensor.fill(2); });
  const cuda::Stream aside(gpu());
  const std::vector<std::pair<std::string, std::function<void()>>> cases{
      {"a copy between the host and the GPU", [&] { static_cast<void>(tensor.to(Device())); }},
      {"a copy between the host and the GPU", [&] { tensor.copy_from(here); }},
      {"a wait of the host for the GPU", [] { synchronize(gpu()); }},
      {"a wait of the host for the GPU", [&] { aside.synchronize(); }},
      {"the launch of a graph", [&] { other.launch(); }},
      {"is being captured on", [] { static_cast<void>(cuda::capture(gpu(), [] {})); }},
  };
  for (const auto& [text, misuse] : cases) {
    const std::string message = message_of(ErrorCode::kWrongContext, [&made = misuse] {
      static_cast<void>(cuda::capture(gpu(), [&] {
        const Tensor passing = filled(3);
        made();
      }));
    });
    EXPECT_THAT(message, HasSubstr(text));
    EXPECT_THAT(message, HasSubstr(to_string(gpu())));
    expect_free();
  }
}

TEST(Graphs, RefuseCopiesBetweenGpus) {
  if (cuda::devices().size() < 2) GTEST_SKIP() << "needs 2 GPUs";
  const Tensor there = filled(1).to(cuda::devices().front());
  const Tensor here = filled(2);
  EXPECT_THAT(message_of(ErrorCode::kWrongContext,
                         [&] { static_cast<void>(cuda::capture(gpu(), [&] { here.copy_from(there); })); }),
              HasSubstr("a copy between GPUs"));
  expect_free();
}

TEST(Graphs, RefuseUpdatesThatDependOnTheNumberOfTheStep) {
  const OneDeviceStrategy strategy(gpu());
  const auto scope = strategy.scope();
  const Variable weights({.initial_value = batch(0)});
  const Tensor gradient = filled(1);
  Adam optimizer;
  const auto step = [&] {
    strategy.run([&](ReplicaContext&) { optimizer.apply_gradients({{gradient, weights}}); });
  };
  step();
  EXPECT_THAT(message_of(ErrorCode::kWrongContext, [&] { static_cast<void>(cuda::capture(gpu(), step)); }),
              HasSubstr("an update by Adam"));
  expect_free();
}

TEST(Graphs, LetTheExceptionsOfTheStepPass) {
  const auto step = [] {
    const Tensor passing = filled(3);
    throw std::runtime_error("something else went wrong");
  };
  EXPECT_THROW(static_cast<void>(cuda::capture(gpu(), step)), std::runtime_error);
  expect_free();
}

TEST(Graphs, SayWhatCudaSaysOfStreamsThatWereNotJoined) {
  const cuda::Stream side(gpu());
  const Tensor source = filled(1);
  const Tensor target = filled(0);
  const std::string message = message_of(ErrorCode::kInternal, [&] {
    static_cast<void>(cuda::capture(gpu(), [&] {
      order(cuda::compute_stream(gpu()), side);
      copy_async(source, target, side);
    }));
  });
  EXPECT_THAT(message, HasSubstr("cudaErrorStreamCaptureUnjoined"));
  expect_free();
}

TEST(Graphs, SayWhatCudaSaysOfCallsThatEndTheCapture) {
  const cuda::Stream aside(gpu());
  const std::vector<std::pair<std::string, std::function<void()>>> cases{
      {"cudaErrorStreamCaptureUnsupported", [] { static_cast<void>(cuda::compute_stream(gpu()).idle()); }},
      {"cudaErrorCapturedEvent",
       [] {
         const cuda::Event event(gpu());
         event.record(cuda::compute_stream(gpu()));
         static_cast<void>(event.done());
       }},
      {"cudaErrorStreamCaptureIsolation",
       [&] {
         const cuda::Event event(gpu());
         event.record(aside);
         cuda::compute_stream(gpu()).wait(event);
       }},
      // The program takes no notice, so that it is the end of the capture that fails.
      {"cudaErrorStreamCaptureInvalidated",
       [] { static_cast<void>(cudaStreamQuery(cuda::compute_stream(gpu()).handle())); }},
  };
  for (const auto& [text, call] : cases) {
    const std::string message =
        message_of(ErrorCode::kInternal, [&made = call] { static_cast<void>(cuda::capture(gpu(), made)); });
    EXPECT_THAT(message, HasSubstr(text));
    static_cast<void>(cudaGetLastError());
    expect_free();
  }
}

}  // namespace
}  // namespace cohort::testing
