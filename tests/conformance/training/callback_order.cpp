// Recorded lines of the order in which hooks of callbacks are called.
#include "../scenarios/checkpoints.h"
#include "families.h"
#include "fitting.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kPredictions = "predictions are returned, not logged";

Json ordered_under(const std::string& name, const Strategy& strategy) {
  Json calls = Json::array();
  Recorder recorder(calls);
  Fitting fitting(strategy);
  Trainer<Examples>& trainer = fitting.trainer();
  if (name == "order_fit") trainer.fit(fitting.data(4), {.epochs = 2, .callbacks = {recorder}});
  if (name == "order_fit_val")
    trainer.fit(fitting.data(5),
                {.epochs = 2, .validation_data = fitting.data(2, 4), .callbacks = {recorder}});
  if (name == "order_predict") static_cast<void>(trainer.predict(fitting.data(4), {.callbacks = {recorder}}));
  if (name == "order_fit_steps")
    trainer.fit(fitting.data(2), {.epochs = 2, .steps_per_epoch = 2, .callbacks = {recorder}});
  if (name == "order_val_freq")
    trainer.fit(
        fitting.data(10),
        {.epochs = 3, .validation_data = fitting.data(10), .validation_freq = 2, .callbacks = {recorder}});
  if (name == "order_epochs0") trainer.fit(fitting.data(10), {.epochs = 0, .callbacks = {recorder}});
  return {{"calls", calls}};
}

Json ordered(const Record& record) {
  return ordered_under(case_of(record), strategy_named(strategy_of(record)));
}
Json ordered_by_one(const Record& record) { return ordered_under(case_of(record), get_strategy()); }

/// The line without what batches of predictions log.
Json without_outputs(const Record& record) {
  Json outcome = record.outcome;
  for (Json& call : outcome.at("calls"))
    if (call[0] == "on_predict_batch_end") call[2] = Json::array();
  return outcome;
}

Json ordered_both(const Record& /*record*/) {
  Json calls = Json::array();
  Recorder a(calls, "A");
  Recorder b(calls, "B");
  Fitting fitting(get_strategy());
  fitting.trainer().fit(fitting.data(10), {.callbacks = {a, b}});
  return calls;
}

}  // namespace

std::vector<Family> callback_order_families() {
  return {{{"w2/callback/*/order_two_callbacks"}, ordered_both},
          {{"w2/callback/*/order_*"},
           ordered,
           {{"*/order_predict", kPredictions, without_outputs},
            {"w2/callback/mirrored2/order_fit_val", kExamples, ordered_by_one}}}};
}

}  // namespace cohort::conformance
