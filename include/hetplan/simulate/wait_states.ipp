// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/wait_states.hpp>

#include <algorithm>
#include <iterator>

#include <hetplan/core/sorting.hpp>

namespace hetplan {

HETPLAN_INLINE wait_states::wait_states(const tasks::task_graph& g, const trace& t)
    : graph_(g), trace_(t), input_end_s_(g.size(), 0), last_input_(g.size(), no_node), before_(g.computes.size(), no_node),
      sent_by_(g.device_order.size()), received_by_(g.device_order.size()), carried_by_(resources_of(g)) {
  read_inputs();
  read_ports();
  for (const auto& order : g.device_order) {
    for (std::size_t i = 1; i < order.size(); ++i) before_[order[i]] = order[i - 1];
  }
}

HETPLAN_INLINE const interval& wait_states::when(tasks::node_id n) const {
  return graph_.is_compute(n) ? trace_.computes[n] : trace_.transfers[n - graph_.computes.size()];
}

HETPLAN_INLINE double wait_states::device_free_s(tasks::node_id compute) const {
  return before_[compute] == no_node ? 0 : trace_.computes[before_[compute]].end_s;
}

HETPLAN_INLINE wait wait_states::of(tasks::node_id n) const {
  if (graph_.is_transfer(n) && graph_.transfer_at(n).blocks()) return of(graph_.transfer_at(n).carrier);
  wait w;
  if (last_input_[n] != no_node) w = {wait_reason::input, last_input_[n], input_end_s_[n]};
  if (graph_.is_compute(n)) {
    const double free_s = device_free_s(n);
    const bool later = free_s > w.since_s || (free_s == w.since_s && before_[n] < w.because);
    return before_[n] != no_node && later ? wait{wait_reason::device, before_[n], free_s} : w;
  }
  const double start_s = when(n).start_s, release_s = graph_.transfer_at(n).release_s;
  const double ready_s = std::max(w.since_s, release_s), instant_s = same_time * trace_.latency.value();
  if (start_s > ready_s + instant_s) {
    const bool ports = trace_.access == route_access::exclusive_ports, links = trace_.access == route_access::exclusive_links;
    const tasks::node_id holder = ports ? port_holder(n) : links ? link_holder(n) : no_node;
    if (holder != no_node) return {ports ? wait_reason::ports : wait_reason::links, holder, when(holder).end_s};
  }
  if (release_s > w.since_s + instant_s) w.why = wait_reason::release;
  return w;
}

HETPLAN_INLINE void wait_states::read_inputs() {
  std::vector<std::uint32_t> waiting = graph_.predecessors;
  std::vector<tasks::node_id> open;
  for (tasks::node_id n = 0; n < graph_.size(); ++n) {
    if (waiting[n] == 0) open.push_back(n);
  }
  while (!open.empty()) {
    const tasks::node_id n = open.back();
    open.pop_back();
    const bool barrier = !graph_.is_compute(n) && !graph_.is_transfer(n);
    const double end_s = barrier ? input_end_s_[n] : when(n).end_s;
    const bool carried = graph_.is_transfer(n) && graph_.transfer_at(n).blocks();
    const tasks::node_id who = barrier ? last_input_[n] : carried ? graph_.transfer_at(n).carrier : n;
    for (const tasks::node_id m : graph_.successors_of(n)) {
      if (who != no_node && (last_input_[m] == no_node || end_s > input_end_s_[m] || (end_s == input_end_s_[m] && who < last_input_[m]))) {
        input_end_s_[m] = end_s;
        last_input_[m] = who;
      }
      if (--waiting[m] == 0) open.push_back(m);
    }
  }
}

HETPLAN_INLINE std::size_t wait_states::resources_of(const tasks::task_graph& g) {
  std::size_t count = 0;
  for (const route& r : g.routes) {
    for (const resource_use& u : r.via) count = std::max(count, u.resource.index() + 1);
  }
  return count;
}

HETPLAN_INLINE void wait_states::read_ports() {
  const auto later = [&](std::size_t a, std::size_t b) {
    const double end_a = trace_.transfers[a].end_s, end_b = trace_.transfers[b].end_s;
    return end_a < end_b || (end_a == end_b && a > b);
  };
  for (const std::size_t i : sorted_indices(graph_.transfers.size(), later)) {
    const auto t = static_cast<std::uint32_t>(i);
    if (trace_.transfers[t].end_s <= 0 || graph_.transfers[t].blocks()) continue;  // no end in a stopped run; or part of a task
    sent_by_[graph_.transfers[t].from.index()].push_back(t);
    received_by_[graph_.transfers[t].to.index()].push_back(t);
    for (const resource_use& u : graph_.routes[graph_.transfers[t].route].via) carried_by_[u.resource.index()].push_back(t);
  }
}

HETPLAN_INLINE tasks::node_id wait_states::port_holder(tasks::node_id n) const {
  const tasks::transfer& mine = graph_.transfer_at(n);
  return last_of({&sent_by_[mine.from.index()], &received_by_[mine.to.index()]}, when(n).start_s);
}

HETPLAN_INLINE tasks::node_id wait_states::link_holder(tasks::node_id n) const {
  std::vector<const std::vector<std::uint32_t>*> links;
  for (const resource_use& u : graph_.routes[graph_.transfer_at(n).route].via) links.push_back(&carried_by_[u.resource.index()]);
  return last_of(links, when(n).start_s);
}

HETPLAN_INLINE tasks::node_id wait_states::last_of(const std::vector<const std::vector<std::uint32_t>*>& held, double start_s) const {
  tasks::node_id last = no_node;
  for (const auto* port : held) {
    auto t =
        std::upper_bound(port->begin(), port->end(), start_s, [&](double at, std::uint32_t x) { return at < trace_.transfers[x].end_s; });
    while (t != port->begin() && trace_.transfers[*std::prev(t)].start_s >= start_s) --t;  // transfers of no duration
    if (t == port->begin()) continue;
    const tasks::node_id found = graph_.node_of_transfer(*std::prev(t));
    const bool later = last == no_node || when(found).end_s > when(last).end_s || (when(found).end_s == when(last).end_s && found < last);
    if (later) last = found;
  }
  return last != no_node && start_s - when(last).end_s <= same_time * trace_.latency.value() ? last : no_node;
}

HETPLAN_INLINE std::vector<critical_link> critical_chain(const tasks::task_graph& g, const trace& t, const network& net) {
  const wait_states waited(g, t);
  std::vector<critical_link> chain;
  tasks::node_id n = no_node;
  for (tasks::node_id i = 0; i < g.computes.size() + g.transfers.size(); ++i) {
    if (n == no_node || waited.when(i).end_s > waited.when(n).end_s) n = i;
  }
  double end_s = t.latency.value();
  while (n != no_node) {
    const wait w = waited.of(n);
    critical_link link{
        .node = n, .start_s = w.because == no_node ? 0 : std::min(w.since_s, end_s), .end_s = end_s, .why = w.why, .because = w.because};
    double left_s = link.duration_s();
    const auto take = [&](double wanted_s) {
      const double taken_s = std::clamp(wanted_s, 0.0, left_s);
      left_s -= taken_s;
      return taken_s;
    };
    link.held_s = take(waited.when(n).start_s - link.start_s);
    if (g.is_compute(n)) {
      link.own_s = take(g.computes[n].duration_s);
    } else {
      const tasks::transfer& x = g.transfer_at(n);
      double peak_s = 0;
      for (const resource_use& u : g.routes[x.route].via) peak_s = std::max(peak_s, tasks::work_s(x, u, net));
      link.latency_s = take(x.latency_s);
      link.own_s = take(peak_s);
    }
    if (left_s <= 1e-12 * t.latency.value()) link.own_s += left_s;
    else link.lost_s = left_s;  // rounding is no loss
    chain.push_back(link);
    end_s = link.start_s;
    n = w.because;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace hetplan
