// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/graph_tails.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::partition {

HETPLAN_INLINE void graph_tails::add_traffic(std::size_t first, std::size_t last, std::span<const tail> ports) {
  traffic_.assign(ports.size(), {});
  const auto& all = cuts_.crossings(last);
  for (std::size_t i = 0; i < all.size() && all[i].from >= first;) {
    const std::size_t tensor = all[i].tensor;
    most_.clear();
    for (; i < all.size() && all[i].tensor == tensor; ++i) {
      const std::size_t to = ports[all[i].port].twin;
      auto it = std::find_if(most_.begin(), most_.end(), [&](const crossing& x) { return x.port == to; });
      if (it == most_.end()) it = most_.insert(it, {.port = to});
      it->forward_bytes = std::max(it->forward_bytes, all[i].forward_bytes);
      it->gradient_bytes = std::max(it->gradient_bytes, all[i].gradient_bytes);
    }
    for (const crossing& x : most_) {
      traffic_to& f = traffic_[x.port];
      f = {f.forward_bytes + x.forward_bytes, f.gradient_bytes + x.gradient_bytes, true};
    }
  }
}

HETPLAN_INLINE std::span<const tail> graph_tails::extend(std::size_t first, std::size_t last, std::span<const tail> ports, tail mine) {
  const auto &before = cuts_.ports(last), &after = cuts_.ports(first);
  mine.twin = new_stage;
  tails_.clear();
  for (std::size_t i = 0, j = 0; i < after.size(); ++i) {
    tail t = mine;
    if (after[i] >= last) {
      while (before[j] != after[i]) ++j;
      t = ports[j];
      t.twin += old_stage;
    }
    tails_.push_back(t);
  }
  for (std::size_t i = 0; i < tails_.size(); ++i) {  // number the twins by the new ports
    if (tails_[i].twin < new_stage) continue;
    const std::uint32_t stage = tails_[i].twin;
    for (std::size_t j = i; j < tails_.size(); ++j) {
      if (tails_[j].twin == stage) tails_[j].twin = static_cast<std::uint32_t>(i);
    }
  }
  return tails_;
}

}  // namespace HETPLAN_NAMESPACE::partition
