// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's model partitioner (phase 1): coarsen, decompose into serial chains, search both substates, let the simulator choose.

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

// A problem whose model has few layers: blocks of those of another one.

/// What a planner of every layer is asked where that would take long: light_blocks of the model as layers, on the same cluster. A block
/// takes as long and holds as much as its layers together, by the problem's own models. Layers that share tensors are blocks of their own,
/// unless they are many: then such a tensor counts in each block.
///
/// Complexity  O((V + E) log E); a question about a block is one about each of its layers.
/// Source      ours.
class few_blocks {
 public:
  /// @param whole  must outlive this.
  /// @param most   blocks, and two more for each layer that shares a tensor.
  few_blocks(const planning_problem& whole, std::size_t most);
  few_blocks(const few_blocks&) = delete;  // the problem refers to the model
  few_blocks& operator=(const few_blocks&) = delete;

  [[nodiscard]] planning_problem& problem() { return problem_; }
  /// A plan of it as one of the whole model, without prediction.
  [[nodiscard]] plan expand(plan of_blocks) const;

 private:
  std::shared_ptr<const coarsen::blocks> blocks_;
  planning_graph model_;
  planning_problem problem_;
};

}  // namespace hetplan::recipes

namespace hetplan::partition {

// Several searches over one sequence on threads: other microbatch sizes, device orders and warm-up rules.

/// One of several searches that share their tables.
struct search_variant {
  plan blank;  ///< microbatch size and count, schedule
  std::shared_ptr<const device_space> space;
  warmup_rule warmup = warmup_rule::hide_communication;
};

/// Who takes the answers of searches, one after the other, from the thread that asked for them.
struct search_taker {
  /// Extensions that the search whose turn comes may weigh; none: it is not wanted any more, nor are those behind it.
  std::function<std::optional<long long>()> allowance;
  std::function<control(const search_result&)> take;
};

/// Runs the variants on threads and hands their answers over in order, each what it is when the searches run one by one: a search
/// that began with more than it may weigh when its turn comes, and needed it, runs again with what it may.
///
/// @param options  of every search; warm-up and most_extensions are the variant's and the taker's.
/// @param threads  0: as many as the machine runs at once.
/// @return         stop if the taker said so.
/// Complexity      the sum of the searches', divided by the threads; one of them at most runs twice for each that ran into its limit.
/// Throws          as two_substate_dp.
/// Determinism     yes, whatever the threads.
/// Source          our own; Dora, section 4.1, searches one order with one warm-up rule.
control search_side_by_side(const search_tables& tables, const std::vector<search_variant>& variants, const any_objective& objective,
                            const top_k& policy, const search_options& options, int threads, const search_taker& taker);

}  // namespace hetplan::partition

namespace hetplan::recipes {

/// joined_chains, then serial_chains (Dora's two substates: pieces of one chain, runs of whole chains), then light_row.
[[nodiscard]] std::vector<decompose::any_decomposition> usual_rows();

struct partitioner_options {
  /// What is cut, one after the other: behind the first only for microbatch sizes that some of the best plans so far have. Equal
  /// ones count once. None: usual_rows(), whose blocks only shorten the search, so polishing may cut them
  /// (polish_boundaries::of_layers).
  std::vector<decompose::any_decomposition> rows = {};
  std::optional<any_step_law> law = {};  ///< whose latency is minimised; none: the dominant step's
  partition::any_device_ordering orders = partition::affordable_orders{};
  int k = 20;  ///< partial plans per cell, and plans per search that the simulator judges
  int max_stages = 16;
  int threads = 1;  ///< for the searches of a row, side by side; 0: as many as the machine runs at once; no answer depends on them
  polish_options polish = {};  ///< of the best plans found
  /// Plans of the problem's job that are known already, each with what is predicted of it: they compete, and the best are polished.
  /// One that the search finds, too, counts as found.
  std::vector<plan> known = {};
};

/// For every microbatch size, device order and warm-up rule: the K best plans under the dominant-step estimate, which
/// relaxes contention; the simulator, which knows it, ranks them all; the best ones are polished under it.
///
/// An objective that is not monotone in (response, energy) cannot steer the search: then latency does, and the
/// objective ranks what is found.
///
/// @return     none found: the limit that binds in the plan that comes nearest, on which device, by how much. Stopped: the budget
///             of the problem was spent.
/// Complexity  B sizes times that of partition::two_substate_dp, and K simulations each.
/// Source      Dora, section 4.1, Algorithm 1. Deviations: see two_substate_dp; blocks merge by parameters and FLOP;
///             lower warm-ups compete instead of coming last, and are lowered only as far as memory asks; beside
///             Dora's two substates a row whose stages may cross chains, without which it loses up to 3.4 x
///             (docs/reproduction/dora.md), and a finer one in the model's own numbering; polishing.
[[nodiscard]] plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                           const partitioner_options& options, const candidate_observer& observer = {});
[[nodiscard]] plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                           const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/dora_partitioner.ipp>
#endif
