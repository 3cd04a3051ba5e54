// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan, its models asked -> one task graph.

#include <cstddef>
#include <span>
#include <vector>

#include <hetplan/plan/stage_costs.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/tasks/task_graph.hpp>
#include <hetplan/tasks/transfer_sender.hpp>

namespace hetplan::tasks {

// Gradient reduction at the end of an iteration: rings inside stages, then rings or a server across them.

/// Adds the reductions of an iteration: rings inside stages, then rings or a parameter server across them.
///
/// @param finished  by stage: when its last backward part is done on all its devices.
/// @return          by stage: when its reductions are done, its own and those across stages.
/// Source           semantics, section 6.
[[nodiscard]] std::vector<task_graph_builder::handle> reduce_gradients(const plan& p, const planning_graph& model,
                                                                       const stage_graph& stages,
                                                                       const std::vector<task_graph_builder::handle>& finished,
                                                                       transfer_sender& sender);

// The traffic of a stage whose devices share out gradients or weights: gathers before, scatters behind.

/// Does a stage of this plan move parts of its state during the iteration?
[[nodiscard]] inline bool moves_state(const stage& s) {
  return s.devices.size() > 1 && (s.shard == sharding::zero2 || s.shard == sharding::fsdp);
}

/// Adds the rings of one stage of a plan (moves_state): of n devices in list order, each sends (n-1)/n of a unit to the next.
///
/// Source  semantics, section 6 (shared-out state).
class sharded_stage {
 public:
  using handle = task_graph_builder::handle;

  sharded_stage(const stage_costs& s, stage_id stage, transfer_sender& sender);

  /// fsdp: a piece of a pass, what one unit does on one device.
  struct piece {
    handle start;  ///< a barrier that ends when the piece starts: all that it waits for goes there
    handle work;
  };
  /// Gathers each unit before its piece, from the time on at which the piece before it has started everywhere.
  ///
  /// @param pieces_by_device  in the order of the stage's work.
  void gather_before(std::span<const std::vector<piece>> pieces_by_device, std::span<const order_entry> passes);

  /// Scatters a unit's gradients when `computed` (on each device) has ended.
  void scatter(int unit, int microbatch, std::span<const handle> computed);

  /// When all scatters have ended and, of zero2, the new weights are gathered.
  [[nodiscard]] handle finish();

  [[nodiscard]] std::size_t unit_count() const { return units_.size(); }

 private:
  /// @return  a barrier at the end of all of its transfers.
  handle ring(transfer_kind kind, int unit, int microbatch, double unit_bytes, const handle* start);

  const stage_costs& costs_;
  stage_id stage_;
  transfer_sender& sender_;
  task_graph_builder& out_;
  std::vector<unit_bytes> units_;
  handle all_scattered_;
};

/// Expands a plan of any kind into its task graph.
///
/// @return         computes by (stage, device in the stage, token, microbatch, phase); durations in seconds. A pass of a stage that shares
///                 out gradients or weights is a task for each of its units, behind a barrier that ends when the task starts.
/// Complexity      O(tasks + transfers), and what `stage_costs` takes.
/// Throws          invalid_input (a transfer rule speaks of no transfer); missing_route; what `stage_costs` throws.
/// Source          semantics, sections 4-7.
[[nodiscard]] task_graph expand(const stage_costs& s);
[[nodiscard]] task_graph expand(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                const any_memory_model& memory = {});

/// The same without the order of work on any device, for whoever makes one: every backward in its two parts, or none.
///
/// Throws  invalid_input (a stage shares out gradients or weights: their traffic follows its order), and as `expand` does.
[[nodiscard]] task_graph expand_unordered(const stage_costs& s, bool split_backwards);

}  // namespace hetplan::tasks

#ifndef HETPLAN_SEPARATE
#include <hetplan/tasks/expand.ipp>
#endif
