// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/fluid.hpp>

#include <cmath>

namespace HETPLAN_NAMESPACE {

HETPLAN_INLINE fluid_network::fluid_network(std::span<const resource> resources) : resources_(resources.size()), levels_(resources.size()) {
  for (std::size_t r = 0; r < resources.size(); ++r) resources_[r].capacity = resources[r].capacity.value();
}

HETPLAN_INLINE fluid_network::flow_id fluid_network::start(double now, double volume_bytes, std::span<const resource_use> via, int tier,
                                                           std::uint32_t tag) {
  flow_id f;
  if (free_.empty()) {
    f = static_cast<flow_id>(flows_.size());
    flows_.emplace_back();
  } else {
    f = free_.back();
    free_.pop_back();
  }
  flow& x = flows_[f];
  x.via = via;
  x.remaining = volume_bytes;
  x.rate = 0;
  x.since = now;
  x.tier = tier;
  x.tag = tag;
  x.slot = static_cast<std::uint32_t>(active_.size());
  active_.push_back(f);
  ends_.add();
  if (!shares_) {
    fresh_.push_back(f);
    return f;
  }
  x.at.clear();
  for (const resource_use& u : via) {
    state& s = resources_[u.resource.index()];
    if (s.flows.empty()) {
      s.place = static_cast<std::uint32_t>(used_.size());
      used_.push_back(static_cast<std::uint32_t>(u.resource.index()));
    }
    x.at.push_back(static_cast<std::uint32_t>(s.flows.size()));
    s.flows.push_back(f);
    s.total += u.weight;
    whole_weights_ = whole_weights_ && std::floor(u.weight) == u.weight;
    touch(u.resource.index());
  }
  if (crowded_) crowd_.add(now, f, volume_bytes);
  one_tier_ = one_tier_ && tier == flows_[active_.front()].tier;
  return f;
}

HETPLAN_INLINE void fluid_network::stop(flow_id f) {
  if (crowded_) crowd_.remove(f);
  forget(f);
}

HETPLAN_INLINE void fluid_network::set_capacity(std::size_t r, double capacity) {
  resources_[r].capacity = capacity;
  touch(r);
}

HETPLAN_INLINE double fluid_network::left(flow_id f, double now) const {
  if (crowded_) return crowd_.left(f, now);
  return std::max(0.0, flows_[f].remaining - flows_[f].rate * (now - flows_[f].since));
}

HETPLAN_INLINE void fluid_network::find_due(double time) {
  ends_.find_due(time, finished_);
  for (flow_id& f : finished_) f = active_[f];
}

HETPLAN_INLINE void fluid_network::forget(flow_id f) {
  flow& x = flows_[f];
  for (std::size_t k = 0; shares_ && k < x.via.size(); ++k) {
    const std::size_t r = x.via[k].resource.index();
    state& s = resources_[r];
    const flow_id moved = s.flows.back();
    const auto last = static_cast<std::uint32_t>(s.flows.size() - 1);
    for (std::size_t j = 0; x.at[k] != last && j < flows_[moved].via.size(); ++j) {
      if (flows_[moved].via[j].resource.index() == r && flows_[moved].at[j] == last) flows_[moved].at[j] = x.at[k];
    }
    s.flows[x.at[k]] = moved;
    s.flows.pop_back();
    s.total -= x.via[k].weight;
    if (s.flows.empty()) {
      resources_[used_.back()].place = s.place;
      used_[s.place] = used_.back();
      used_.pop_back();
    }
    touch(r);
  }
  active_[x.slot] = active_.back();
  flows_[active_[x.slot]].slot = x.slot;
  active_.pop_back();
  ends_.remove(x.slot);
  free_.push_back(f);
  one_tier_ = one_tier_ || active_.empty();
}

HETPLAN_INLINE double fluid_network::common_rate() const {
  if (!whole_weights_ || !one_tier_) return unset;
  const auto first = flows_[active_.front()].via;
  if (std::none_of(first.begin(), first.end(),
                   [&](const resource_use& u) { return resources_[u.resource.index()].flows.size() == active_.size(); })) {
    return unset;  // no resource has them all
  }
  double share = never;
  bool common = false;
  for (const std::uint32_t r : used_) {
    const state& s = resources_[r];
    const double mine = s.capacity / s.total;
    if (mine <= share) common = (mine == share && common) || s.flows.size() == active_.size();
    share = std::min(share, mine);
  }
  return common ? share : unset;
}

HETPLAN_INLINE void fluid_network::scatter(double now) {
  crowded_ = false;
  for (const flow_id f : active_) {
    flow& x = flows_[f];
    x.remaining = crowd_.left(f, now);
    x.since = now;
    x.rate = crowd_.rate();
    ends_.set(x.slot, x.rate > 0 ? now + x.remaining / x.rate : never);
  }
  for (const std::uint32_t r : used_) touch(r);
}

HETPLAN_INLINE void fluid_network::touch(std::size_t r) {
  if (resources_[r].dirty) return;
  resources_[r].dirty = true;
  dirty_.push_back(static_cast<std::uint32_t>(r));
}

HETPLAN_INLINE void fluid_network::collect(std::size_t r) {
  component_.clear();
  members_.clear();
  bool several_tiers = false;
  resources_[r].visited = true;
  component_.push_back(static_cast<std::uint32_t>(r));
  for (std::size_t i = 0; i < component_.size(); ++i) {
    state& s = resources_[component_[i]];
    s.dirty = false;
    for (const flow_id f : s.flows) {
      if (flows_[f].next_rate == collected) continue;
      flows_[f].next_rate = collected;
      members_.push_back(f);
      several_tiers = several_tiers || flows_[f].tier != flows_[members_.front()].tier;
      for (const resource_use& u : flows_[f].via) {
        state& other = resources_[u.resource.index()];
        if (other.visited) continue;
        other.visited = true;
        component_.push_back(static_cast<std::uint32_t>(u.resource.index()));
      }
    }
  }
  for (const std::uint32_t c : component_) resources_[c].visited = false;
  if (!several_tiers) return;
  std::sort(members_.begin(), members_.end(), [&](flow_id a, flow_id b) {
    return flows_[a].tier != flows_[b].tier ? flows_[a].tier < flows_[b].tier : flows_[a].tag < flows_[b].tag;
  });
}

HETPLAN_INLINE double fluid_network::peak_rate(const flow& x) const {
  double rate = never;
  for (const resource_use& u : x.via) rate = std::min(rate, resources_[u.resource.index()].capacity / u.weight);
  return rate;
}

HETPLAN_INLINE void fluid_network::forget_changes() {
  for (const std::uint32_t r : dirty_) resources_[r].dirty = false;
  dirty_.clear();
}

}  // namespace HETPLAN_NAMESPACE
