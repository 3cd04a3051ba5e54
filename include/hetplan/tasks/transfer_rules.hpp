// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which of a plan's transfer rules speak of a transfer.

#include <map>
#include <span>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

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

}  // namespace hetplan::tasks

#ifndef HETPLAN_COMPILED
#include <hetplan/tasks/transfer_rules.ipp>
#endif
