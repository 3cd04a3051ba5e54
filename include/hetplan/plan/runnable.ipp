// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/runnable.hpp>

#include <utility>
#include <vector>

#include <hetplan/plan/orders.hpp>

namespace hetplan {

HETPLAN_INLINE std::optional<device_id> first_blocked_device(const plan& p, const stage_graph& g, std::size_t devices) {
  const auto orders = device_orders(p, g, devices);
  // Devices of a stage finish separately, and a consumer waits for those whose sample interval overlaps its own.
  struct progress {
    std::vector<std::vector<char>> forward, backward;  // [device position][microbatch]
  };
  std::vector<progress> done(p.stages.size());
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const auto none = [&](phase what) {
      return std::vector<std::vector<char>>(p.stages[s].devices.size(),
                                            std::vector<char>(static_cast<std::size_t>(g.nodes[s].passes(what)), 0));
    };
    done[s] = {none(phase::forward), none(phase::backward_input)};
  }
  const auto position_of = [&](stage_id s, std::size_t d) {
    std::size_t i = 0;
    while (p[s].devices[i].device.index() != d) ++i;
    return i;
  };
  const auto interval = [&](stage_id s, std::size_t position, phase what, int m) {
    const auto [begin, end] = g[s].samples(what, m);
    long long offset = 0;
    for (std::size_t row = 0; row < p[s].row_of(position); ++row) offset += p[s].row(row).samples;
    const long long first = begin + offset * (end - begin) / g[s].microbatch_size;
    return std::pair(first, first + p[s].devices[position].samples * (end - begin) / g[s].microbatch_size);
  };
  const auto covered = [&](stage_id producer, phase what, std::pair<long long, long long> need) {
    const auto& finished = what == phase::forward ? done[producer.index()].forward : done[producer.index()].backward;
    const stage_graph::node& node = g[producer];
    for (int m = node.pass_of(what, need.first); m < node.passes(what) && node.samples(what, m).first < need.second; ++m) {
      for (std::size_t i = 0; i < finished.size(); ++i) {
        const auto have = interval(producer, i, what, m);
        if (have.first < need.second && need.first < have.second && !finished[i][static_cast<std::size_t>(m)]) return false;
      }
    }
    return true;
  };
  const auto ready = [&](const order_entry& e, std::size_t position) {
    const auto need = interval(e.stage, position, e.what == phase::forward ? phase::forward : phase::backward_input, e.microbatch);
    if (e.what == phase::forward) {
      for (const std::size_t in : g[e.stage].in) {
        if (!covered(g.edges[in].from, phase::forward, need)) return false;
      }
    } else if (e.what == phase::backward_input) {
      if (!covered(e.stage, phase::forward, need)) return false;  // in a grid those of its whole row
      for (const std::size_t out : g[e.stage].out) {
        if (g.edges[out].backward_cut.value() == 0) continue;
        if (!covered(g.edges[out].to, phase::backward_input, need)) return false;
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

}  // namespace hetplan
