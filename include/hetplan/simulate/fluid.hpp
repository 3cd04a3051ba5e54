// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Transfers as fluids: weighted max-min rates on shared resources, in tiers, brought up to date locally.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/simulate/crowd.hpp>
#include <hetplan/simulate/max_min.hpp>

namespace hetplan {

/// Active flows and their rates. A flow at rate x uses weight * x of each resource on its route; rates are
/// max-min fair (equal rates, progressive filling) inside a tier, and a tier gets what smaller ones leave.
///
/// Where sharing has stopped, every flow has the peak rate of its route, whatever others do.
///
/// Flows keep their rate until something that can reach it over shared resources changes, so a change
/// costs the size of its connected component, and rates of other flows keep every bit. Where a thousand flows and more all
/// cross the resource that limits them, they have one rate, and a change costs a logarithm (detail::crowd).
/// Units  seconds, bytes, B/s.  Determinism  independent of anything but the order of calls.
class fluid_network {
 public:
  using flow_id = std::uint32_t;

  explicit fluid_network(std::span<const resource> resources) : resources_(resources.size()) {
    for (std::size_t r = 0; r < resources.size(); ++r) resources_[r].capacity = resources[r].capacity.value();
  }

  /// From now on nobody is in anybody's way. Call before the first flow starts.
  void stop_sharing() { shares_ = false; }

  /// Calls for changed rates are wanted for flows in a group of equal flows, too.
  void report_crowds() { reports_ = true; }

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
    x.at.clear();
    for (const resource_use& u : via) {
      state& s = resources_[u.resource.index()];
      if (s.flows.empty()) used_.push_back(static_cast<std::uint32_t>(u.resource.index()));
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

  /// Ends a flow, finished or not.
  void stop(flow_id f) {
    if (crowded_) crowd_.remove(f);
    forget(f);
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
    if (active_.size() >= least_crowd && go_together(now, changed)) return forget_changes();
    if (crowded_) scatter(now);
    for (const std::uint32_t r : dirty_) {
      if (resources_[r].dirty) collect(r);
      if (!component_.empty()) fill(now, changed);
    }
    dirty_.clear();
  }

  /// The time of the next end at the present rates; infinite if none.
  [[nodiscard]] double next_end() {
    if (crowded_) return crowd_.next_end();
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
    if (crowded_) crowd_.take_until(time, finished_);
    for (std::size_t i = 0; i < ends_.size() && !crowded_; ++i) {
      if (ends_[i] <= time) finished_.push_back(active_[i]);
    }
    std::sort(finished_.begin(), finished_.end(), [&](flow_id a, flow_id b) { return flows_[a].tag < flows_[b].tag; });
    for (const flow_id f : finished_) {
      const std::uint32_t tag = flows_[f].tag;
      forget(f);
      done(tag);
    }
  }

  [[nodiscard]] std::size_t active() const { return active_.size(); }
  [[nodiscard]] double rate(flow_id f) const { return crowded_ ? crowd_.rate() : flows_[f].rate; }
  /// Bytes that an active flow has not moved by now, which is no later than its end.
  [[nodiscard]] double left(flow_id f, double now) const {
    if (crowded_) return crowd_.left(f, now);
    return std::max(0.0, flows_[f].remaining - flows_[f].rate * (now - flows_[f].since));
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double unset = detail::max_min::unset, collected = -2;

  using flow = detail::fluid_flow;
  using state = detail::fluid_resource;

  void forget(flow_id f) {
    flow& x = flows_[f];
    for (std::size_t k = 0; shares_ && k < x.via.size(); ++k) {
      const std::size_t r = x.via[k].resource.index();
      state& s = resources_[r];
      const flow_id moved = s.flows.back();
      const auto last = static_cast<std::uint32_t>(s.flows.size() - 1);
      for (std::size_t j = 0; j < flows_[moved].via.size(); ++j) {
        if (flows_[moved].via[j].resource.index() == r && flows_[moved].at[j] == last) flows_[moved].at[j] = x.at[k];
      }
      s.flows[x.at[k]] = moved;
      s.flows.pop_back();
      s.total -= x.via[k].weight;
      if (s.flows.empty()) used_.erase(std::find(used_.begin(), used_.end(), static_cast<std::uint32_t>(r)));
      touch(r);
    }
    active_[x.slot] = active_.back();
    ends_[x.slot] = ends_.back();
    flows_[active_[x.slot]].slot = x.slot;
    active_.pop_back();
    ends_.pop_back();
    next_end_known_ = false;
    free_.push_back(f);
    one_tier_ = one_tier_ || active_.empty();
  }

  // --- groups of equal flows (detail::crowd) ---

  /// The rate of all flows where they cross one resource and none limits them more; else unset.
  [[nodiscard]] double common_rate() const {
    if (!whole_weights_ || !one_tier_) return unset;
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

  /// Sets the one rate of all flows; false: they have several.
  template <class Changed>
  bool go_together(double now, Changed&& changed) {
    const double rate = common_rate();
    if (rate == unset || (!crowded_ && active_.size() < 2 * least_crowd)) return false;
    if (!crowded_) {
      crowd_.begin(now);
      for (const flow_id f : active_) crowd_.add(now, f, left(f, now));
      crowded_ = true;
    }
    crowd_.set_rate(now, rate);
    for (std::size_t i = 0; i < active_.size() && reports_ && !dirty_.empty(); ++i) {
      flow& x = flows_[active_[i]];
      if (x.rate == rate) continue;
      x.rate = rate;
      changed(x.tag, rate);
    }
    return true;
  }
  void scatter(double now) {
    crowded_ = false;
    for (const flow_id f : active_) {
      flow& x = flows_[f];
      x.remaining = crowd_.left(f, now);
      x.since = now;
      x.rate = crowd_.rate();
      ends_[x.slot] = x.rate > 0 ? now + x.remaining / x.rate : never;
    }
    next_end_known_ = false;
    for (const std::uint32_t r : used_) touch(r);
  }

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
      filler_.fill(std::span(members_).subspan(begin, end - begin), flows_, resources_);
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

  static constexpr std::size_t least_crowd = 512;  ///< it comes together at twice as many

  std::vector<state> resources_;
  std::vector<flow> flows_;
  bool shares_ = true, reports_ = false, crowded_ = false, one_tier_ = true, whole_weights_ = true;
  detail::crowd crowd_;
  std::vector<std::uint32_t> used_;  ///< resources with flows
  std::vector<flow_id> active_, free_, members_, finished_;
  std::vector<flow_id> fresh_;  ///< where nobody shares: started and without a rate yet
  std::vector<double> ends_;    ///< beside active_
  double next_end_ = never;     ///< the smallest of ends_, if known
  bool next_end_known_ = true;
  std::vector<std::uint32_t> dirty_, component_;
  detail::max_min filler_;
};

}  // namespace hetplan
