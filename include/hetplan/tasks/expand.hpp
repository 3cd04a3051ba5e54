// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Expansion of a plan with its costs into one task graph.

#include <cstddef>
#include <span>
#include <vector>

#include <hetplan/plan/stage_costs.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/tasks/task_graph.hpp>
#include <hetplan/tasks/transfer_sender.hpp>

namespace hetplan::tasks {

/// Adds the gradient reductions of an iteration: rings inside stages, then rings or a parameter server across them.
///
/// @param finished  by stage: end of its last backward part on all its devices.
/// @return          by stage: end of its reductions, inside the stage and across stages.
/// Source           semantics, section 6.
[[nodiscard]] std::vector<task_graph_builder::handle> reduce_gradients(const plan& p, const planning_graph& model,
                                                                       const stage_graph& stages,
                                                                       const std::vector<task_graph_builder::handle>& finished,
                                                                       transfer_sender& sender);

/// Returns true if the stage moves parts of its state during an iteration (ZeRO-2, FSDP).
[[nodiscard]] inline bool moves_state(const stage& s) {
  return s.devices.size() > 1 && (s.shard == sharding::zero2 || s.shard == sharding::fsdp);
}

/// Ring transfers of a stage that moves its state (moves_state): each of n devices, in list order, sends (n-1)/n of a unit to the next.
/// Source  semantics, section 6 (sharded state).
class sharded_stage {
 public:
  using handle = task_graph_builder::handle;

  sharded_stage(const stage_costs& s, stage_id stage, transfer_sender& sender);

  /// Under fsdp: the part of a pass that belongs to one unit on one device.
  struct piece {
    handle start;  ///< barrier that ends when the piece starts; predecessors of the piece depend on it
    handle work;
  };
  /// Gathers each unit before its piece. The gather may start once the piece before has started on all devices.
  ///
  /// @param pieces_by_device  in the order of the stage's work.
  void gather_before(std::span<const std::vector<piece>> pieces_by_device, std::span<const order_entry> passes);

  /// Scatters a unit's gradients after the tasks `computed`, one per device.
  void scatter(int unit, int microbatch, std::span<const handle> computed);

  /// Returns the end of all scatters and, under zero2, of gathering the new weights.
  [[nodiscard]] handle finish();

  [[nodiscard]] std::size_t unit_count() const { return units_.size(); }

 private:
  /// @return  a barrier at the end of all transfers of the ring.
  handle ring(transfer_kind kind, int unit, int microbatch, double unit_bytes, const handle* start);

  const stage_costs& costs_;
  stage_id stage_;
  transfer_sender& sender_;
  task_graph_builder& out_;
  std::vector<unit_bytes> units_;
  handle all_scattered_;
};

/// Returns the task graph of a plan of any kind.
///
/// @return         computes by (stage, device in the stage, token, microbatch, phase); durations in seconds. A stage with sharded gradients
///                 or weights has one task per unit in each pass, behind a barrier that ends when the task starts.
/// Complexity      O(tasks + transfers), plus that of `stage_costs`.
/// Throws          invalid_input (a transfer rule names no transfer of the plan); missing_route; as `stage_costs`.
/// Source          semantics, sections 4-7.
[[nodiscard]] task_graph expand(const stage_costs& s);
[[nodiscard]] task_graph expand(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                const any_memory_model& memory = {});

/// Returns the task graph without task orders, for callers that decide them. Every backward is split, or none.
///
/// Throws  as `expand`; invalid_input (a stage with sharded gradients or weights, whose traffic depends on its order).
[[nodiscard]] task_graph expand_unordered(const stage_costs& s, bool split_backwards);

}  // namespace hetplan::tasks

#ifndef HETPLAN_SEPARATE
#include <hetplan/tasks/expand.ipp>
#endif
