// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/simulator.hpp>

namespace hetplan::detail {

HETPLAN_INLINE grant_queue::grant_queue(const tasks::task_graph& g, route_access access, std::size_t resources)
    : g_(&g), ports_(access == route_access::exclusive_ports), order_(g), line_of_transfer_(is_used(access) ? g.transfers.size() : 0, none),
      needed_by_(ports_ ? 2 * g.device_order.size() : resources), taken_(needed_by_.size(), 0) {}

HETPLAN_INLINE void grant_queue::add(std::uint32_t t) {
  const std::size_t l = line_of(t);
  lines_[l].waiting.push(t);
  wake(l);
}

HETPLAN_INLINE void grant_queue::release(std::uint32_t t) {
  for (const std::uint32_t n : lines_[line_of(t)].needs) {
    taken_[n] = 0;
    for (const std::size_t l : needed_by_[n]) wake(l);
  }
}

HETPLAN_INLINE void grant_queue::wake(std::size_t l) {
  if (lines_[l].is_awake || lines_[l].waiting.empty()) return;
  lines_[l].is_awake = true;
  awake_.push_back(l);
}

HETPLAN_INLINE std::vector<std::uint32_t> grant_queue::needs_of(const tasks::transfer& t) const {
  if (ports_) return {static_cast<std::uint32_t>(t.from.index()), static_cast<std::uint32_t>(g_->device_order.size() + t.to.index())};
  std::vector<std::uint32_t> needs;
  for (const resource_use& u : g_->routes[t.route].via) needs.push_back(static_cast<std::uint32_t>(u.resource.index()));
  return needs;
}

HETPLAN_INLINE std::size_t grant_queue::line_of(std::uint32_t t) {
  if (line_of_transfer_[t] != none) return line_of_transfer_[t];
  std::vector<std::uint32_t> needs = needs_of(g_->transfers[t]);
  const std::size_t l = lines_by_needs_.number(parts_of(needs));
  if (l == lines_.size()) {
    for (const std::uint32_t n : needs) needed_by_[n].push_back(l);
    lines_.push_back({std::move(needs), waiting_line(order_)});
  }
  line_of_transfer_[t] = static_cast<std::uint32_t>(l);
  return l;
}

HETPLAN_INLINE guarded_sharing<any_network_sharing> sharing_of(const any_network_sharing& sharing, const tasks::task_graph&,
                                                               const network& net, const simulator_options& options) {
  if (!sharing) throw invalid_input("simulate: an any_network_sharing of nothing; expected one that holds a sharing");
  check_follows(sharing.hears_of_capacities(), options);
  return {sharing, net};
}

}  // namespace hetplan::detail

#ifdef HETPLAN_SEPARATE
namespace hetplan {
template trace simulate(const tasks::task_graph&, const network&, const fair_share&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const by_priority&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const policy_of_plan&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const prescribed&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const any_network_policy&, const simulator_options&);
template trace simulate(const tasks::task_graph&, const network&, const any_network_sharing&, const simulator_options&);
}  // namespace hetplan
#endif
