// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Transfers as fluids: weighted max-min rates on shared resources, in tiers, brought up to date locally.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <hetplan/cluster/network.hpp>

namespace hetplan {

/// Active flows and their rates. A flow at rate x uses weight * x of each resource on its route; rates are
/// max-min fair (equal rates, progressive filling) inside a tier, and a tier gets what smaller ones leave.
///
/// Where sharing has stopped, every flow has the peak rate of its route, whatever others do.
///
/// Flows keep their rate until something that can reach it over shared resources changes, so a change
/// costs the size of its connected component, and rates of other flows keep every bit.
/// Units  seconds, bytes, B/s.  Determinism  independent of anything but the order of calls.
class fluid_network {
 public:
  using flow_id = std::uint32_t;

  explicit fluid_network(std::span<const resource> resources) : resources_(resources.size()) {
    for (std::size_t r = 0; r < resources.size(); ++r) resources_[r].capacity = resources[r].capacity.value();
  }

  /// From now on nobody is in anybody's way. Call before the first flow starts.
  void stop_sharing() { shares_ = false; }

  /// Starts a flow now; its route has at least one resource. The handle returns with its end.
  flow_id start(double now, double volume_bytes, std::span<const resource_use> via, int tier, std::uint32_t tag) {
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
    ends_.push_back(never);
    if (!shares_) {
      fresh_.push_back(f);
      return f;
    }
    for (const resource_use& u : via) {
      resources_[u.resource.index()].flows.push_back(f);
      touch(u.resource.index());
    }
    return f;
  }

  /// Ends a flow, finished or not.
  void stop(flow_id f) {
    flow& x = flows_[f];
    for (const resource_use& u : shares_ ? x.via : std::span<const resource_use>()) {
      auto& here = resources_[u.resource.index()].flows;
      const auto it = std::find(here.begin(), here.end(), f);
      *it = here.back();
      here.pop_back();
      touch(u.resource.index());
    }
    active_[x.slot] = active_.back();
    ends_[x.slot] = ends_.back();
    flows_[active_[x.slot]].slot = x.slot;
    active_.pop_back();
    ends_.pop_back();
    next_end_known_ = false;
    free_.push_back(f);
  }

  void set_capacity(std::size_t r, double capacity) {
    resources_[r].capacity = capacity;
    touch(r);
  }

  /// Brings the rates up to date; call once after all changes at one time. Calls changed(tag, rate) for
  /// every flow whose rate changed.
  template <class Changed>
  void update(double now, Changed&& changed) {
    if (!shares_) {
      for (const flow_id f : dirty_.empty() ? fresh_ : active_) set_rate(f, peak_rate(flows_[f]), now, changed);
      fresh_.clear();
      forget_changes();
      return;
    }
    for (const std::uint32_t r : dirty_) {
      if (resources_[r].dirty) collect(r);
      if (!component_.empty()) fill(now, changed);
    }
    dirty_.clear();
  }

  /// The time of the next end at the present rates; infinite if none.
  [[nodiscard]] double next_end() {
    if (!next_end_known_) {
      next_end_ = never;
      for (const double end : ends_) next_end_ = std::min(next_end_, end);
      next_end_known_ = true;
    }
    return next_end_;
  }

  /// Takes the flows that end by then and calls done(tag), in order of tags.
  template <class Done>
  void finish_until(double time, Done&& done) {
    finished_.clear();
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i] <= time) finished_.push_back(active_[i]);
    }
    std::sort(finished_.begin(), finished_.end(), [&](flow_id a, flow_id b) { return flows_[a].tag < flows_[b].tag; });
    for (const flow_id f : finished_) {
      const std::uint32_t tag = flows_[f].tag;
      stop(f);
      done(tag);
    }
  }

  [[nodiscard]] std::size_t active() const { return active_.size(); }
  [[nodiscard]] double rate(flow_id f) const { return flows_[f].rate; }
  /// Bytes that an active flow has not moved by now, which is no later than its end.
  [[nodiscard]] double left(flow_id f, double now) const {
    return std::max(0.0, flows_[f].remaining - flows_[f].rate * (now - flows_[f].since));
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double unset = -1, collected = -2;

  struct flow {
    std::span<const resource_use> via;
    double remaining = 0, rate = 0, since = 0;
    double next_rate = unset;  ///< while filling: unset, collected, or fixed
    int tier = 0;
    std::uint32_t tag = 0, slot = 0;
  };
  struct state {
    double capacity = 0;
    double left = 0, weight = 0;  ///< while filling: capacity not given out, weight of flows not fixed
    std::size_t pending = 0;      ///< while filling: flows not fixed
    std::vector<flow_id> flows;
    bool dirty = false, visited = false;
  };

  void touch(std::size_t r) {
    if (resources_[r].dirty) return;
    resources_[r].dirty = true;
    dirty_.push_back(static_cast<std::uint32_t>(r));
  }

  /// The flows and resources that a change of resource r can reach.
  void collect(std::size_t r) {
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

  template <class Changed>
  void fill(double now, Changed&& changed) {
    for (const std::uint32_t c : component_) resources_[c].left = resources_[c].capacity;
    for (std::size_t begin = 0; begin < members_.size();) {
      std::size_t end = begin;
      while (end < members_.size() && flows_[members_[end]].tier == flows_[members_[begin]].tier) ++end;
      fill_tier(std::span(members_).subspan(begin, end - begin));
      begin = end;
    }
    for (const flow_id f : members_) {
      const double rate = flows_[f].next_rate;
      flows_[f].next_rate = unset;
      set_rate(f, rate, now, changed);
    }
    component_.clear();
  }

  template <class Changed>
  void set_rate(flow_id f, double rate, double now, Changed&& changed) {
    flow& x = flows_[f];
    if (rate == x.rate) return;
    x.remaining = std::max(0.0, x.remaining - x.rate * (now - x.since));
    x.since = now;
    x.rate = rate;
    ends_[x.slot] = rate > 0 ? now + x.remaining / rate : never;
    next_end_known_ = false;
    changed(x.tag, rate);
  }

  [[nodiscard]] double peak_rate(const flow& x) const {
    double rate = never;
    for (const resource_use& u : x.via) rate = std::min(rate, resources_[u.resource.index()].capacity / u.weight);
    return rate;
  }

  void forget_changes() {
    for (const std::uint32_t r : dirty_) resources_[r].dirty = false;
    dirty_.clear();
  }

  /// A flow that has its tier to itself takes what is left on its route.
  void fill_alone(flow& x) {
    double share = never;
    for (const resource_use& u : x.via) {
      const state& s = resources_[u.resource.index()];
      if (s.left < share * u.weight) share = s.left / u.weight;
    }
    x.next_rate = std::max(0.0, share);
    for (const resource_use& u : x.via) {
      state& s = resources_[u.resource.index()];
      s.left -= u.weight * x.next_rate;
      if (s.left < saturated * s.capacity) s.left = 0;
    }
  }

  /// Progressive filling: the resource with the smallest fair share fixes its flows; repeat.
  void fill_tier(std::span<const flow_id> tier) {
    if (tier.size() == 1) return fill_alone(flows_[tier.front()]);
    open_.clear();
    for (const flow_id f : tier) {
      flows_[f].next_rate = unset;
      for (const resource_use& u : flows_[f].via) {
        state& s = resources_[u.resource.index()];
        if (s.pending++ == 0) {
          open_.push_back(static_cast<std::uint32_t>(u.resource.index()));
          s.weight = 0;
        }
        s.weight += u.weight;
      }
    }
    double level = 0;
    for (std::size_t unfixed = tier.size(); unfixed > 0;) {
      double share = never;
      std::uint32_t bottleneck = open_.front();
      std::size_t kept = 0;
      for (const std::uint32_t r : open_) {
        const state& s = resources_[r];
        if (s.pending == 0) continue;
        open_[kept++] = r;
        if (s.left < share * s.weight) {
          share = s.left / s.weight;
          bottleneck = r;
        }
      }
      open_.resize(kept);
      level = std::max(level, share);  // rounding may not lower the water
      for (const flow_id f : resources_[bottleneck].flows) {
        flow& x = flows_[f];
        if (x.next_rate != unset) continue;
        x.next_rate = level;
        --unfixed;
        for (const resource_use& u : x.via) {
          state& s = resources_[u.resource.index()];
          --s.pending;
          s.weight -= u.weight;
          s.left -= u.weight * level;
          if (s.left < saturated * s.capacity) s.left = 0;
        }
      }
    }
  }

  static constexpr double saturated = 1e-12;  ///< of a capacity: rounding, not bandwidth, for the tiers below

  std::vector<state> resources_;
  std::vector<flow> flows_;
  bool shares_ = true;
  std::vector<flow_id> active_, free_, members_, finished_;
  std::vector<flow_id> fresh_;  ///< where nobody shares: started and without a rate yet
  std::vector<double> ends_;  ///< beside active_
  double next_end_ = never;   ///< the smallest of ends_, if known
  bool next_end_known_ = true;
  std::vector<std::uint32_t> dirty_, component_, open_;
};

}  // namespace hetplan
