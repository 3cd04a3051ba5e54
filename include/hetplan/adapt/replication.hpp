// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Topology-driven replication: which device backs up whose stage, and what that takes.

#include <vector>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/cost/any_memory_model.hpp>

namespace hetplan::adapt {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/replication.ipp>
#endif
