// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Transfers as fluids: weighted max-min rates on shared resources, in tiers, brought up to date locally.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/simulate/crowd.hpp>
#include <hetplan/simulate/end_times.hpp>
#include <hetplan/simulate/max_min.hpp>
#include <hetplan/simulate/max_min_levels.hpp>

namespace HETPLAN_NAMESPACE {

/// Active flows and their rates. A flow at rate x uses weight * x of each resource on its route; rates are
/// max-min fair (equal rates, progressive filling) inside a tier, and a tier gets what smaller ones leave.
///
/// Where sharing has stopped, every flow has the peak rate of its route, whatever others do.
///
/// Flows keep their rate until something that can reach it over shared resources changes, and rates of other flows keep every bit.
///
/// Units        seconds, bytes, B/s.
/// Complexity   of a change: where 32 resources and more are in use, all of one tier, and few of them change, what its rates reach
///              (detail::max_min_levels). Else, and where that is most of the network, the size of the connected component times its
///              distinct rates (detail::max_min). Where a thousand flows and more all cross the resource that limits them, they have
///              one rate, and a change costs a logarithm (detail::crowd). Ends: O(log flows) for each rate that changes
///              (detail::end_times).
/// Determinism  independent of anything but the order of calls. Which of these ways a rate was found tells in its last bits alone.
/// Source       max-min fairness by progressive filling (textbook); settled locally: see detail::max_min_levels.
class fluid_network {
 public:
  using flow_id = std::uint32_t;

  explicit fluid_network(std::span<const resource> resources);

  /// From now on nobody is in anybody's way. Call before the first flow starts.
  void stop_sharing() { shares_ = false; }

  /// Calls for changed rates are wanted for flows in a group of equal flows, too.
  void report_crowds() { reports_ = true; }

  /// Starts a flow now; its route has at least one resource, each once. The handle returns with its end.
  flow_id start(double now, double volume_bytes, std::span<const resource_use> via, int tier, std::uint32_t tag);

  /// Ends a flow, finished or not.
  void stop(flow_id f);

  void set_capacity(std::size_t r, double capacity);

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
    if (settle(now, changed)) return forget_changes();
    for (const std::uint32_t r : dirty_) {
      if (resources_[r].dirty) collect(r);
      if (!component_.empty()) fill(now, changed);
    }
    dirty_.clear();
  }

  /// The time of the next end at the present rates; infinite if none.
  [[nodiscard]] double next_end() { return crowded_ ? crowd_.next_end() : ends_.earliest(); }

  /// Takes the flows that end by then and calls done(tag), in order of tags.
  template <class Done>
  void finish_until(double time, Done&& done) {
    finished_.clear();
    if (crowded_) crowd_.take_until(time, finished_);
    else find_due(time);
    if (finished_.size() > 1) {
      std::sort(finished_.begin(), finished_.end(), [&](flow_id a, flow_id b) { return flows_[a].tag < flows_[b].tag; });
    }
    for (const flow_id f : finished_) {
      const std::uint32_t tag = flows_[f].tag;
      forget(f);
      done(tag);
    }
  }

  [[nodiscard]] std::size_t active() const { return active_.size(); }
  [[nodiscard]] double rate(flow_id f) const { return crowded_ ? crowd_.rate() : flows_[f].rate; }
  /// Bytes that an active flow has not moved by now, which is no later than its end.
  [[nodiscard]] double left(flow_id f, double now) const;

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double unset = detail::max_min::unset, collected = -2;

  using flow = detail::fluid_flow;
  using state = detail::fluid_resource;

  void find_due(double time);
  void forget(flow_id f);

  // --- groups of equal flows (detail::crowd) ---

  /// The rate of all flows where they cross one resource and none limits them more; else unset.
  [[nodiscard]] double common_rate() const;

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
  void scatter(double now);

  void touch(std::size_t r);

  /// Few changes in a large network of one tier: sets the rates that they reach. False: nothing is set, all have to be filled.
  template <class Changed>
  bool settle(double now, Changed&& changed) {
    if (!one_tier_ || used_.size() < least_large || dirty_.size() * least_quiet > used_.size()) return false;
    if (pause_ > 0) {
      --pause_;
      return false;
    }
    if (!levels_.update(dirty_, flows_, resources_, most_looks * active_.size())) {
      pause_ = next_pause_ = std::min(2 * next_pause_, longest_pause);
      return false;
    }
    next_pause_ = 1;
    for (const std::uint32_t r : levels_.reached()) {
      for (const flow_id f : resources_[r].flows) set_rate(f, levels_.rate(flows_[f]), now, changed);
    }
    return true;
  }

  /// The flows and resources that a change of resource r can reach.
  void collect(std::size_t r);

  template <class Changed>
  void fill(double now, Changed&& changed) {
    for (const std::uint32_t c : component_) {
      resources_[c].left = resources_[c].capacity;
      levels_.set(c, never);
    }
    for (std::size_t begin = 0; begin < members_.size();) {
      std::size_t end = begin;
      while (end < members_.size() && flows_[members_[end]].tier == flows_[members_[begin]].tier) ++end;
      filler_.fill(std::span(members_).subspan(begin, end - begin), flows_, resources_);
      for (const detail::limit& l : filler_.limits()) levels_.set(l.resource, l.rate);
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
    ends_.set(x.slot, rate > 0 ? now + x.remaining / rate : never);
    changed(x.tag, rate);
  }

  [[nodiscard]] double peak_rate(const flow& x) const;

  void forget_changes();

  static constexpr std::size_t least_crowd = 512;     ///< it comes together at twice as many
  static constexpr std::size_t least_large = 32;      ///< resources in use, where rates are settled locally
  static constexpr std::size_t least_quiet = 8;       ///< and in use for each that changed
  static constexpr std::size_t most_looks = 4;        ///< at each flow, then filling is faster
  static constexpr std::uint32_t longest_pause = 64;  ///< updates without trying again after looks in vain

  std::vector<state> resources_;
  std::vector<flow> flows_;
  bool shares_ = true, reports_ = false, crowded_ = false, one_tier_ = true, whole_weights_ = true;
  detail::crowd crowd_;
  detail::max_min_levels levels_;  ///< settled where all flows are of one tier, but in a crowd
  std::uint32_t pause_ = 0, next_pause_ = 1;
  std::vector<std::uint32_t> used_;  ///< resources with flows
  std::vector<flow_id> active_, free_, members_, finished_;
  std::vector<flow_id> fresh_;  ///< where nobody shares: started and without a rate yet
  detail::end_times ends_;      ///< beside active_
  std::vector<std::uint32_t> dirty_, component_;
  detail::max_min filler_;
};

}  // namespace HETPLAN_NAMESPACE

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/fluid.ipp>
#endif
