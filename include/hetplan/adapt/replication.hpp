// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Topology-driven replication of stages, the cost of a switch, and proportional cuts of a layer sequence.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// Returns the pause and the energy beyond idling of a stopped switch, alone on the network; empty if weights are missing.
/// Complexity  that of delta_migration and run_migration.
/// Source      Dora, eq. 8: the switching overhead of a plan.
[[nodiscard]] std::optional<mix::switch_cost> estimate_switch(const planning_problem& problem, const holdings& held, const plan& next,
                                                              const conditions& now);

/// Splits a migration: first the immutable weights for devices with memory for all of them beside the running plan, which may move
/// while it runs; second those that wait for a stop.
///
/// Source  Dora, section 4.3, asynchronous switching; the memory rule is ours.
[[nodiscard]] std::pair<migration, migration> split_beside(const migration& all, const plan& running, const planning_graph& model,
                                                           const cluster& c, const any_memory_model& memory);

/// The first items of consecutive stages: stage k is [first[k], first[k+1]); the last one extends to the end.
struct proportional_cut {
  double largest = std::numeric_limits<double>::infinity();  ///< largest share of a stage or cost of a boundary
  std::vector<std::size_t> first = {};
  [[nodiscard]] bool exists() const { return !first.empty(); }
};

/// Returns the cut that minimizes the largest share of a stage or cost of a boundary.
/// @param items     number of items in the sequence.
/// @param stages    number of stages, in order.
/// @param least     least number of items per stage: 1, or 0 if stages may be left out.
/// @param share     (stage, first, last) -> load of the stage by these items, as work / capacity; >= 0, finite, non-decreasing in
///                  `last`, 0 for no items.
/// @param boundary  (stage, item) -> cost of the boundary between the stage and the item behind it, non-negative, in the unit of
///                  the shares. Not called at the sequence's end. All 0: the shares alone.
/// @param fits      (stage, first, last) -> true if the stage can hold these items; if false, more items must not fit either.
/// @return          the exact optimum, or none if nothing fits.
/// Complexity       O(stages x items^2) in the worst case; pieces beyond the best known are not tried.
/// Determinism      ties: the smaller largest share, given the best pieces behind a stage; then the earliest cut.
/// Source           Asteroid, section 3.4: workload "reallocated among the remaining stages based on their computing capacity".
///                  Boundary costs are ours.
template <std::invocable<std::size_t, std::size_t, std::size_t> Share, std::invocable<std::size_t, std::size_t> Boundary,
          std::invocable<std::size_t, std::size_t, std::size_t> Fits>
[[nodiscard]] proportional_cut cut_in_proportion(std::size_t items, std::size_t stages, std::size_t least, const Share& share,
                                                 const Boundary& boundary, const Fits& fits) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  struct choice {
    double largest = std::numeric_limits<double>::infinity();
    double share = std::numeric_limits<double>::infinity();  ///< largest share, without boundaries
    std::size_t end = 0;
  };
  std::vector<choice> cells((stages + 1) * (items + 1));  // (stage, first item): the best for this stage and the later ones
  const auto cell = [&](std::size_t k, std::size_t i) -> choice& { return cells[k * (items + 1) + i]; };
  cell(stages, items) = {0, 0, items};
  for (std::size_t k = stages; k-- > 0;) {
    for (std::size_t i = 0; i <= items; ++i) {
      choice& best = cell(k, i);
      for (std::size_t end = i + least; end <= items; ++end) {
        const double mine = share(k, i, end);
        if (mine >= best.largest) break;  // no better in either value: shares are at most `largest`
        const choice& rest = cell(k + 1, end);
        if (rest.largest == inf) continue;
        const choice now{std::max({mine, rest.largest, end < items ? boundary(k, end) : 0.0}), std::max(mine, rest.share), end};
        if (now.largest > best.largest || (now.largest == best.largest && now.share >= best.share)) continue;
        if (end > i && !fits(k, i, end)) break;
        best = now;
      }
    }
  }
  proportional_cut cut;
  cut.largest = cell(0, 0).largest;
  if (cut.largest == inf) return cut;
  for (std::size_t k = 0, i = 0; k < stages; i = cell(k, i).end, ++k) cut.first.push_back(i);
  return cut;
}

/// The content of a backup.
enum class backup_content {
  resume,  ///< all state to resume from: W (1 + optimizer_factor) if a layer is trained, otherwise W
  weights  ///< W: the optimizer starts anew
};

/// A stage that only one device runs, and the device that keeps its copy.
struct backup {
  stage_id stage;
  device_id from;
  device_id to = {};
  std::vector<layer_id> layers = {};  ///< one per tensor, as in fetch::layers
  bytes once = {};                    ///< immutable weights, sent once
  bytes each_time = {};               ///< trained state, sent at every backup

  /// Returns the bytes that the backup takes of the keeper's memory.
  [[nodiscard]] bytes held() const { return once + each_time; }
  friend bool operator==(const backup&, const backup&) = default;
};

struct replication {
  std::vector<backup> backups = {};
  /// Stages that only one device runs if no other device of the plan has a route and memory for a copy; also stages that shard the
  /// optimizer state, of which no copies are made.
  std::vector<stage_id> unprotected = {};
  friend bool operator==(const replication&, const replication&) = default;
};

/// Returns the bytes of each device's memory that a plan leaves free: the usable memory less state, caches and the activations of
/// microbatches in flight (an upper bound of the peak: as many as the warm-up says; all of them for explicit orders).
///
/// Complexity  O(layers of all stages x devices per stage).
[[nodiscard]] std::vector<double> free_bytes(const plan& p, const planning_graph& model, const cluster& c,
                                             const any_memory_model& memory = {});

/// Backs up a stage on one device to a device of the next stage, the last stage to one of the first: to the device with the most
/// free memory (ties: the smaller id). Stages on several devices need no backup.
///
/// The next stage is the successor with the smallest id, for a sink the first stage of its pipeline. Deviations: only tensors that
/// no other device of the plan runs are backed up (weights tied to another stage are safe there, and so is a layer that another
/// pipeline runs). If the next stage has no other device with enough memory, the later stages are tried, then the first ones.
///
/// @param p        a valid plan.
/// @return         backups by stage; every backup fits beside the plan and the earlier backups.
/// Complexity      O(layers + stages^2 x devices per stage), and that of free_bytes.
/// Determinism     yes.
/// Source          Asteroid, section 3.4, which backs up "its stage model" and does not treat the optimizer state, memory, or
///                 graphs of stages.
[[nodiscard]] replication replicate_by_topology(const plan& p, const planning_graph& model, const cluster& c,
                                                backup_content content = backup_content::resume, const any_memory_model& memory = {});

/// Returns the backups as a migration of one round. The first time everything is sent, later only `split_immutable(...).second`.
[[nodiscard]] migration backup_fetches(const replication& r, const planning_graph& model, const workload& w);

/// Returns the holdings with the backups added, from which a migration may fetch. A copy of trained state is older than the
/// original. It counts only if no present device holds the original; then the whole model goes back to it.
///
/// Complexity  O(layers x devices).
[[nodiscard]] holdings with_backups(const holdings& held, const replication& r, const planning_graph& model, const workload& w,
                                    const conditions& now);

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/replication.ipp>
#endif
