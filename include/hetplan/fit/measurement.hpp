// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Measured speeds of devices, and what the judge predicts for them.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::fit {

/// What a row measured. Each has one prediction, see predict().
enum class measured {
  prefill_tokens_per_s,  ///< tokens of all prompts by the time to the first token
  decode_tokens_per_s,   ///< tokens that all sequences make by the time of the steps that make them
  layer_seconds,         ///< one call of the model's layers, without the overhead of a task
  images_per_s           ///< samples of one inference by its time
};
inline constexpr std::array<std::pair<std::string_view, measured>, 4> measured_names{
    {{"prefill_tokens_per_s", measured::prefill_tokens_per_s},
     {"decode_tokens_per_s", measured::decode_tokens_per_s},
     {"layer_seconds", measured::layer_seconds},
     {"images_per_s", measured::images_per_s}}};
[[nodiscard]] constexpr std::string_view to_string(measured q) { return measured_names[static_cast<std::size_t>(q)].first; }

/// Phase of layer_seconds; `backward` is input and weights together.
enum class timed_phase { forward, backward_input, backward_weight, backward };
inline constexpr std::array<std::pair<std::string_view, timed_phase>, 4> timed_phases{{{"forward", timed_phase::forward},
                                                                                       {"backward_input", timed_phase::backward_input},
                                                                                       {"backward_weight", timed_phase::backward_weight},
                                                                                       {"backward", timed_phase::backward}}};

/// One measured number. With several devices they are a pipeline in the order given, each with a run of layers; see plan_of().
struct measurement {
  std::vector<device_id> devices = {};
  std::shared_ptr<const planning_graph> model = {};
  measured what = measured::decode_tokens_per_s;
  int batch = 1;                    ///< sequences, or samples
  int prompt = 0;                   ///< new tokens of each sequence; decode: cached before, like those of `context`
  std::optional<int> context = {};  ///< cached tokens; layer_seconds without it runs samples and reads no cache
  int tokens = 1;                   ///< decode: tokens that the value is a mean of
  timed_phase phase = timed_phase::forward;
  int prompt_chunk = 0;               ///< as in workload
  int chunks_in_flight = 0;           ///< as in workload
  double value = 1;                   ///< > 0
  double weight = 1;                  ///< >= 0
  std::string where = "measurement";  ///< begins messages, such as "rows.csv: line 3"
};

/// Throws invalid_input that begins with measurement::where: no device or an unknown one, a device twice, no model, layer_seconds of
/// several devices, a number out of its range.
void check_measurement(const measurement& m, const cluster& c);

/// Returns the plan that a measurement ran.
///
/// One device runs all layers. Of several each has a run of the layers in the graph's order that reads as many weight bytes in a step as
/// accords to its memory, cut where one tensor crosses (if there are enough such places), as llama.cpp splits a model by default. All
/// sequences are one group. Source  own; llama.cpp's split mode "layer".
[[nodiscard]] plan plan_of(const measurement& m, const cluster& c);

/// Returns what the judge predicts for a measurement, in its unit.
///
/// prefill_tokens_per_s: batch prompt / ttft of generation of one token. decode_tokens_per_s: batch tokens / latency of steps behind
/// context + prompt cached tokens. images_per_s: batch / latency of an inference. layer_seconds: the stage's seconds (stage_costs), in
/// generation behind `context` cached tokens if that is given, else those of samples in training (backward) or inference.
///
/// Throws  invalid_input that begins with measurement::where, for what the judge refuses.
[[nodiscard]] double predict(const measurement& m, const cluster& c, const any_cost_model& cost = profiled_or_roofline{});
/// The same with the measurement's plan, for those who ask often.
[[nodiscard]] double predict(const measurement& m, const plan& p, const cluster& c, const any_cost_model& cost = profiled_or_roofline{});

/// Returns a model's layers whose names begin with one of the prefixes, and the edges between them. Their amounts stay those of the model.
/// Throws  invalid_input (a prefix that no layer's name has).
[[nodiscard]] planning_graph layers_named(const planning_graph& model, const std::vector<std::string>& prefixes);

}  // namespace hetplan::fit

#ifndef HETPLAN_SEPARATE
#include <hetplan/fit/measurement.ipp>
#endif
