// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/dot_cluster.hpp>

#include <algorithm>

#include <hetplan/draw/markup.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

HETPLAN_INLINE cluster_picture::cluster_picture(const cluster& c) : cluster_(c), wires_(c.network().resources().size()) {
  std::vector<std::set<std::pair<device_id, device_id>>> alone(wires_.size());
  for_each_route([&](device_id a, device_id b, const route& r) {
    if (r.via.size() == 1) alone[r.via.front().resource.index()].emplace(a, b);
  });
  for (std::size_t i = 0; i < alone.size(); ++i) {
    std::set<std::pair<device_id, device_id>> pairs;
    for (const auto& [a, b] : alone[i]) pairs.emplace(std::min(a, b), std::max(a, b));
    if (pairs.size() == 1)
      wires_[i] = {.from = alone[i].begin()->first, .to = alone[i].begin()->second, .both_ways = alone[i].size() == 2, .is_wire = true};
  }
  // A wire that a route joins with something else (a group's medium with an uplink) is a node after all.
  for (bool changed = true; changed;) {
    changed = false;
    for_each_route([&](device_id, device_id, const route& r) {
      const auto wire_here = [&](const resource_use& u) { return wires_[u.resource.index()].is_wire; };
      if (std::all_of(r.via.begin(), r.via.end(), wire_here) || std::none_of(r.via.begin(), r.via.end(), wire_here)) return;
      for (const resource_use& u : r.via) wires_[u.resource.index()].is_wire = false;
      changed = true;
    });
  }
}

HETPLAN_INLINE std::string cluster_picture::draw(const dot_options& options) {
  dot_writer out("digraph", cluster_.name(), options.direction);
  const network& net = cluster_.network();
  for (const device& d : cluster_.devices()) {
    std::string label = d.name + (d.kind != d.name ? "\n" + d.kind : std::string());
    if (d.accelerators > 1) label += "\n" + std::to_string(d.accelerators) + " accelerators";
    if (d.compute.value() > 0) label += "\n" + engineering(d.compute.value(), "FLOP/s");
    label += "\n" + engineering(d.usable_memory().value(), "B");
    if (d.usable_memory() < d.memory) label += " of " + engineering(d.memory.value(), "B");
    out.node(device_node(d.id), label, dot_writer::fill(palette::category_color(d.id.index())));
  }
  for_each_route([&](device_id a, device_id b, const route& r) { connect(a, b, r); });
  for (std::size_t i = 0; i < wires_.size(); ++i) {
    const resource& r = net.resources()[i];
    const std::string rate = engineering(8 * r.capacity.value(), "bit/s");
    if (wires_[i].is_wire) {
      out.edge(device_node(wires_[i].from), device_node(wires_[i].to), rate, wires_[i].both_ways ? ", dir=none" : "");
    } else if (used_.contains(i)) {
      out.node(resource_node(i), r.name + "\n" + rate, ", shape=ellipse");
    }
  }
  join_through_switch(out);
  for (const auto& [from, to] : links_) {
    const bool back = links_.contains({to, from});
    if (!back || from < to) out.edge(from, to, {}, back ? ", dir=none" : "");
  }
  return std::move(out).document();
}

HETPLAN_INLINE void cluster_picture::connect(device_id a, device_id b, const route& r) {
  if (!r.via.empty() && wires_[r.via.front().resource.index()].is_wire) return;
  std::string at = device_node(a);
  for (const resource_use& u : r.via) {
    const std::string next = resource_node(u.resource.index());
    used_.insert(u.resource.index());
    links_.emplace(at, next);
    at = next;
  }
  links_.emplace(at, device_node(b));
}

HETPLAN_INLINE void cluster_picture::join_through_switch(dot_writer& out) {
  std::set<std::string> from, to;
  std::set<std::pair<std::string, std::string>> between;
  for (const auto& link : links_) {
    if (link.first.front() != 'r' || link.second.front() != 'r') continue;
    between.insert(link);
    from.insert(link.first);
    to.insert(link.second);
  }
  const std::size_t all = from.size() * to.size(), own = std::min(from.size(), to.size());
  if (own < 3 || between.size() + own < all) return;
  for (const auto& link : between) links_.erase(link);
  out.node("switch", "", ", shape=diamond, width=0.25, height=0.25");
  for (const std::string& f : from) links_.emplace(f, "switch");
  for (const std::string& t : to) links_.emplace("switch", t);
}

}  // namespace HETPLAN_NAMESPACE::draw::detail
