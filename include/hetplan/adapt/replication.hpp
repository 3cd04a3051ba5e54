// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Topology-driven replication: which device backs up whose stage, and what that takes.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/adapt/holdings.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

// What a switch of plans would take now: for those who decide whether it is worth it.

/// Seconds during which nothing runs and joules beyond idling, if everything moves with the plan stopped and the network to
/// itself; nothing where weights are missing.
///
/// Complexity  that of delta_migration and run_migration.
/// Source      Dora, eq. 8: the switching overhead of a plan.
[[nodiscard]] std::optional<mix::switch_cost> estimate_switch(const planning_problem& problem, const holdings& held, const plan& next,
                                                              const conditions& now);

/// A migration in two: what may come while a plan runs, that is what nothing changes, to devices that have room for all of it
/// beside that plan; and what has to wait for the stop.
///
/// Source  Dora, section 4.3, asynchronous switching; the room is ours.
[[nodiscard]] std::pair<migration, migration> split_beside(const migration& all, const plan& running, const planning_graph& model,
                                                           const cluster& c, const any_memory_model& memory);

// Cuts a sequence of layers into one piece per stage so that no stage has much more to do than another.

/// Where consecutive stages begin: stage k is [first[k], first[k+1]) of the items, the last ends with them.
struct proportional_cut {
  double largest = std::numeric_limits<double>::infinity();  ///< share of a stage, or cost of a boundary
  std::vector<std::size_t> first = {};
  [[nodiscard]] bool exists() const { return !first.empty(); }
};

/// The cut whose largest share of a stage, or cost of a boundary, is smallest.
///
/// @param items     of the sequence.
/// @param stages    in their order.
/// @param least     items that every stage gets at least: 1, or 0 where stages may be left out.
/// @param share     (stage, first, last) -> what these items are to the stage, as work / capacity; >= 0, finite, must not fall
///                  as `last` grows, 0 for no items.
/// @param boundary  (stage, item) -> cost of the boundary behind the stage, where the item comes first behind it; in the unit
///                  of the shares, >= 0. Not asked at the sequence's end. All 0: the shares alone.
/// @param fits      (stage, first, last) -> may the stage hold these items? If it may not, it may not hold more either.
/// @return          the exact optimum, or none if nothing fits.
/// Complexity       O(stages x items^2) at worst; pieces beyond the best known are not tried.
/// Determinism      ties: the smaller largest share, the best pieces behind a stage being given; then the earliest cut.
/// Source           Asteroid, section 3.4: workload "reallocated among the remaining stages based on their computing capacity".
///                  Boundaries that cost something are ours.
template <std::invocable<std::size_t, std::size_t, std::size_t> Share, std::invocable<std::size_t, std::size_t> Boundary,
          std::invocable<std::size_t, std::size_t, std::size_t> Fits>
[[nodiscard]] proportional_cut cut_in_proportion(std::size_t items, std::size_t stages, std::size_t least, const Share& share,
                                                 const Boundary& boundary, const Fits& fits) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  struct choice {
    double largest = std::numeric_limits<double>::infinity();
    double share = std::numeric_limits<double>::infinity();  ///< the largest, without boundaries
    std::size_t end = 0;
  };
  std::vector<choice> cells((stages + 1) * (items + 1));  // (stage, first item): the best for this stage and those behind it
  const auto cell = [&](std::size_t k, std::size_t i) -> choice& { return cells[k * (items + 1) + i]; };
  cell(stages, items) = {0, 0, items};
  for (std::size_t k = stages; k-- > 0;) {
    for (std::size_t i = 0; i <= items; ++i) {
      choice& best = cell(k, i);
      for (std::size_t end = i + least; end <= items; ++end) {
        const double mine = share(k, i, end);
        if (mine >= best.largest) break;  // no better in either: a share is no larger than `largest`
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

/// What a backup holds.
enum class backup_content {
  resume,  ///< what a resume needs: W (1 + optimizer_factor) where a layer learns, else W
  weights  ///< W: the optimizer starts anew
};

/// A stage that only one device runs, and the device that keeps a copy for it.
struct backup {
  stage_id stage;
  device_id from;
  device_id to = {};
  std::vector<layer_id> layers = {};  ///< one per tensor, as in fetch::layers
  bytes once = {};                    ///< immutable weights: sent once
  bytes each_time = {};               ///< what training changes: sent at every backup

  /// What it takes of the keeper's memory.
  [[nodiscard]] bytes held() const { return once + each_time; }
  friend bool operator==(const backup&, const backup&) = default;
};

struct replication {
  std::vector<backup> backups = {};
  /// One device runs it, and no other device of the plan has a way and the memory for a copy; or its devices share out the
  /// optimizer's state, of which no copies are made.
  std::vector<stage_id> unprotected = {};
  friend bool operator==(const replication&, const replication&) = default;
};

/// Bytes of each device's memory that a plan leaves free: what it may use less its state, caches and the activations of the
/// microbatches in flight (an upper bound of the peak: as many as the warm-up says; all of them for explicit orders).
///
/// Complexity  O(layers of all stages x devices per stage).
[[nodiscard]] std::vector<double> free_bytes(const plan& p, const planning_graph& model, const cluster& c,
                                             const any_memory_model& memory = {});

/// A stage on one device is backed up on a device of the next stage, the last stage on one of the first; of its devices the
/// one with most memory free (ties: the smaller id). Stages on several devices need no backup.
///
/// The next stage is the successor with the smallest id, for a sink the first stage of its pipeline. Deviations: only
/// tensors that no other device of the plan runs are backed up (weights tied to another stage are safe there, and so is a
/// layer that another pipeline runs); where the next stage has no other device with enough memory, the stages behind it
/// are asked in turn, then those from the first on.
///
/// @param p        a valid plan.
/// @return         backups by stage; every backup fits beside the plan and the backups before it.
/// Complexity      O(layers + stages^2 x devices per stage), and that of free_bytes.
/// Determinism     yes.
/// Source          Asteroid, section 3.4, which backs up "its stage model" and says nothing of the optimizer's state, of
///                 memory, or of graphs of stages.
[[nodiscard]] replication replicate_by_topology(const plan& p, const planning_graph& model, const cluster& c,
                                                backup_content content = backup_content::resume, const any_memory_model& memory = {});

/// The backups as something to run: one round. The first time everything is sent; later `split_immutable(...).second` is,
/// what training changes.
[[nodiscard]] migration backup_fetches(const replication& r, const planning_graph& model, const workload& w);

/// Holdings with the backups added: what a migration may fetch from. A copy of what training changes is older than the
/// original, so it counts only where nobody that is there holds the original; then the whole model goes back to it.
///
/// Complexity  O(layers x devices).
[[nodiscard]] holdings with_backups(const holdings& held, const replication& r, const planning_graph& model, const workload& w,
                                    const conditions& now);

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/replication.ipp>
#endif
