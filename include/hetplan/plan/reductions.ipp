// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/reductions.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <hetplan/plan/stage_graph.hpp>

namespace hetplan {

HETPLAN_INLINE std::vector<reduction> reductions_of(const plan& p, const planning_graph& model) {
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
    const bool scatters = st.devices.size() > 1 && (st.shard == sharding::zero2 || st.shard == sharding::fsdp);
    reduction own{.members = {}, .holders = {stage_id(s)}, .layers = {}};
    for_each_tensor(model, st, [&](const layer& l) {
      if (l.trainable_weight().value() <= 0) return;
      own.layers.push_back(l.id);
      own.bytes += l.trainable_weight().value();
      // A tensor outside weight groups has one holder in each pipeline.
      if (l.weight_group >= 0 || p.pipeline_count() > 1) holdings.push_back({tensor_of(l), stage_id(s), l.id, l.weight.value()});
    });
    if (scatters) continue;
    for (std::size_t c = 0; c < st.column_count(); ++c) {
      reduction of_column = own;
      for (std::size_t row = 0; row < st.rows(); ++row) {
        of_column.members.push_back({st.devices[row * st.column_count() + c].device, stage_id(s)});
      }
      if (st.column_count() > 1) of_column.bytes = trainable_bytes(model, st, c);
      if (of_column.members.size() > 1 && of_column.bytes > 0) all.push_back(std::move(of_column));
    }
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
