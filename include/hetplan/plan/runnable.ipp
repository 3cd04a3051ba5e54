// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/runnable.hpp>

#include <utility>
#include <vector>

#include <hetplan/plan/orders.hpp>

namespace HETPLAN_NAMESPACE {

HETPLAN_INLINE std::optional<device_id> first_blocked_device(const plan& p, const stage_graph& g, std::size_t devices) {
  const auto orders = device_orders(p, g, devices);
  // Devices of a stage finish separately, and a consumer waits for those whose sample interval overlaps its own.
  struct progress {
    std::vector<std::vector<char>> forward, backward;  // [device position][microbatch]
  };
  std::vector<progress> done(p.stages.size());
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const std::vector<char> none(static_cast<std::size_t>(g.nodes[s].microbatches), 0);
    done[s].forward.assign(p.stages[s].devices.size(), none);
    done[s].backward = done[s].forward;
  }
  const auto position_of = [&](stage_id s, std::size_t d) {
    std::size_t i = 0;
    while (p[s].devices[i].device.index() != d) ++i;
    return i;
  };
  const auto interval = [&](stage_id s, std::size_t position, long long m) {
    long long begin = m * g[s].microbatch_size;
    for (std::size_t i = 0; i < position; ++i) begin += p[s].devices[i].samples;
    return std::pair(begin, begin + p[s].devices[position].samples);
  };
  const auto covered = [&](stage_id producer, const std::vector<std::vector<char>>& finished, std::pair<long long, long long> need) {
    const long long size = g[producer].microbatch_size;
    for (long long m = need.first / size; m * size < need.second; ++m) {
      for (std::size_t i = 0; i < finished.size(); ++i) {
        const auto have = interval(producer, i, m);
        if (have.first < need.second && need.first < have.second && !finished[i][static_cast<std::size_t>(m)]) return false;
      }
    }
    return true;
  };
  const auto ready = [&](const order_entry& e, std::size_t position) {
    const auto need = interval(e.stage, position, e.microbatch);
    if (e.what == phase::forward) {
      for (const std::size_t in : g[e.stage].in) {
        if (!covered(g.edges[in].from, done[g.edges[in].from.index()].forward, need)) return false;
      }
    } else if (e.what == phase::backward_input) {
      for (const std::size_t out : g[e.stage].out) {
        if (g.edges[out].backward_cut.value() == 0) continue;
        if (!covered(g.edges[out].to, done[g.edges[out].to.index()].backward, need)) return false;
      }
    }
    return true;
  };

  std::vector<std::size_t> next(devices, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < devices; ++d) {
      while (next[d] < orders[d].size()) {
        const order_entry& e = orders[d][next[d]];
        const std::size_t position = position_of(e.stage, d);
        if (!ready(e, position)) break;
        const auto m = static_cast<std::size_t>(e.microbatch);
        if (e.what == phase::forward) done[e.stage.index()].forward[position][m] = 1;
        if (e.what == phase::backward_input) done[e.stage.index()].backward[position][m] = 1;
        ++next[d];
        moved = true;
      }
    }
  }
  for (std::size_t d = 0; d < devices; ++d) {
    if (next[d] < orders[d].size()) return device_id(d);
  }
  return std::nullopt;
}

}  // namespace HETPLAN_NAMESPACE
