// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/fluid_sharing.hpp>

#include <cmath>

#include <hetplan/core/error.hpp>

namespace hetplan::detail {

HETPLAN_INLINE bool sharing_ledger::set_rate(double now_s, std::uint32_t number, double rate, const rate_changed& changed) {
  const auto* f = flows_.find(number);
  if (f == nullptr || !std::isfinite(rate) || rate < 0) {
    throw invalid_model("network sharing: update(" + to_text(now_s) + " s) gives transfer " + std::to_string(number) + " " + to_text(rate) +
                        " B/s; expected a transfer under way and a finite rate >= 0");
  }
  const bool other = f->rate != rate;
  flows_.set_rate(now_s, number, rate, changed);
  return other;
}

HETPLAN_INLINE void sharing_ledger::check_load(double now_s) {
  if (const auto excess = load_.exceeded_by(flows_)) {
    throw invalid_model("network sharing: update(" + to_text(now_s) + " s) gives " + to_text(excess->taken) + " B/s of resource \"" +
                        net_->resources()[excess->resource].name + "\", which has " + to_text(excess->capacity) + " B/s");
  }
}

HETPLAN_INLINE void sharing_ledger::end(double time_s, std::uint32_t number) {
  const auto* f = flows_.find(number);
  // Ends that differ only by rounding happen together, some a little early.
  const double rounding = f == nullptr ? 0 : 1e-6 * f->transfer->volume_bytes + 1e-11 * time_s * f->rate;
  if (f == nullptr || f->left(time_s) > rounding) {
    throw invalid_model("network sharing: finish_until(" + to_text(time_s) + " s) ends transfer " + std::to_string(number) +
                        (f == nullptr ? std::string(", which is not under way")
                                      : " with " + to_text(f->left(time_s)) + " B left of " + to_text(f->transfer->volume_bytes) + " B"));
  }
  flows_.stop(number);
}

HETPLAN_INLINE void sharing_ledger::refuse_next_end(double next_s) {
  throw invalid_model("network sharing: next_end() = " + to_text(next_s) + " s; expected a time >= 0, or infinity where none is to come");
}

HETPLAN_INLINE void sharing_ledger::refuse_idleness(double time_s, int rounds) {
  throw invalid_model("network sharing: next_end() came to nothing " + std::to_string(rounds) + " times up to " + to_text(time_s) +
                      " s: finish_until ended no transfer and update changed no rate; expected one of the two");
}

HETPLAN_INLINE void sharing_ledger::check_nothing_left(double now_s) const {
  for (const auto& f : flows_) {
    const auto stands = [&](const resource_use& u) { return load_.capacity_of(u.resource.index()) <= 0; };
    if (std::any_of(f.route.begin(), f.route.end(), stands)) continue;
    throw invalid_model("network sharing: next_end() = inf s at " + to_text(now_s) + " s, with transfer " + std::to_string(f.number) +
                        " under way at " + to_text(f.rate) + " B/s and " + to_text(f.left(now_s)) + " B left of " +
                        to_text(f.transfer->volume_bytes) + " B; expected the time at which it ends or rates change");
  }
}

HETPLAN_INLINE void sharing_ledger::check_next_end(double time_s, double next_s) {
  if (next_s > time_s) return;
  throw invalid_model("network sharing: next_end() = " + to_text(next_s) + " s after finish_until(" + to_text(time_s) +
                      " s); expected a later time");
}

HETPLAN_INLINE void max_min::fill(std::span<const std::uint32_t> tier, std::vector<fluid_flow>& flows,
                                  std::vector<fluid_resource>& resources) {
  limits_.clear();
  if (tier.size() == 1) return fill_alone(flows[tier.front()], resources);
  open_.clear();
  for (const std::uint32_t f : tier) {
    flows[f].next_rate = unset;
    for (const resource_use& u : flows[f].via) {
      fluid_resource& s = resources[u.resource.index()];
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
      const fluid_resource& s = resources[r];
      if (s.pending == 0) continue;
      open_[kept++] = r;
      if (s.left < share * s.weight) {
        share = s.left / s.weight;
        bottleneck = r;
      }
    }
    open_.resize(kept);
    level = std::max(level, share);  // rounding must not lower it
    limits_.push_back({bottleneck, level});
    for (const std::uint32_t f : resources[bottleneck].flows) {
      fluid_flow& x = flows[f];
      if (x.next_rate != unset) continue;
      x.next_rate = level;
      --unfixed;
      for (const resource_use& u : x.via) {
        fluid_resource& s = resources[u.resource.index()];
        --s.pending;
        s.weight -= u.weight;
        s.left -= u.weight * level;
        if (s.left < saturated * s.capacity) s.left = 0;
      }
    }
  }
}

HETPLAN_INLINE void max_min::fill_alone(fluid_flow& x, std::vector<fluid_resource>& resources) {
  limit least{static_cast<std::uint32_t>(x.via.front().resource.index()), never};
  for (const resource_use& u : x.via) {
    const fluid_resource& s = resources[u.resource.index()];
    if (s.left < least.rate * u.weight) least = {static_cast<std::uint32_t>(u.resource.index()), s.left / u.weight};
  }
  least.rate = std::max(0.0, least.rate);
  limits_.push_back(least);
  x.next_rate = least.rate;
  for (const resource_use& u : x.via) {
    fluid_resource& s = resources[u.resource.index()];
    s.left -= u.weight * x.next_rate;
    if (s.left < saturated * s.capacity) s.left = 0;
  }
}

HETPLAN_INLINE bool max_min_levels::update(std::span<const std::uint32_t> changed, const std::vector<fluid_flow>& flows,
                                           const std::vector<fluid_resource>& resources, std::size_t most) {
  queue_.clear();
  looks_ = 0;
  reached_.assign(changed.begin(), changed.end());
  for (const std::uint32_t r : changed) look_at(r, flows, resources[r]);
  while (!queue_.empty() && looks_ <= most) {
    const auto [smaller, r] = queue_.pop();
    if (level_[r] == next_[r] || smaller != std::min(level_[r], next_[r])) continue;
    level_[r] = next_[r];
    reached_.push_back(r);
    beside_.clear();
    seen_[r] = 1;
    for (const std::uint32_t f : resources[r].flows) {
      for (const resource_use& u : flows[f].via) {
        const auto other = static_cast<std::uint32_t>(u.resource.index());
        if (next_[other] <= smaller || seen_[other]) continue;  // smaller levels depend on neither the old nor the new level
        seen_[other] = 1;
        beside_.push_back(other);
      }
    }
    seen_[r] = 0;
    for (const std::uint32_t other : beside_) {
      seen_[other] = 0;
      look_at(other, flows, resources[other]);
    }
  }
  return queue_.empty();
}

HETPLAN_INLINE void max_min_levels::look_at(std::uint32_t r, const std::vector<fluid_flow>& flows, const fluid_resource& s) {
  const double level = level_beside_others(r, flows, s);
  if (level == next_[r]) return;
  next_[r] = level;
  if (level == level_[r]) return;
  queue_.push({std::min(level, level_[r]), r});
}

HETPLAN_INLINE double max_min_levels::level_beside_others(std::uint32_t r, const std::vector<fluid_flow>& flows, const fluid_resource& s) {
  if (s.flows.empty()) return none;
  looks_ += s.flows.size();
  limited_.clear();
  double weight = 0, smallest = none;
  for (const std::uint32_t f : s.flows) {
    part mine{none, 0};
    for (const resource_use& u : flows[f].via) {
      if (u.resource.index() == r) mine.weight = u.weight;
      else mine.rate = std::min(mine.rate, level_[u.resource.index()]);
    }
    weight += mine.weight;
    if (mine.rate == none) continue;
    limited_.push_back(mine);
    smallest = std::min(smallest, mine.rate);
  }
  double left = s.capacity, level = 0;
  if (left / weight <= smallest) return left / weight;
  std::sort(limited_.begin(), limited_.end(),
            [](const part& a, const part& b) { return a.rate != b.rate ? a.rate < b.rate : a.weight < b.weight; });
  for (const part& p : limited_) {
    const double share = left / weight;
    if (share <= p.rate) return std::max(level, share);
    left -= p.weight * p.rate;
    weight -= p.weight;
    level = p.rate;
  }
  return limited_.size() == s.flows.size() ? none : std::max(level, left / weight);  // rounding must not lower it
}

HETPLAN_INLINE void end_times::find_due(double time, std::vector<std::uint32_t>& due) {
  if (earliest() > time) return;
  if (played_) return find_due_below(1, time, due);
  for (std::uint32_t f = 0; f < flows_; ++f) {
    if (node_[leaves_ + f] <= time) due.push_back(f);
  }
}

HETPLAN_INLINE void end_times::find_due_below(std::size_t node, double time, std::vector<std::uint32_t>& due) const {
  if (node_[node] > time) return;
  if (node >= leaves_) return due.push_back(static_cast<std::uint32_t>(node - leaves_));
  find_due_below(2 * node, time, due);
  find_due_below(2 * node + 1, time, due);
}

HETPLAN_INLINE void end_times::play() {
  const auto winner = [&](std::size_t n) { return std::min(node_[2 * n], node_[2 * n + 1]); };
  if (flows_ <= few) {
    double first = never;
    for (std::size_t f = 0; f < flows_; ++f) first = std::min(first, node_[leaves_ + f]);
    node_[1] = first;
    played_ = false;
  } else if (!played_ || 4 * changed_.size() > flows_) {
    for (std::size_t n = leaves_ - 1; n > 0; --n) node_[n] = winner(n);
    played_ = true;
  } else {
    for (const std::uint32_t f : changed_) {
      for (std::size_t n = (leaves_ + f) / 2; n > 0 && node_[n] != winner(n); n /= 2) node_[n] = winner(n);
    }
  }
  changed_.clear();
  known_ = true;
}

HETPLAN_INLINE void end_times::grow() {
  const std::vector<double> times(node_.begin() + static_cast<std::ptrdiff_t>(leaves_), node_.end());
  leaves_ *= 2;
  node_.assign(2 * leaves_, never);
  std::copy(times.begin(), times.end(), node_.begin() + static_cast<std::ptrdiff_t>(leaves_));
  known_ = played_ = false;
}

HETPLAN_INLINE void flow_class::begin(double now) {
  marks_.clear();
  moved_ = rate_ = 0;
  since_ = now;
}

HETPLAN_INLINE void flow_class::add(double now, flow_id f, double volume) {
  if (mark_of_.size() <= f) mark_of_.resize(f + 1);
  mark_of_[f] = moved_by(now) + volume;
  marks_.emplace_back(mark_of_[f], f);
  std::push_heap(marks_.begin(), marks_.end(), later);
}

HETPLAN_INLINE void flow_class::remove(flow_id f) {
  std::erase_if(marks_, [&](const mark& m) { return m.second == f; });
  std::make_heap(marks_.begin(), marks_.end(), later);
}

HETPLAN_INLINE void flow_class::set_rate(double now, double rate) {
  moved_ = moved_by(now);
  since_ = now;
  rate_ = rate;
}

HETPLAN_INLINE void flow_class::take_until(double time, std::vector<flow_id>& ended) {
  while (!marks_.empty() && end_of(marks_.front().first) <= time) {
    ended.push_back(marks_.front().second);
    std::pop_heap(marks_.begin(), marks_.end(), later);
    marks_.pop_back();
  }
}

}  // namespace hetplan::detail

namespace hetplan {

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
  if (crowded_) classes_.add(now, f, volume_bytes);
  one_tier_ = one_tier_ && tier == flows_[active_.front()].tier;
  return f;
}

HETPLAN_INLINE void fluid_network::stop(flow_id f) {
  if (crowded_) classes_.remove(f);
  forget(f);
}

HETPLAN_INLINE void fluid_network::set_capacity(std::size_t r, double capacity) {
  resources_[r].capacity = capacity;
  touch(r);
}

HETPLAN_INLINE double fluid_network::left(flow_id f, double now) const {
  if (crowded_) return classes_.left(f, now);
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
    return unset;  // no resource carries all flows
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
    x.remaining = classes_.left(f, now);
    x.since = now;
    x.rate = classes_.rate();
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

}  // namespace hetplan
