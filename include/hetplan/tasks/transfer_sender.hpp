// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Adds a plan's transfers to a task graph, with their routes, and in the chunks of the plan's transfer rules.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
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
  std::map<transfer_name, entry> by_transfer_;
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

}  // namespace hetplan::tasks

#ifndef HETPLAN_SEPARATE
#include <hetplan/tasks/transfer_sender.ipp>
#endif
