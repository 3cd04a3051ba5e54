// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/estimate/estimate.hpp>

#include <hetplan/estimate/step_law.hpp>

namespace hetplan {

HETPLAN_INLINE run_times dominant_step::times(const pipeline_steps& steps) const { return any_step_law(steps.mode).times(steps); }

HETPLAN_INLINE run_times critical_path::times(const pipeline_steps& steps) const {
  if (steps.mode != mode::training || !steps.connected()) return dominant_step{}.times(steps);
  const extent ways = longest_ways(steps);
  double worst = 0;
  for (std::size_t v = 0; v < steps.stages.size(); ++v) {
    worst = std::max(worst, chain_s(way_through(steps, ways, v), steps.microbatches));
  }
  return {seconds(worst)};
}

HETPLAN_INLINE critical_path::extent critical_path::longest_ways(const pipeline_steps& steps) {
  const std::size_t n = steps.stages.size(), none = steps.links.size();
  extent way{std::vector<std::size_t>(n, none), std::vector<std::size_t>(n, none)};
  std::vector<double> to(n, 0), from(n, 0);  // lengths without stage v itself
  for (std::size_t v = 0; v < n; ++v) {
    for (const std::size_t l : steps.stages[v].in) {
      const auto& link = steps.links[l];
      const double length = to[link.from] + steps.stages[link.from].total_s + link.total_s;
      if (way.before[v] != none && length <= to[v]) continue;
      to[v] = length;
      way.before[v] = l;
    }
  }
  for (std::size_t v = n; v-- > 0;) {
    for (const std::size_t l : steps.stages[v].out) {
      const auto& link = steps.links[l];
      const double length = link.total_s + steps.stages[link.to].total_s + from[link.to];
      if (way.after[v] != none && length <= from[v]) continue;
      from[v] = length;
      way.after[v] = l;
    }
  }
  return way;
}

HETPLAN_INLINE std::vector<critical_path::step> critical_path::way_through(const pipeline_steps& steps, const extent& ways, std::size_t v) {
  const std::size_t none = steps.links.size();
  std::vector<std::size_t> links;
  for (std::size_t l = ways.before[v]; l != none; l = ways.before[steps.links[l].from]) links.insert(links.begin(), l);
  for (std::size_t l = ways.after[v]; l != none; l = ways.after[steps.links[l].to]) links.push_back(l);

  const double M = steps.microbatches;
  const auto stage_step = [&](std::size_t s) {
    const auto& x = steps.stages[s];
    return step{x.forward_s, x.backward_s, x.forward_s, x.backward_s, x.total_s, x.total_s, M * x.total_s, x.collective_s, x.in_flight};
  };
  std::vector<step> way{stage_step(links.empty() ? v : steps.links[links.front()].from)};
  for (const std::size_t l : links) {
    const auto& x = steps.links[l];
    const double period = M > 1 ? (x.own_s - x.total_s) / (M - 1) : 0;
    const int in_flight = std::min(steps.stages[x.to].in_flight + 1, steps.stages[x.from].in_flight);
    way.push_back({x.forward_s, x.backward_s, x.forward_wire_s, x.backward_wire_s, x.total_s, period, x.own_s, 0, in_flight});
    way.push_back(stage_step(x.to));
  }
  return way;
}

HETPLAN_INLINE double critical_path::chain_s(const std::vector<step>& way, int microbatches) {
  std::size_t d = 0;
  double reached = 0, latest = -1;
  for (std::size_t i = 0; i < way.size(); ++i) {
    if (reached + way[i].own_s > latest) {
      latest = reached + way[i].own_s;
      d = i;
    }
    reached += way[i].total_s;
  }
  double worst_end = 0;
  for (std::size_t s = 0; s < way.size(); ++s) worst_end = std::max(worst_end, end_s(way, d, s) + way[s].collective_s);
  const double around_d = start_s(way, d) + (microbatches - way[d].in_flight) * way[d].period_s + worst_end;
  return std::max(around_d, round_trips_s(way, microbatches));
}

HETPLAN_INLINE double critical_path::round_trips_s(const std::vector<step>& way, int microbatches) {
  double worst = 0, trip = 0, before = 0;
  for (const step& x : way) before += x.total_s;
  for (std::size_t i = way.size(); i-- > 0;) {
    const bool link = i % 2 == 1;
    before -= way[i].total_s;
    trip = link && way[i].backward_s == 0 ? 0 : trip + way[i].total_s;  // no round trip over a link without gradients
    const int rounds = (microbatches + way[i].in_flight - 1) / way[i].in_flight;
    if (!link) worst = std::max(worst, before + rounds * trip);
  }
  return worst;
}

HETPLAN_INLINE double critical_path::start_s(const std::vector<step>& way, std::size_t d) {
  double worst = 0, forward_s = 0, slowest = 0, backward_s = 0;
  for (std::size_t p = 0; p < way.size(); ++p) {
    forward_s += way[p].forward_s;
    slowest = std::max(slowest, way[p].next_forward_s);
    if (p > d) backward_s += way[p].backward_s;
    if (p >= d) worst = std::max(worst, forward_s + (way[p].in_flight - 1) * slowest + backward_s);
  }
  return worst;
}

HETPLAN_INLINE double critical_path::end_s(const std::vector<step>& way, std::size_t d, std::size_t s) {
  double worst = 0, backward_s = 0, slowest = 0, forward_s = 0;
  for (std::size_t p = 0; p < way.size(); ++p) {
    if (p >= s) backward_s += way[p].backward_s;
    slowest = std::max(slowest, way[p].next_backward_s);
    if (p > d) forward_s += way[p].forward_s;
    if (p >= std::max(s, d)) worst = std::max(worst, backward_s + (way[p].in_flight - 1) * slowest + forward_s);
  }
  return worst;
}

}  // namespace hetplan

namespace hetplan::detail {

HETPLAN_INLINE stage_traffic traffic_per_sample(const pipeline_steps& steps, std::size_t s) {
  stage_traffic t;
  for (const std::size_t l : steps.stages[s].out) {
    t.sent += steps.links[l].forward_cut;
    t.received += steps.links[l].backward_cut;
  }
  for (const std::size_t l : steps.stages[s].in) {
    t.received += steps.links[l].forward_cut;
    t.sent += steps.links[l].backward_cut;
  }
  return t;
}

}  // namespace hetplan::detail
