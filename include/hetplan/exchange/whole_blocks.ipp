// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/whole_blocks.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <hetplan/exchange/runtime_layers.hpp>
#include <hetplan/exchange/runtime_stages.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE plan with_whole_blocks(const plan& p, const planning_graph& model, std::string_view runtime) {
  const auto [order, place] = detail::stages_in_a_row(p, model, runtime);
  if (p.schedule.kind == schedule_kind::explicit_orders) {
    detail::refuse_export(runtime, "cuts cannot move under explicit orders, which name the stages");
  }
  const runtime_layers parts = find_runtime_layers(model);
  std::vector<std::vector<layer_id>> layers(order.size());
  const auto give = [&](const std::vector<layer_id>& part, std::size_t k) { layers[k].insert(layers[k].end(), part.begin(), part.end()); };
  give(parts.embedding, 0);
  for (const auto& block : parts.blocks) {
    std::vector<double> share(order.size(), 0);
    const bool counted = std::any_of(block.begin(), block.end(), [&](layer_id l) { return model[l].forward_flops.value() > 0; });
    for (const layer_id l : block) share[place[l.index()]] += counted ? model[l].forward_flops.value() : 1;
    give(block, static_cast<std::size_t>(std::max_element(share.begin(), share.end()) - share.begin()));
  }
  give(parts.head, order.size() - 1);
  plan whole = p;
  whole.stages.clear();
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (layers[k].empty()) continue;
    whole.stages.push_back(p[order[k]]);
    whole.stages.back().layers = layers[k];
    std::sort(whole.stages.back().layers.begin(), whole.stages.back().layers.end());
  }
  if (whole.stages.size() != p.stages.size()) whole.schedule.warmup.clear();
  whole.schedule.transfers.clear();
  whole.predicted.reset();
  return whole;
}

}  // namespace hetplan::exchange
