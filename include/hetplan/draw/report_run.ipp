// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/report_run.hpp>

#include <algorithm>

#include <hetplan/draw/markup.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE report_run::report_run(const hetplan::plan& p, const hetplan::cluster& c, const hetplan::judgement& j, std::size_t max_bars)
    : plan(p), cluster(c), judgement(j), view(p, c, j), resources(view.resources()), chain(critical_chain(j.graph, j.trace, c.network())),
      waits_(j.graph, j.trace), critical_(j.graph.size(), 0), of_resource_(c.network().resources().size(), none) {
  std::size_t bars = j.graph.computes.size() + j.graph.transfers.size();
  for (const resource_view& r : resources) bars += r.pieces / 4;  // several pieces are one outline
  merged = bars > max_bars;
  if (!merged) resources = view.resources(sweep_detail::bands);
  for (const critical_link& l : chain) critical_[l.node] = 1;
  for (std::size_t i = 0; i < resources.size(); ++i) of_resource_[resources[i].resource.index()] = i;
  for (const tasks::transfer& t : j.graph.transfers) prioritised_ = prioritised_ || t.priority != 0;
}

HETPLAN_INLINE double report_run::lost_s(std::size_t t) const {
  const double drain_s = judgement.trace.transfers[t].end_s - view.drain_start_s(t);
  return std::max(0.0, drain_s * (1 - view.route_share(t)));
}

HETPLAN_INLINE std::pair<std::uint32_t, std::string> report_run::most_others(std::size_t t) const {
  const double from = view.drain_start_s(t), to = judgement.trace.transfers[t].end_s, instant = 1e-9 * latency_s();
  std::pair<std::uint32_t, std::string> most{0, {}};
  for (const resource_use& u : judgement.graph.routes[judgement.graph.transfers[t].route].via) {
    if (of_resource_[u.resource.index()] == none) continue;
    const auto& loads = resources[of_resource_[u.resource.index()]].loads;
    auto l = std::upper_bound(loads.begin(), loads.end(), from + instant, [](double at, const resource_load& x) { return at < x.end_s; });
    for (; l != loads.end() && l->start_s < to - instant; ++l) {
      if (l->active > most.first + 1) most = {l->active - 1, cluster.network()[u.resource].name};
    }
  }
  return most;
}

HETPLAN_INLINE std::string report_run::why(tasks::node_id n) const {
  const wait w = waits_.of(n);
  switch (w.why) {
    case wait_reason::start_of_run: return {};
    case wait_reason::input: return "after " + view.node_name(w.because);
    case wait_reason::device: return "its device was busy with " + view.compute_name(w.because);
    case wait_reason::release: return "released by the schedule at " + engineering(judgement.graph.transfer_at(n).release_s, "s");
    case wait_reason::ports: return "its port was held by " + view.node_name(w.because);
    case wait_reason::links: return "its route was held by " + view.node_name(w.because);
  }
  return {};
}

HETPLAN_INLINE std::string report_run::hover_lines(tasks::node_id n) const {
  std::string text;
  const auto& g = judgement.graph;
  if (g.is_transfer(n)) {
    const tasks::transfer& x = g.transfer_at(n);
    const std::size_t t = n - g.computes.size();
    std::string route;
    for (const resource_use& u : g.routes[x.route].via) {
      const resource& r = cluster.network()[u.resource];
      route += (route.empty() ? "route: " : ", ") + r.name + " (" + engineering(8 * r.capacity.value(), "bit/s") +
               (u.weight != 1 ? " × " + fixed(u.weight, 3) : "") + ")";
    }
    text += "\n" + (route.empty() ? "route: without limit" : route);
    if (prioritised_) text += "\npriority " + std::to_string(x.priority);
    if (const wait w = waits_.of(n); w.why == wait_reason::ports || w.why == wait_reason::links || w.why == wait_reason::release)
      text += "\n" + why(n);
    const double lost = lost_s(t);
    if (const auto [others, where] = most_others(t); others > 0 && lost > 1e-6 * latency_s()) {
      text += "\n" + engineering(lost, "s") + " lost: shared with " +
              (others == 1 ? "1 other" : "up to " + std::to_string(others) + " others") + " on " + where;
    }
  }
  if (critical(n)) text += "\non the critical path: " + (why(n).empty() ? "from the start" : why(n));
  return text;
}

}  // namespace hetplan::draw::detail
