// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which of a plan's transfer rules speak of a transfer.

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

/// The rules of a valid plan by the transfers that they name; a token rule holds in every step.
class transfer_rules {
 public:
  explicit transfer_rules(const plan& p) {
    for (const transfer_rule& r : p.schedule.transfers) {
      by_transfer_[name_of_transfer(r)].chunks.push_back(&r);
    }
    for (auto& [_, mine] : by_transfer_) {
      std::sort(mine.chunks.begin(), mine.chunks.end(), [](const transfer_rule* a, const transfer_rule* b) { return a->chunk < b->chunk; });
    }
  }

  /// The chunks of a transfer in order; empty where the plan has no rule for it.
  [[nodiscard]] std::span<const transfer_rule* const> find(const transfer& t) {
    if (by_transfer_.empty()) return {};
    const auto it = by_transfer_.find(name_of_transfer(t));
    if (it == by_transfer_.end()) return {};
    it->second.used = true;
    return it->second.chunks;
  }

  /// Throws invalid_input if a rule named no transfer of the plan.
  void require_all_used(const cluster& c) const {
    for (const auto& [_, mine] : by_transfer_) {
      if (mine.used) continue;
      const transfer_rule& r = *mine.chunks.front();
      throw invalid_input("plan: /schedule/flows: no " + std::string(to_string(r.kind)) + " transfer goes from device \"" + c[r.from].name +
                          "\" to \"" + c[r.to].name + "\" for stages " + std::to_string(r.from_stage.value) + " and " +
                          std::to_string(r.to_stage.value) + ", microbatch " + std::to_string(r.microbatch));
    }
  }

 private:
  struct entry {
    std::vector<const transfer_rule*> chunks;
    bool used = false;
  };
  std::map<transfer_name, entry> by_transfer_;
};

}  // namespace hetplan::tasks
