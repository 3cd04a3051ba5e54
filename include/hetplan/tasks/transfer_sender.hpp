// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a plan moves, added to its task graph: transfers between devices with their routes and in the chunks of the plan's transfer rules,
/// the rings of gradients and sharded state, and reads from memory tiers.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/plan/stage_costs.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

/// Transfer rules of a valid plan, indexed by transfer. A rule for tokens holds in every step.
class transfer_rules {
 public:
  explicit transfer_rules(const plan& p);

  /// Returns the chunks of a transfer in order; empty if the plan has no rule for it.
  [[nodiscard]] std::span<const transfer_rule* const> find(const transfer& t);

  /// Throws invalid_input for the first rule that matched no transfer of the plan.
  void require_all_used(const cluster& c) const;

 private:
  struct entry {
    std::vector<const transfer_rule*> chunks;
    bool used = false;
  };
  const plan& plan_;
  keyed<entry> by_transfer_;  ///< by name_of_transfer
};

/// Sender of the transfers between the devices of a cluster according to a plan.
class transfer_sender {
 public:
  using handle = task_graph_builder::handle;

  transfer_sender(const plan& p, const cluster& c, task_graph_builder& out);

  [[nodiscard]] task_graph_builder& builder() { return out_; }

  /// Adds a transfer with given ends, kind, microbatch and volume, in chunks if the plan has a rule for it.
  ///
  /// @return  the first and the last chunk; chunks follow one another, and only the first has the latency.
  /// Throws   missing_route (the cluster has no route for the pair); invalid_input (its bytes exceed the range of double).
  std::pair<handle, handle> send(transfer t);

  /// Adds a blocking transfer, which is part of the work of both its devices. It starts and ends with the sending task, and both tasks are
  /// prolonged by its latency and its bytes at the route's peak bandwidth.
  ///
  /// Throws   as send.
  /// Source   semantics, section 6, rule 4 (`block`).
  void carry(transfer t, handle producer, handle consumer);

  /// Adds a transfer whose time is already in the sender's work: an all-reduce among the columns of a grid. Throws as send.
  void carry_along(transfer t, handle work);

  void require_all_rules_used() const { rules_.require_all_used(cluster_); }

 private:
  static constexpr std::uint32_t no_route = ~std::uint32_t{0};

  std::uint32_t route_of(const transfer& t);
  [[nodiscard]] std::string what_needs(const transfer& t) const;

  const plan& plan_;
  const cluster& cluster_;
  transfer_rules rules_;
  task_graph_builder& out_;
  std::vector<std::uint32_t> route_of_;
};

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

/// Returns the bytes that a task waits for, by tier of its device; empty if there are none.
///
/// @param split  true if the task's weight part is a task of its own.
[[nodiscard]] std::vector<double> reads_of(const stage_costs::part& cost, phase what, bool split);

/// Adds tasks behind the reads from memory tiers that they wait for.
/// Source  semantics, section 6 (reads from tiers).
class tier_reader {
 public:
  using handle = task_graph_builder::handle;

  tier_reader(const cluster& c, task_graph_builder& out) : cluster_(c), out_(out) {}

  /// Adds a task and its reads; these start when the device would begin it. No read is faster than its tier: where the resource is faster,
  /// something without bytes takes the rest of the time.
  ///
  /// @param position  of the device in its stage.   @param reads  by tier of the device, from reads_of.
  [[nodiscard]] sharded_stage::piece add(const compute_task& t, std::size_t position, const std::vector<double>& reads);

 private:
  /// Returns the route over a resource alone, or over none.
  [[nodiscard]] std::uint32_t way_over(resource_id r);

  const cluster& cluster_;
  task_graph_builder& out_;
  keyed<std::uint32_t> ways_;  ///< by resource
};

}  // namespace hetplan::tasks

#ifndef HETPLAN_SEPARATE
#include <hetplan/tasks/transfer_sender.ipp>
#endif
