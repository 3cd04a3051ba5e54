// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's model partitioner (phase 1): coarsens, decomposes into serial chains, searches both substates, ranks by simulation.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/partition/device_orders.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/search/mend_limits.hpp>

namespace hetplan::recipes {

/// A smaller problem for planners that would take long: its layers are the light_blocks of the model, on the same cluster. A block takes as
/// long and holds as much as its layers together, by the problem's own models. Layers that share tensors are separate blocks, unless they
/// are many; such a tensor then counts in each block.
///
/// Complexity  O((V + E) log E); a query about a block is one query per layer of it.
/// Source      ours.
class few_blocks {
 public:
  /// @param whole  must outlive this object.
  /// @param most   number of blocks, plus two for each layer that shares a tensor.
  few_blocks(const planning_problem& whole, std::size_t most);
  few_blocks(const few_blocks&) = delete;  // the problem refers to the model
  few_blocks& operator=(const few_blocks&) = delete;

  [[nodiscard]] planning_problem& problem() { return problem_; }
  /// Returns a plan of the blocks as a plan of the whole model, without prediction.
  [[nodiscard]] plan expand(plan of_blocks) const;

 private:
  std::shared_ptr<const coarsen::blocks> blocks_;
  planning_graph model_;
  planning_problem problem_;
};

}  // namespace hetplan::recipes

namespace hetplan::partition {

/// One of several searches over the same tables, by microbatch size, device order and warm-up rule.
struct search_variant {
  plan blank;  ///< microbatch size and count, schedule
  std::shared_ptr<const device_space> space;
  warmup_rule warmup = warmup_rule::hide_communication;
};

/// Consumer of search results, called in order from the thread that started the searches.
struct search_taker {
  /// Returns the extension limit of the next search; nothing if neither it nor the later ones are wanted.
  std::function<std::optional<long long>()> allowance;
  std::function<control(const search_result&)> take;
};

/// Runs the variants on threads and hands their results to the taker in order, each equal to that of sequential searches. A search that
/// started with a larger limit than its allowance, and reached the latter, is repeated with the allowance.
///
/// @param options  common to all searches, except for warm-up (from the variant) and most_extensions (from the taker).
/// @param threads  0: as many as the hardware runs concurrently.
/// @return         stop if the taker stopped.
/// Complexity      the sum of the searches' divided by the threads; at most one repetition for each search that reached its limit.
/// Throws          as two_substate_dp.
/// Determinism     yes, for any number of threads.
/// Source          our own; Dora, section 4.1, searches one order with one warm-up rule.
control search_side_by_side(const search_tables& tables, const std::vector<search_variant>& variants, const any_objective& objective,
                            const top_k& policy, const search_options& options, int threads, const search_taker& taker);

}  // namespace hetplan::partition

namespace hetplan::recipes {

/// Returns joined_chains, serial_chains (Dora's two substates: pieces of one chain, runs of whole chains) and light_row.
[[nodiscard]] std::vector<decompose::any_decomposition> usual_rows();

struct partitioner_options {
  /// Sequences to cut, in turn. All but the first are searched only for the microbatch sizes of the best plans so far. Duplicates count
  /// once. Empty: usual_rows(), with polish_boundaries::of_layers, as their blocks only shorten the search.
  std::vector<decompose::any_decomposition> rows = {};
  std::optional<any_step_law> law = {};  ///< step law whose latency is minimised; none: the mode's dominant-step law
  partition::any_device_ordering orders = partition::affordable_orders{};
  int k = 20;  ///< partial plans per cell, and plans per search to simulate
  int max_stages = 16;
  int threads = 1;             ///< concurrent searches of a sequence; 0: as many as the hardware runs; results do not depend on it
  polish_options polish = {};  ///< for the best plans found
  /// Known plans of the problem's job, with their predictions. They compete, and the best are polished. A plan that the search finds, too,
  /// counts as found.
  std::vector<plan> known = {};
};

/// Searches the K best plans under the dominant-step estimate, which ignores contention, for every microbatch size, device order and
/// warm-up rule; ranks them all by simulation, which includes contention; and polishes the best ones under it. If the objective is not
/// monotone in (response, energy), the search minimises latency, and the objective ranks the plans found.
///
/// @return     none_found: the binding limit of the nearest plan, with device and excess. stopped: the problem's budget was spent.
/// Complexity  number of sizes times that of partition::two_substate_dp, and K simulations each.
/// Source      Dora, section 4.1, Algorithm 1. Deviations: see two_substate_dp; blocks merge by parameters and FLOP; lower warm-ups compete
///             instead of coming last, and are lowered only as far as memory requires; beside Dora's two substates a sequence whose stages
///             may cross chains, without which plans are up to 3.4 x worse (docs/reproduction/dora.md), and a finer one in the model's
///             numbering; polishing.
[[nodiscard]] plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                           const partitioner_options& options, const candidate_observer& observer = {});
[[nodiscard]] plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                           const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/dora_partitioner.ipp>
#endif
