// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/least_overflow.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <hetplan/partition/hand_out.hpp>
#include <hetplan/plan/orders.hpp>

namespace hetplan::partition {

HETPLAN_INLINE std::optional<plan> least_overflow(const search_tables& t, const device_space& space, const plan& blank) {
  require_device_space(space, t.cluster, "least_overflow");
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::size_t n = t.sequence.size();
  const int in_flight = microbatches_in_flight(blank, 1);

  struct filling : sample_taker {
    std::size_t of_class;
  };
  /// Largest fullness of a group's devices, and their samples, class by class.
  const auto fill = [&](std::size_t first, std::size_t last, std::size_t group, std::vector<filling>& classes) {
    const double fixed = t.table.state_bytes(first, last);
    const double each = in_flight * t.table.activation_bytes(first, last) + blank.microbatches * t.table.cache_bytes(first, last);
    const auto fullness = [&](const filling& f, int samples) {
      const double full = (fixed + samples * each) / t.cluster[space.classes[f.of_class].front()].usable_memory().value();
      return std::min(std::numeric_limits<double>::max(), full);  // infinite is what there is no choice for
    };
    classes.clear();
    int left = blank.microbatch_size;
    for (const auto& p : space.groups[group]) {  // one sample to each device
      classes.push_back({{.devices = p.devices, .cap = blank.microbatch_size, .taken = p.devices}, p.of_class});
      left -= p.devices;
    }
    if (left < 0 || !hand_out(left, classes, fullness)) return inf;
    double fullest = 0;
    for (const filling& f : classes) fullest = std::max(fullest, fullness(f, f.largest_share()));
    return fullest;
  };

  struct choice {
    double fullest = inf;
    std::size_t end = 0, state = 0, group = 0;
  };
  // best[b][s]: blocks from b on with the devices that state s has taken; what lies behind is (end, state).
  std::vector<std::vector<choice>> best(n + 1, std::vector<choice>(space.states()));
  best[n][0].fullest = 0;
  std::vector<filling> classes;
  for (std::size_t end = n; end > 0; --end) {
    for (std::size_t s = 0; s < space.states(); ++s) {
      if (best[end][s].fullest == inf) continue;
      for (const device_space::move& m : space.moves[s]) {
        for (std::size_t begin = end; begin-- > 0;) {
          if (!t.sequence.is_stage(begin, end)) continue;
          const double fullest = std::max(best[end][s].fullest, fill(begin, end, m.group, classes));
          if (fullest < best[begin][m.to].fullest) best[begin][m.to] = {fullest, end, s, m.group};
        }
      }
    }
  }
  std::size_t state = 0;
  for (std::size_t s = 1; s < space.states(); ++s) {
    if (best[0][s].fullest < best[0][state].fullest) state = s;
  }
  if (best[0][state].fullest == inf) return std::nullopt;
  plan nearest = blank;
  std::vector<std::size_t> used(space.classes.size(), 0);
  for (std::size_t begin = 0; begin < n;) {
    const choice& c = best[begin][state];
    stage s{.name = "s" + std::to_string(nearest.stages.size()), .layers = t.layers_of(begin, c.end)};
    fill(begin, c.end, c.group, classes);
    for (const filling& f : classes) {
      for (int i = 0; i < f.devices; ++i) s.devices.push_back({space.classes[f.of_class][used[f.of_class]++], f.share(i)});
    }
    nearest.stages.push_back(std::move(s));
    begin = c.end;
    state = c.state;
  }
  set_warmup(nearest, t.model, warmup_rule::one);
  return nearest;
}

}  // namespace hetplan::partition
