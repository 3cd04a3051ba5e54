// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/tick_table.hpp>

#include <algorithm>
#include <cmath>

#include <hetplan/core/at_most.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

HETPLAN_INLINE double common_unit(const std::vector<double>& times) {
  double longest = 0;
  for (const double t : times) longest = std::max(longest, t);
  if (longest <= 0) return 1;
  const double nothing = 1e-11 * longest;
  double unit = longest;
  for (double t : times) {
    while (t > nothing) {
      double rest = unit - t * std::floor(unit / t);
      if (rest > t - nothing) rest = 0;  // a multiple but for rounding
      unit = t;
      t = rest;
    }
  }
  // Euclid's last step is the least exact: the longest time, cut into as many parts, is the unit to the last digit.
  unit = longest / std::round(longest / unit);
  const bool common = longest / unit < 0x1p24 && std::all_of(times.begin(), times.end(), [&](double t) {
                        return std::abs(t - unit * std::round(t / unit)) <= nothing;
                      });
  return common ? unit : longest * 0x1p-36;
}

HETPLAN_INLINE tick_table::tick_table(const pipeline_times& p) : m(static_cast<std::size_t>(p.microbatches)) {
  std::vector<double> times;
  for (const phase_times& s : p.stages) times.insert(times.end(), {s.forward, s.backward_input, s.backward_weight});
  for (const stage_delay& e : p.edges) times.insert(times.end(), {e.forward, e.backward});
  unit = common_unit(times);
  const auto whole = [&](double t) { return static_cast<ticks>(std::llround(t / unit)); };
  devices.resize(p.devices());
  std::vector<double> recomputed(devices.size(), 0.0);
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    const phase_times& s = p.stages[i];
    stages.push_back({.device = s.device,
                      .length = {whole(s.forward), whole(s.backward_input), whole(s.backward_weight)},
                      .ahead = {},
                      .behind = {},
                      .activation = s.activation,
                      .kept = s.kept_for_weights});
    device& d = devices[s.device];
    d.stages.push_back(i);
    d.work += stages[i].length[0] + stages[i].length[1] + stages[i].length[2];
    recomputed[s.device] = std::max(recomputed[s.device], s.recomputed);
  }
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const double limit = p.memory_of(d);
    devices[d].memory = limit + relative_tolerance * limit - recomputed[d];
  }
  for (const stage_delay& e : p.edges) {
    stages[e.to].ahead.push_back({e.from, whole(e.forward)});
    stages[e.from].behind.push_back({e.to, whole(e.backward)});
  }
  std::vector<ticks> begin(stages.size(), 0);
  std::vector<bool> known(stages.size(), true);  // nothing else can run on a device before this stage's first forward
  std::vector<std::vector<bool>> from(stages.size(), std::vector<bool>(stages.size(), false));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    from[i][i] = true;
    for (const edge& a : stages[i].ahead) {
      begin[i] = std::max(begin[i], begin[a.stage] + stages[a.stage].length[0] + a.delay);
      if (!known[a.stage]) known[i] = false;
      for (std::size_t j = 0; j < stages.size(); ++j) from[i][j] = from[i][j] || from[a.stage][j];
    }
    if (devices[stages[i].device].stages.front() != i) known[i] = false;
  }
  for (std::size_t i = stages.size(); i-- > 0;) {
    stages[i].window = std::max(stages[i].window, stages[i].length[0]);
    for (const edge& a : stages[i].ahead) {
      const stage& before = stages[a.stage];
      const auto back = std::find_if(before.behind.begin(), before.behind.end(), [&](const edge& e) { return e.stage == i; });
      const ticks around = before.length[0] + a.delay + stages[i].window + stages[i].length[1] + back->delay;
      stages[a.stage].window = std::max(before.window, around);
    }
  }
  for (const stage& s : stages) chain = chain && s.ahead.size() <= 1 && s.behind.size() <= 1;
  before_last_gradient.resize(stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const std::size_t j : devices[stages[i].device].stages) {
      if (from[i][j] || from[j][i]) before_last_gradient[i].emplace_back(j, from[j][i]);
    }
  }
  for (device& d : devices) {
    if (d.stages.empty()) continue;
    d.first_start = never;
    for (const std::size_t i : d.stages) {
      d.first_start = std::min(d.first_start, begin[i]);
      if (!from[i][d.stages.front()]) starts_known = false;
    }
    if (!known[d.stages.front()]) starts_known = false;
  }
}

}  // namespace HETPLAN_NAMESPACE::schedule::detail
