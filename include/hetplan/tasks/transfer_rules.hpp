// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which of a plan's transfer rules speak of a transfer.

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

/// The plan's rules by the transfers that they name. A reduction has no microbatch of its own, so a rule
/// for one names any; a token rule holds in every step.
class transfer_rules {
 public:
  explicit transfer_rules(const plan& p) {
    for (const transfer_rule& r : p.schedule.transfers) {
      auto& mine = by_transfer_[key(r.kind, r.from, r.to, r.from_stage, r.to_stage, r.microbatch)];
      // Two rules for one reduction that name different microbatches would otherwise interleave.
      if (static_cast<int>(mine.chunks.size()) < r.chunks) mine.chunks.push_back(&r);
    }
    for (auto& [_, mine] : by_transfer_) {
      std::sort(mine.chunks.begin(), mine.chunks.end(), [](const transfer_rule* a, const transfer_rule* b) { return a->chunk < b->chunk; });
    }
  }

  /// The chunks of a transfer in order; empty where the plan has no rule for it.
  [[nodiscard]] std::span<const transfer_rule* const> find(const transfer& t) {
    if (by_transfer_.empty()) return {};
    const auto it = by_transfer_.find(key(t.kind, t.from, t.to, t.from_stage, t.to_stage, t.microbatch));
    if (it == by_transfer_.end()) return {};
    it->second.used = true;
    return it->second.chunks;
  }

  /// Throws invalid_input if a rule named no transfer of the plan.
  void require_all_used(const cluster& c) const {
    for (const auto& [_, mine] : by_transfer_) {
      if (mine.used) continue;
      const transfer_rule& r = *mine.chunks.front();
      throw invalid_input("plan: /schedule/flows: no " + std::string(to_string(r.kind)) + " transfer goes from device \"" +
                          c[r.from].name + "\" to \"" + c[r.to].name + "\" for stages " + std::to_string(r.from_stage.value) +
                          " and " + std::to_string(r.to_stage.value) + ", microbatch " + std::to_string(r.microbatch));
    }
  }

 private:
  using key_type = std::tuple<transfer_kind, device_id, device_id, stage_id, stage_id, int>;
  struct entry {
    std::vector<const transfer_rule*> chunks;
    bool used = false;
  };
  static key_type key(transfer_kind kind, device_id from, device_id to, stage_id s, stage_id t, int microbatch) {
    return {kind, from, to, s, t, kind == transfer_kind::sync ? 0 : microbatch};
  }
  std::map<key_type, entry> by_transfer_;
};

}  // namespace hetplan::tasks
