// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The order of work on each device: GPipe, 1F1B with its warm-up, or what the plan lists.

#include <array>
#include <limits>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan {

// Where memory asks for a lower warm-up, it need not be lower everywhere.

/// Gives each stage of a 1F1B training plan the largest warm-up up to 2 depth - 1 that its devices hold, and no stage
/// more than those that feed it (the 1F1B rule for equal microbatch sizes).
///
/// Plans of other kinds stay as they are. A stage that holds not even one microbatch gets 1.
/// Complexity  O(layers x devices per stage + stage edges).
/// Source      Asteroid, section 3.2 (2 depth - 1); lowering it stage by stage is ours.
void fit_warmup(plan& p, const planning_graph& model, const cluster& c, const any_memory_model& memory);

/// A warm-up list that says what its absence says, as far as there are microbatches, is left out. Source: own.
void drop_usual_warmup(plan& p, const planning_graph& model);

/// The 1F1B rule for one stage edge, exact: with these warm-ups the consumer never waits for a forward
/// that its producer only runs after a backward that waits for the consumer.
///
/// Source  semantics, section 5: for every i < M_s, min(M_s, K_s+i) B_s >= min(M_t, K_t + ceil((i+1) B_s/B_t) - 1) B_t.
[[nodiscard]] bool warmup_suffices(const stage_graph::node& s, long long k_s, const stage_graph::node& t, long long k_t);

/// How many microbatches of a 1F1B pipeline a stage takes in before its first backward.
enum class warmup_rule {
  hide_communication,  ///< 2 depth - 1: a transfer counts as a step (Asteroid, section 3.2)
  depth,               ///< the classic choice; less memory
  one,                 ///< least memory, the pipeline runs empty
  one_more,            ///< 2 depth + 1: one more than transfers hide behind
  everything           ///< all microbatches: most memory, GPipe's
};
/// Those that planners try, most memory first. The other two hold more and gain nothing (docs/reproduction/asteroid.md).
inline constexpr std::array warmup_rules{warmup_rule::hide_communication, warmup_rule::depth, warmup_rule::one};

/// K for a stage with `depth` stages on its longest way to a sink, itself included; microbatches_in_flight cuts it to how many
/// there are.
///
/// Source  Asteroid, section 5.4 (b): M, 2 (P - p) + 1, P - p and 2 (P - p) - 1 in this numbering of depths.
[[nodiscard]] constexpr int warmup_of(warmup_rule r, int depth) {
  switch (r) {
    case warmup_rule::hide_communication: return 2 * depth - 1;
    case warmup_rule::depth: return depth;
    case warmup_rule::one: return 1;
    case warmup_rule::one_more: return 2 * depth + 1;
    case warmup_rule::everything: break;
  }
  return std::numeric_limits<int>::max();
}

/// Microbatches of a plan whose activations a stage holds at once: one outside training, all under GPipe, and under 1F1B
/// its warm-up as far as there are microbatches.
[[nodiscard]] int microbatches_in_flight(const plan& p, int warmup);

/// Gives the stages of a 1F1B training plan their warm-up by a rule. Plans of other kinds have none, and the default
/// rule is what no list says.
void set_warmup(plan& p, const planning_graph& model, warmup_rule r);

/// Warm-up K per stage: what the plan says, else 2 depth - 1, raised from the sinks backwards to the
/// smallest that satisfies the 1F1B rule where microbatch sizes differ.
[[nodiscard]] std::vector<int> resolve_warmup(const plan& p, const stage_graph& g);

/// Forwards (and in training backwards) of one stage in its microbatch order, for a device with one stage.
///
void append_pipeline_order(std::vector<order_entry>& order, stage_id s, int microbatches, mode m, schedule_kind kind, int warmup);

/// The order of every device (one step of it in generation), by device id; empty for devices without a stage.
[[nodiscard]] std::vector<std::vector<order_entry>> device_orders(const plan& p, const stage_graph& g, std::size_t devices);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/orders.ipp>
#endif
