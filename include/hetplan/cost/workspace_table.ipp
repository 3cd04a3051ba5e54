// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/workspace_table.hpp>

#include <hetplan/core/sorting.hpp>

namespace hetplan {

namespace detail {

/// Drops what is not largest for any number of samples from 1 on.
HETPLAN_INLINE void keep_largest(std::vector<temporary_bytes>& all) {
  // Least slope first; of those with the same, the smallest first. Each later one overtakes the earlier ones at some time.
  sort_by(all, [](const temporary_bytes& t) { return std::pair(t.each, t.fixed); });
  std::vector<temporary_bytes> kept;
  const auto overtakes_at = [](const temporary_bytes& low, const temporary_bytes& steep) {
    return (low.fixed - steep.fixed) / (steep.each - low.each);
  };
  for (const temporary_bytes& t : all) {
    if (t.each <= 0 && t.fixed <= 0) continue;
    while (!kept.empty()) {
      const temporary_bytes& last = kept.back();
      const bool hidden = last.each == t.each || t.of(1) >= last.of(1) ||
                          (kept.size() > 1 && overtakes_at(last, t) <= overtakes_at(kept[kept.size() - 2], last));
      if (!hidden) break;
      kept.pop_back();
    }
    kept.push_back(t);
  }
  all = std::move(kept);
}

}  // namespace detail

HETPLAN_INLINE temporary_bytes temporary_bytes_of(const planning_graph& model, const layer& l, const workload& w) {
  if (w.mode == mode::training) return {l.workspace.value() * l.tokens_per_sample, l.scratch.value()};
  int tokens = l.tokens_per_sample;
  if (w.mode == mode::generation) {
    if (l.runs_per_request()) tokens = w.prompt_tokens(model.tokens_per_sample()) > 0 ? 1 : 0;
    else tokens = l.sequence.last_token ? 1 : w.largest_pass(l.tokens_per_sample);
  }
  return {l.forward_workspace.value() * tokens, 0};
}

HETPLAN_INLINE workspace_table::workspace_table(const planning_graph& model, const layer_sequence& sequence, const workload& w) {
  const std::size_t blocks = sequence.size();
  std::vector<std::vector<temporary_bytes>> lists(blocks);
  shared_.resize(model.weight_groups().size());
  bool any = false;
  for (std::size_t b = 0; b < blocks; ++b) {
    for (const layer_id id : sequence.blocks[b]) {
      const layer& l = model[id];
      lists[b].push_back(temporary_bytes_of(model, l, w));
      if (l.weight_group >= 0 && w.mode == mode::training)
        shared_[static_cast<std::size_t>(l.weight_group)].emplace_back(b, l.scratch.value());
    }
    detail::keep_largest(lists[b]);
    any = any || !lists[b].empty();
  }
  std::erase_if(shared_, [](const auto& holders) { return holders.size() < 2; });
  if (!any) return;
  levels_.push_back(std::move(lists));
  for (std::size_t width = 2; width <= blocks; width *= 2) {
    std::vector<std::vector<temporary_bytes>> wider(blocks - width + 1);
    for (std::size_t b = 0; b + width <= blocks; ++b) {
      wider[b] = levels_.back()[b];
      const auto& behind = levels_.back()[b + width / 2];
      wider[b].insert(wider[b].end(), behind.begin(), behind.end());
      detail::keep_largest(wider[b]);
    }
    levels_.push_back(std::move(wider));
  }
}

}  // namespace hetplan
