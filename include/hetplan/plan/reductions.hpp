// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who sums up which gradients together at the end of an iteration.

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <hetplan/plan/stage_cost.hpp>

namespace hetplan {

/// One sum of gradients: over the devices of a stage, or over the first devices of the stages that share tensors.
struct reduction {
  /// A device that takes part, and the stage that it stands for.
  struct member {
    device_id device;
    stage_id stage;
  };
  std::vector<member> members;    ///< in ring order, at least two
  std::vector<stage_id> holders;  ///< the stages that must be done before and that wait for it
  std::vector<layer_id> layers;   ///< a layer of each tensor, as the first holder has it; the others share its weight group or itself
  double bytes = 0;               ///< of those tensors

  [[nodiscard]] bool is_across_stages() const { return holders.size() > 1; }
};

/// The reductions of an iteration: each replicated stage's own in stage order, then those across stages.
///
/// A stage with several devices and trainable bytes reduces them. Each set of stages that share tensors (a weight group, or
/// the same layers in several pipelines) reduces those among its distinct first devices; with one such device there is nothing to do.
///
/// Complexity  O(layers of all stages, log).
/// Source      semantics, section 6.
[[nodiscard]] inline std::vector<reduction> reductions_of(const plan& p, const planning_graph& model) {
  std::vector<reduction> all;
  struct holding {
    tensor_key tensor;
    stage_id holder;
    layer_id layer;
    double bytes = 0;
  };
  std::vector<holding> holdings;
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stage& st = p.stages[s];
    reduction own{.members = {}, .holders = {stage_id(s)}, .layers = {}};
    for_each_tensor(model, st, [&](const layer& l) {
      if (l.trainable_weight().value() <= 0) return;
      own.layers.push_back(l.id);
      own.bytes += l.trainable_weight().value();
      holdings.push_back({tensor_of(l), stage_id(s), l.id, l.weight.value()});
    });
    for (const assignment& a : st.devices) own.members.push_back({a.device, stage_id(s)});
    if (own.members.size() > 1 && own.bytes > 0) all.push_back(std::move(own));
  }
  std::ranges::stable_sort(holdings, {}, &holding::tensor);
  std::map<std::vector<stage_id>, reduction> shared;  // by the set of stages that hold them
  for (auto first = holdings.begin(); first != holdings.end();) {
    const auto last = std::find_if(first, holdings.end(), [&](const holding& h) { return h.tensor != first->tensor; });
    if (last - first > 1) {
      std::vector<stage_id> holders;
      for (auto h = first; h != last; ++h) holders.push_back(h->holder);
      reduction& r = shared[std::move(holders)];
      r.layers.push_back(first->layer);
      r.bytes += first->bytes;
    }
    first = last;
  }
  for (auto& [holders, r] : shared) {
    r.holders = holders;
    for (const stage_id s : holders) {
      const device_id first = p[s].devices.front().device;
      const auto same = [&](const reduction::member& m) { return m.device == first; };
      if (std::none_of(r.members.begin(), r.members.end(), same)) r.members.push_back({first, s});
    }
    if (r.members.size() > 1) all.push_back(std::move(r));
  }
  return all;
}

}  // namespace hetplan
