// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Order of work on each device: GPipe, 1F1B with its warm-up, or explicit orders.

#include <array>
#include <limits>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan {

/// Gives each stage of a 1F1B training plan the largest warm-up, up to 2 depth - 1, that its devices hold and that does not
/// exceed those of the stages that feed it (the 1F1B rule for equal microbatch sizes). Other plans stay as they are. A stage
/// that cannot hold even one microbatch gets 1.
///
/// Complexity  O(layers x devices per stage + stage edges).
/// Source      Asteroid, section 3.2 (2 depth - 1); lowering it stage by stage is ours.
void fit_warmup(plan& p, const planning_graph& model, const cluster& c, const any_memory_model& memory);

/// Drops a warm-up list that means the same as no list, up to the number of microbatches. Source: own.
void drop_usual_warmup(plan& p, const planning_graph& model);

/// Returns whether the warm-ups at a stage edge satisfy the 1F1B rule, which is exact: the consumer never waits for a forward
/// that its producer only runs after a backward that waits for the consumer.
///
/// Source  semantics, section 5: for every i < M_s, min(M_s, K_s+i) B_s >= min(M_t, K_t + ceil((i+1) B_s/B_t) - 1) B_t.
[[nodiscard]] bool warmup_suffices(const stage_graph::node& s, long long k_s, const stage_graph::node& t, long long k_t);

/// Rule for the warm-up of a 1F1B pipeline, the microbatches that a stage takes in before its first backward.
enum class warmup_rule {
  hide_communication,  ///< 2 depth - 1: a transfer counts as a step (Asteroid, section 3.2)
  depth,               ///< the depth: the classic choice; less memory
  one,                 ///< least memory; the pipeline runs empty
  one_more,            ///< 2 depth + 1: one more than needed to hide transfers
  everything           ///< all microbatches: most memory, as in GPipe
};
/// Rules that planners try, most memory first. The other two cost memory for nothing (docs/reproduction/asteroid.md).
inline constexpr std::array warmup_rules{warmup_rule::hide_communication, warmup_rule::depth, warmup_rule::one};

/// Returns the warm-up K for `depth` stages on the longest path to a sink, the stage included; K may exceed the microbatches.
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

/// Returns how many microbatches' activations a stage holds: 1 outside training, all under GPipe, else at most `warmup`.
[[nodiscard]] int microbatches_in_flight(const plan& p, int warmup);

/// Sets the warm-ups of a 1F1B training plan by a rule. Other plans have none, and the default rule is an empty list.
void set_warmup(plan& p, const planning_graph& model, warmup_rule r);

/// Returns the warm-up K of each stage: the plan's, or 2 depth - 1, raised from the sinks backwards to the least K that
/// satisfies the 1F1B rule if microbatch sizes differ.
[[nodiscard]] std::vector<int> resolve_warmup(const plan& p, const stage_graph& g);

/// Appends the forwards (in training also backwards) of one stage in its microbatch order, for a device with one stage.
void append_pipeline_order(std::vector<order_entry>& order, stage_id s, int microbatches, mode m, schedule_kind kind, int warmup);

/// Returns the order of every device (of one step in generation), by device id; empty for devices without a stage.
[[nodiscard]] std::vector<std::vector<order_entry>> device_orders(const plan& p, const stage_graph& g, std::size_t devices);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/orders.ipp>
#endif
