// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Lower bounds on the latency of all plans of a model, cluster and batch, and proofs that no plan keeps the limits.

#include <optional>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan {

/// Looks for a proof that no plan of a job keeps its memory, energy budgets and busy-share limits. The proof covers every plan that a plan
/// file can express: any cut into stages and pipelines, orders, shares, microbatch sizes and degrees of tensor parallelism, with or without
/// recomputation and sharded optimizer state, whatever the job allows planners to use.
///
/// Memory: layers that fit only on the k largest devices, each with the activations (and in generation the cache) of one sample, must lie
/// on those k: each tensor once, the caches of the whole batch, and the largest activations of one sample. The row is for the worst k. The
/// tiers of a device count as its memory, but not for what must not lie there: caches, activations, and what is trained. Layers that are
/// pinned to a device must fit there.
///
/// Energy: a device that works for b seconds runs for at least b / max_busy, and at least as long as the fastest plan, so its budget caps
/// its seconds of work. All work, every layer at its least time per sample, is divided fractionally among the devices. The row is the
/// load of the fullest device in the best division, bounded by weights on the devices. The solver only proposes the weights; the row is
/// computed from them and can be checked by hand. A layer that may run on a device without an energy budget is left out. Busy-share
/// limits alone exclude nothing, since a plan may wait, except on a cluster's only device.
///
/// @return      rows, the last of which is a proof alone; nothing if neither relaxation excludes all plans, so that one may exist.
/// Complexity   memory: O((layers + devices) log). Energy: layers x devices x batch sizes queries of the cost model, and a linear program
///              if the problem has a solver and (distinct layers) x devices <= 20 000; skipped if no device has an energy budget or a
///              device without one has room for every layer.
/// Determinism  yes.
/// Throws       what the models throw.
[[nodiscard]] std::optional<infeasibility_proof> prove_infeasible(const planning_problem& problem);
/// Returns the memory row of prove_infeasible if it excludes all plans, else nothing. It then excludes larger batches and contexts, too.
/// Where the job lets devices share tensors, only all memory together counts, and such plans are excluded as well.
/// Complexity  O((layers + devices) log).
[[nodiscard]] std::optional<infeasibility_proof::row> exceeds_memory(const planning_problem& problem);

/// Least times of each layer over batch sizes b and tensor-parallel degrees g, in generation of all passes of the run. Below a device's
/// memory, weights come at the rate of its fastest tier; those that share resources of the network count together, alone on these.
struct layer_minima {
  std::size_t devices = 0;
  std::vector<double> per_sample_s;        ///< layer x device: min over b, g of (F + B + W)(b, g) / b
  std::vector<double> below_per_sample_s;  ///< the same with weights in tiers; infinite where none may; empty if no device has tiers
  std::vector<double> busy_per_sample_s;   ///< the least of both without what a device waits for; empty likewise
  std::vector<double> forward_s;           ///< layer: min over devices, b, g of F; of a prompt in chunks only one of these counts
  std::vector<double> forward_backward_s;  ///< layer: min over devices, b, g of F + B (= F outside training)
};

/// Limit on the queries of the cost model; beyond it all least times, and so the bounds, are 0.
inline constexpr double max_bound_questions = 3e7;

/// Returns the least times. Batch sizes beyond the model's largest_batch are not queried. The cost model's boundary terms are left out,
/// since a plan with one layer per stage has none.
/// Complexity  layers x devices x batch sizes x degrees queries of the cost model.
/// Throws      what the model throws; unknown_time only if it knows the time of no batch size.
[[nodiscard]] layer_minima minimal_times(const planning_graph& model, const cluster& c, const any_cost_model& cost, const workload& w,
                                         long long max_batch);

/// Returns the longest path of one sample forward and back, with every layer on its fastest device and no communication. A backward
/// pass returns along an edge only if the edge has a gradient.
/// Source      semantics, section 9 (b).  Complexity  O(V + E).
[[nodiscard]] seconds path_bound(const planning_graph& model, const layer_minima& m, mode how);

/// Returns a lower bound on T of every plan: the fractional assignment of all work to devices within memory. The solver only proposes
/// multipliers. The returned bound is their Lagrangian, computed here, so it is valid whatever the solver's tolerances. With `no_lp` the
/// multipliers have a closed form: each device's share in proportion to its speed on the whole model.
///
/// @param capacity  usable bytes by device; infinite entries leave the memory row out.
/// @param shards    the most shards of the optimizer's state.
/// @param below     bytes of all tiers by device; may be empty if there are none.
/// Throws           invalid_model of the memory model.
/// Source           semantics, section 9 (a).  Deviation: multipliers certify instead of the LP's value.
[[nodiscard]] seconds compute_bound(const planning_graph& model, const layer_minima& m, const any_memory_model& memory, const workload& w,
                                    double batch, const std::vector<double>& capacity, const any_lp_solver& lp, int shards = 1,
                                    const std::vector<double>& below = {});

/// Returns the larger of compute bound and path bound over all plans of this plan's model, cluster and batch, with any microbatches and
/// with or without sharded optimizer state; in generation for all tokens. For a plan with grids it covers plans with grids too and omits
/// the path bound. For a plan that shards gradients or weights it covers such plans too and ignores memory. 0 if there is no bound (see
/// max_bound_questions).
///
/// @param within_memory  false for a plan that exceeds its memory, which may beat every plan that does not.
/// Throws                invalid_model of a model.
/// Source                semantics, section 9. Deviation: batch sizes up to the whole batch, not up to this
///                       plan's microbatch, so that plans of one job have one bound.
[[nodiscard]] seconds plan_bound(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                 const any_memory_model& memory, const any_lp_solver& lp, bool within_memory);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/estimate/bounds.ipp>
#endif
