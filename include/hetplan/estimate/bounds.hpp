// SPDX-License-Identifier: BSL-1.0
#pragma once
/// No plan of this model, cluster and batch is faster: the compute bound and the path bound.

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

// Why no plan keeps the limits: rows of a relaxation that every plan satisfies and these devices do not.

/// Looks for a proof that no plan of a job keeps memory, energy budgets and busy shares: not one of those that some planner tries, but
/// none that a plan file can say, with any cut into stages and pipelines, orders, shares, microbatch sizes, degrees of tensor parallelism,
/// and with recomputed activations and shared-out optimizer state, whatever the job lets planners make use of.
///
/// Memory: tensors that only the k largest devices have room for, each with the activations (and in generation the cache) of one sample,
/// lie on those k: each tensor once, the caches of the whole batch, and one sample's activations somewhere. One row for the worst k.
///
/// Energy: a device that works for b seconds runs for b / max_busy at least, and no shorter than any plan does, so its budget allows
/// it so many seconds of work; all work, every layer at its least time per sample, is split among the devices in any fractions. One row:
/// that split's fullest device, bounded by weights on the devices that make it checkable by hand. Without an energy budget on every device
/// that has room for a layer there is no such row; busy shares alone forbid nothing, for a plan may wait, but on the only device of a
/// cluster.
///
/// The solver only proposes the weights: what it answers is checked here.
///
/// @return      rows of which the last proves alone, or nothing where neither relaxation excludes all plans: then there may be one or not.
/// Complexity   memory: O((layers + devices) log). Energy: layers x devices x batch sizes questions to the cost model, and a linear program
///              where the problem has a solver and layers that differ x devices are at most 20 000; asked only where every device has a
///              budget.
/// Determinism  yes.
/// Throws       what the models throw.
[[nodiscard]] std::optional<infeasibility_proof> prove_infeasible(const planning_problem& problem);

/// What bounds need of the cost model, asked once: the least time of each layer over batch sizes and degrees.
struct layer_minima {
  std::size_t devices = 0;
  std::vector<double> per_sample_s;        ///< layer x device: min over b, g of (F + B + W)(b, g) / b
  std::vector<double> forward_s;           ///< layer: min over devices, b, g of F
  std::vector<double> forward_backward_s;  ///< layer: min over devices, b, g of F + B (= F outside training)
};

/// More questions than this to the cost model, and the compute bound is left out (0, still a bound).
inline constexpr double max_bound_questions = 3e7;

/// Complexity  layers x devices x batch sizes x degrees questions to the cost model.
/// Batch sizes beyond the model's largest_batch are not asked for. Boundaries are left out: a plan with a stage per layer pays none.
/// Throws      what the model throws; unknown_time only where it knows the time of no batch size.
[[nodiscard]] layer_minima minimal_times(const planning_graph& model, const cluster& c, const any_cost_model& cost, const workload& w,
                                         long long max_batch);

/// The longest way of one sample there and back, every layer at its fastest device, no communication.
///
/// A backward returns along an edge only where the edge has a gradient.
/// Source      semantics, section 9 (b).  Complexity  O(V + E).
[[nodiscard]] seconds path_bound(const planning_graph& model, const layer_minima& m, mode how);

/// The fractional assignment of all work to devices within memory: a lower bound on T of every plan.
///
/// The solver only proposes multipliers; the bound that is returned is their Lagrangian, computed here, so
/// it is valid whatever the solver's tolerances (or `no_lp`: then the closed multipliers, each device's
/// share in proportion to its speed on the whole model).
///
/// @param capacity  usable bytes by device; infinite entries leave the memory row out.
/// @param shards    of the optimizer's state at most.
/// Source           semantics, section 9 (a).  Deviation: multipliers certify instead of the LP's value.
[[nodiscard]] seconds compute_bound(const planning_graph& model, const layer_minima& m, const any_memory_model& memory, const workload& w,
                                    double batch, const std::vector<double>& capacity, const any_lp_solver& lp, int shards = 1);

/// max(compute bound, path bound) over all plans of this plan's model, cluster and batch, whatever their
/// microbatches, and whether they share out optimizer state; of a plan with grids also over those with grids, without the path, of one that
/// shares out gradients or weights over those that do, without regard to memory; in generation for all tokens. 0 where there is no bound
/// (see max_bound_questions).
///
/// @param within_memory  false for a plan that breaks its memory: it may beat every plan that does not.
/// Source                semantics, section 9. Deviation: batch sizes up to the whole batch, not up to this
///                       plan's microbatch, so that plans of one job have one bound.
[[nodiscard]] seconds plan_bound(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                 const any_memory_model& memory, const any_lp_solver& lp, bool within_memory);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/estimate/bounds.ipp>
#endif
