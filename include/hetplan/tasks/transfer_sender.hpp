// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Adds a plan's transfers to a task graph: their routes, and their chunks where the plan has rules.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

// Which of a plan's transfer rules speak of a transfer.

/// The rules of a valid plan by the transfers that they name; a token rule holds in every step.
class transfer_rules {
 public:
  explicit transfer_rules(const plan& p);

  /// The chunks of a transfer in order; empty where the plan has no rule for it.
  [[nodiscard]] std::span<const transfer_rule* const> find(const transfer& t);

  /// Throws invalid_input for the first rule that named no transfer of the plan.
  void require_all_used(const cluster& c) const;

 private:
  struct entry {
    std::vector<const transfer_rule*> chunks;
    bool used = false;
  };
  const plan& plan_;
  std::map<transfer_name, entry> by_transfer_;
};

/// Sends transfers between the devices of a cluster as a plan says.
class transfer_sender {
 public:
  using handle = task_graph_builder::handle;

  transfer_sender(const plan& p, const cluster& c, task_graph_builder& out);

  [[nodiscard]] task_graph_builder& builder() { return out_; }

  /// Adds a transfer whose ends, kind, microbatch and volume are set, in chunks where the plan says so.
  ///
  /// @return  its first and last chunk; chunks follow one another, the latency is the first one's.
  /// Throws   missing_route if the cluster has no route for the pair; invalid_input if its bytes are beyond what a double holds.
  std::pair<handle, handle> send(transfer t);

  /// Adds a transfer that is part of the work of both its devices: it starts and ends with the task that sends, and both tasks
  /// get longer by its latency and its bytes at the route's peak bandwidth.
  ///
  /// Throws   as send.
  /// Source   semantics, section 6, rule 4 (`block`).
  void carry(transfer t, handle producer, handle consumer);

  /// Adds a transfer that is part of the sender's work and whose time is in it already: an all-reduce among the columns of a grid.
  ///
  /// Throws   as send.
  void carry_along(transfer t, handle work);

  /// Throws invalid_input if a rule of the plan named no transfer.
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

}  // namespace hetplan::tasks

#ifndef HETPLAN_SEPARATE
#include <hetplan/tasks/transfer_sender.ipp>
#endif
