// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/transfer_rules.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::tasks {

HETPLAN_INLINE transfer_rules::transfer_rules(const plan& p) : plan_(p) {
  for (const transfer_rule& r : p.schedule.transfers) {
    by_transfer_[name_of_transfer(r)].chunks.push_back(&r);
  }
  for (auto& [_, mine] : by_transfer_) {
    std::sort(mine.chunks.begin(), mine.chunks.end(), [](const transfer_rule* a, const transfer_rule* b) { return a->chunk < b->chunk; });
  }
}

HETPLAN_INLINE std::span<const transfer_rule* const> transfer_rules::find(const transfer& t) {
  if (by_transfer_.empty()) return {};
  const auto it = by_transfer_.find(name_of_transfer(t));
  if (it == by_transfer_.end()) return {};
  it->second.used = true;
  return it->second.chunks;
}

HETPLAN_INLINE void transfer_rules::require_all_used(const cluster& c) const {
  for (std::size_t i = 0; i < plan_.schedule.transfers.size(); ++i) {
    const transfer_rule& r = plan_.schedule.transfers[i];
    if (by_transfer_.at(name_of_transfer(r)).used) continue;
    const stage& from = plan_[r.from_stage];
    const bool inside = r.from_stage == r.to_stage && r.kind == transfer_kind::sync;
    throw invalid_input(
        "plan: /schedule/flows/" + std::to_string(i) + ": no " + std::string(to_string(r.kind)) + " transfer goes from device \"" +
        c[r.from].name + "\" to \"" + c[r.to].name + "\" for stages " + std::to_string(r.from_stage.value) + " and " +
        std::to_string(r.to_stage.value) + ", microbatch " + std::to_string(r.microbatch) +
        (inside && from.shard == sharding::fsdp ? "; under fsdp gradients are scattered, and scatters and gathers have no rules"
         : inside && from.column_count() > 1    ? "; a grid reduces gradients within its columns"
         : from.column_count() > 1              ? "; only the first device of a grid's row sends"
                                                : ""));
  }
}

}  // namespace hetplan::tasks
