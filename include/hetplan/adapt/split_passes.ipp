// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/split_passes.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <hetplan/plan/stage_graph.hpp>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE int most_halvings(const stage& s, int size, long long samples) {
  const auto whole = [&](long long n) {
    return std::all_of(s.devices.begin(), s.devices.end(), [&](const assignment& a) { return a.samples * n % size == 0; });
  };
  int times = 0;
  for (; samples % 2 == 0 && whole(samples / 2); samples /= 2) ++times;
  return times;
}

HETPLAN_INLINE plan split_passes(plan p, const planning_graph& model, std::span<const pass_halvings> by_stage) {
  const stage_graph g = make_stage_graph(p, model);
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    stage& s = p.stages[i];
    const pass_halvings& how = by_stage[i];
    if (how == pass_halvings{}) continue;
    const int size = p.size_of(s);
    const auto boundaries = [&](phase what, const auto& times) {
      std::vector<long long> cuts{0};
      for (int k = 0; k < g.nodes[i].passes(what); ++k) {
        const auto [first, last] = g.nodes[i].samples(what, k);
        const long long parts = 1LL << std::min(times(first), most_halvings(s, size, last - first));
        for (long long n = 1; n <= parts; ++n) cuts.push_back(first + (last - first) / parts * n);
      }
      return cuts;
    };
    const bool training = p.workload.mode == mode::training;
    pass_cuts cuts;
    if (training && s.rows() > 1) {
      if (s.cuts.forward != s.cuts.backward) continue;
      const int both = std::max(how.forward, how.backward);
      cuts.forward = cuts.backward = boundaries(phase::forward, [&](long long first) { return both + (how.fill && first == 0 ? 1 : 0); });
    } else {
      cuts.forward = boundaries(phase::forward, [&](long long first) { return how.forward + (how.fill && first == 0 ? 1 : 0); });
      if (training) {
        cuts.backward =
            boundaries(phase::backward_input, [&](long long first) { return how.backward + (first >= how.drain_from ? 1 : 0); });
      }
    }
    s.cuts = std::move(cuts);
  }
  return p;
}

}  // namespace HETPLAN_NAMESPACE::adapt
