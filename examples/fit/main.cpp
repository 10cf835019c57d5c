// Softmax regression of handwritten digits, fitted by a Trainer on all ranks: the model says what one replica
// computes, the Trainer does the rest.
#include <cstdio>
#include <filesystem>

#include <cohort/cohort.h>
#include <cohort/eigen/map.h>
#include <cohort/mpi/session.h>

#include "../digits/digits_data.h"
#include "../page.h"

namespace {

using namespace cohort;
using Matrix = eigen::RowMajorMatrix<float>;

class SoftmaxRegression {
 public:
  using Batch = digits::Batch;

  [[nodiscard]] std::array<Variable, 2> parameters() const { return {weights_, bias_}; }
  [[nodiscard]] Tensor forward(const Batch& batch) const {
    const Tensor w = weights_.read();
    const Tensor b = bias_.read();
    return eigen::as_tensor(Matrix((matrix(batch.images) * matrix(w)).rowwise() + matrix(b).row(0)));
  }
  [[nodiscard]] Tensor loss(const Batch& batch, const Tensor& logits) const {
    return loss_(batch.labels, logits);
  }
  [[nodiscard]] std::vector<GradientAndVariable> gradients(const Batch& batch, const Tensor& logits) const {
    const Tensor slope = loss_.gradients(batch.labels, logits);
    return {{eigen::as_tensor(Matrix(matrix(batch.images).transpose() * matrix(slope))), weights_},
            {eigen::as_tensor(Matrix(matrix(slope).colwise().sum())), bias_}};
  }

 private:
  static eigen::MatrixMap<const float> matrix(const Tensor& tensor) {
    return eigen::as_matrix<const float>(tensor);
  }

  Variable weights_{{.shape = {digits::kPixels, digits::kClasses}, .name = "weights"}};
  Variable bias_{{.shape = {1, digits::kClasses}, .name = "bias"}};
  Loss loss_ = losses::sparse_categorical_crossentropy({.from_logits = true});
};

}  // namespace

int main(int argc, char** argv) {
  mpi::Session session(argc, argv);
  if (const auto status = end_at_arguments(argc, argv, "fit: softmax regression of digits, by a Trainer"))
    return *status;
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "data" / "digits.csv";
  const digits::Digits data = digits::load_digits(path.string());
  const auto train = Dataset<digits::Batch>::from_tensor_slices(data.train).shuffle({.seed = 1}).batch(64);
  const auto test = Dataset<digits::Batch>::from_tensor_slices(data.test).batch(64);

  const MultiWorkerMirroredStrategy strategy(session);
  const auto scope = strategy.scope();
  SoftmaxRegression model;
  Adam optimizer({.learning_rate = 0.01});
  Trainer trainer(strategy, model, optimizer,
                  {.metrics = {metrics::sparse_categorical_accuracy("accuracy")},
                   .distribute = {.auto_shard_policy = AutoShardPolicy::kData}});
  Progress progress;
  EarlyStopping early({.monitor = "val_loss", .patience = 2, .restore_best_weights = true});
  trainer.fit(train, {.epochs = 50, .validation_data = test, .callbacks = {progress, early}});
  const Logs score = trainer.evaluate(test);
  if (session.is_chief())
    std::printf("best epoch %d, test accuracy %.3f\n", early.best_epoch() + 1, score.at("accuracy"));
}
