// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_view.hpp>

#include <algorithm>
#include <variant>

#include <hetplan/draw/markup.hpp>
#include <hetplan/draw/ticks.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE server_slots::server_slots(const serve::edge_cloud& cloud, std::size_t most) : cloud_(&cloud) {
  const auto ring_size = static_cast<std::size_t>(cloud.ring.group);
  const std::size_t each = (cloud.size() + most - 1) / most;
  for (std::size_t first = 0; first < cloud.size(); first += ring_size) {
    const std::size_t end = std::min(cloud.size(), first + ring_size);
    for (std::size_t s = first; s < end; s += each) slots_.push_back({s, std::min(each, end - s), first / ring_size});
  }
}

HETPLAN_INLINE std::size_t server_slots::most_servers() const {
  return std::ranges::max_element(slots_, {}, [](const slot& s) { return s.count; })->count;
}

HETPLAN_INLINE std::string server_slots::name(const slot& s) const {
  const auto& first = cloud_->servers[s.first].name;
  return s.count == 1 ? first : first + " to " + cloud_->servers[s.first + s.count - 1].name;
}

HETPLAN_INLINE std::vector<std::size_t> server_slots::ring_edges() const {
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i < slots_.size(); ++i) {
    if (slots_[i].ring != slots_[i - 1].ring) all.push_back(i);
  }
  return all;
}

HETPLAN_INLINE std::vector<server_slots::label> server_slots::labels(double room) const {
  const auto step = static_cast<std::size_t>(round_step(std::max(1.0, room), 1));
  std::vector<std::size_t> edges = ring_edges();
  edges.push_back(slots_.size());
  std::vector<label> all;
  double free_from = 0;
  std::size_t begin = 0;
  for (const std::size_t end : edges) {
    for (std::size_t i = begin; i < end; i += step) {
      const double until = static_cast<double>(i) + room;
      const bool in_the_way = i > begin && until > static_cast<double>(end) && end < slots_.size();
      if (static_cast<double>(i) < free_from || in_the_way) continue;
      all.push_back({i, cloud_->servers[slots_[i].first].name});
      free_from = until;
    }
    begin = end;
  }
  return all;
}

/// What a fault is to be called.
[[nodiscard]] HETPLAN_INLINE std::string fault_words(const serve::serving_fault& f, const serve::edge_cloud& cloud) {
  const auto& server = cloud[f.server];
  if (std::holds_alternative<serve::server_fails>(f.what)) return server.name + " fails";
  if (const auto* g = std::get_if<serve::gpu_fails>(&f.what)) return "GPU " + std::to_string(g->gpu) + " of " + server.name + " fails";
  if (const auto* d = std::get_if<serve::device_leaves>(&f.what))
    return server.devices[static_cast<std::size_t>(d->device)].name + " of " + server.name + " leaves";
  if (const auto* d = std::get_if<serve::device_registers>(&f.what))
    return server.devices[static_cast<std::size_t>(d->device)].name + " registers at " + server.name;
  if (std::holds_alternative<serve::ring_cut>(f.what)) return "ring cut behind " + server.name;
  if (const auto* l = std::get_if<serve::slow_link>(&f.what)) return "link of " + server.name + " at " + fixed(100 * l->factor, 1) + " %";
  if (std::holds_alternative<serve::wrong_state>(f.what)) return server.name + " tells wrong states";
  return server.name + (std::holds_alternative<serve::server_joins>(f.what) ? " is to join" : " is to leave");
}

HETPLAN_INLINE serving_view::serving_view(const serve::service_history& h, const serve::edge_cloud& c, const std::vector<serve::service>& s,
                                          const serve::deployment& f, const serve::serving_options& run)
    : history(h), cloud(c), services(s), first(f), duration_s(h.duration.value() > 0 ? h.duration.value() : 1) {
  const double begin_s = h.begin.value();
  for (const auto& t : serve::turns(run.faults)) {
    const double at_s = std::max(0.0, t.at_s - begin_s);
    if (t.ends || at_s > duration_s) continue;
    const auto& fault = run.faults[t.fault];
    const double until_s = std::visit(
        [&](const auto& what) {
          if constexpr (requires { what.until; }) return std::max(0.0, what.until.value() - begin_s);
          else return at_s;
        },
        fault.what);
    marks.push_back({at_s, until_s, fault_words(fault, c), true, {}});
    if (std::holds_alternative<serve::server_fails>(fault.what)) marks.back().lost = fault.server;
  }
  for (std::uint64_t k = 0; k < h.changes; ++k) {
    const double at_s =
        k < run.changes.at.size() ? run.changes.at[k].value() - begin_s : static_cast<double>(k + 1) * run.changes.cycle.value();
    if (at_s > 0 && at_s <= duration_s) marks.push_back({at_s, at_s, "deployment changes", false, {}});
  }
  std::ranges::stable_sort(marks, {}, [](const serving_mark& m) { return m.from_s; });
}

HETPLAN_INLINE std::string swatch(color c) { return "<i class=\"swatch\" style=\"background-color:" + c.hex() + "\"></i>"; }

}  // namespace hetplan::draw::detail
