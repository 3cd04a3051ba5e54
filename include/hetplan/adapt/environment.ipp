// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/environment.hpp>

#include <tuple>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/adapt/iteration.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/search/ranking.hpp>
#include <hetplan/simulate/simulator.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE device_id elect_coordinator(const cluster& c, const conditions& now) {
  const auto rank = [&](device_id d) { return std::tuple(-c[d].total_compute().value(), -c[d].usable_memory().value(), d); };
  device_id best;
  for (const device& d : c.devices()) {
    if (now.present[d.id.index()] != 0 && (!best.valid() || rank(d.id) < rank(best))) best = d.id;
  }
  if (!best.valid()) throw invalid_input("elect_coordinator: no device of cluster \"" + c.name() + "\" is there; expected at least one");
  return best;
}

HETPLAN_INLINE seconds election_time(const cluster& c, const conditions& now, bytes message) {
  migration talk;
  std::vector<fetch> round;
  for (const device& a : c.devices()) {
    for (const device& b : c.devices()) {
      if (now.present[a.id.index()] == 0 || now.present[b.id.index()] == 0) continue;
      if (is_open(c.network().find(a.id, b.id), now)) round.push_back({a.id, b.id, message, false, {}});
    }
  }
  if (!round.empty()) talk.rounds.push_back(std::move(round));
  return run_migration(talk, c, now).time;
}

HETPLAN_INLINE seconds heartbeat::noticed(seconds at) const {
  double last = std::floor(at.value() / period.value()) * period.value();
  if (last > at.value()) last -= period.value();  // the quotient was rounded up
  return std::max(at, seconds(last) + timeout + probe);
}

HETPLAN_INLINE void check_heartbeat(const heartbeat& h) {
  const auto require = [](bool ok, const char* field, double given, const std::string& expected) {
    if (!ok) throw invalid_input("heartbeat: " + std::string(field) + " = " + to_text(given) + "; expected " + expected);
  };
  require(is_finite(h.period) && h.period.value() > 0, "period", h.period.value(), "seconds > 0");
  require(is_finite(h.timeout) && h.timeout >= h.period, "timeout", h.timeout.value(),
          "at least the period, " + to_text(h.period.value()) + " s");
  require(is_finite(h.probe) && h.probe.value() >= 0, "probe", h.probe.value(), "finite seconds >= 0");
  require(is_finite(h.beat) && h.beat.value() >= 0, "beat", h.beat.value(), "finite bytes >= 0");
}

HETPLAN_INLINE conditions offered(conditions now, std::span<const foreign_traffic> traffic, const network& net) {
  std::vector<double> others(now.capacity.size(), 0);
  for (const foreign_traffic& f : traffic) {
    for (const resource_use& u : net.find(f.from, f.to)->via) others[u.resource.index()] += u.weight;
  }
  for (auto&& [capacity, weight] : ranges::views::zip(now.capacity, others)) capacity = capacity / (1 + weight);
  return now;
}

namespace detail {

/// Returns the job with the pins of devices that are there: one that is away cannot keep its layers.
[[nodiscard]] HETPLAN_INLINE job with_pins_of(job j, const cluster& there) {
  std::erase_if(j.pins,
                [&](const pin& p) { return std::ranges::none_of(there.devices(), [&](const device& d) { return d.name == p.device; }); });
  return j;
}

}  // namespace detail

HETPLAN_INLINE present_problem::present_problem(const planning_problem& whole, const conditions& now, const qoe_target& wanted)
    : part_(part_of(whole.cluster, now.working(), now.capacity)), devices_(whole.cluster.size()),
      problem_(whole.model, part_.devices, slow_down(whole.cost, part_.original | ranges::views::transform([&](device_id d) {
                                                                   return now.speed[d.index()];
                                                                 }) | ranges::to<std::vector>()),
               detail::with_pins_of(whole.job, part_.devices), whole.models, whole.lp, whole.steps) {
  problem_.job.qoe = wanted;
}

HETPLAN_INLINE plan_result present_problem::outside(plan_result r) const {
  for (auto& [p, e] : r.plans) {
    p = outside(std::move(p));
    e = rename_devices(std::move(e), part_.original, devices_);
  }
  if (r.binding) r.binding->device = part_.original[r.binding->device.index()];
  return r;
}

HETPLAN_INLINE void environment::advance(double now) {
  while (next_ < end_ && at_most(timeline_->events[next_].at.value(), now)) {
    const event& e = timeline_->events[next_];
    const device_id coordinates = coordinator();
    apply(actual_, e);
    if (const auto* x = std::get_if<transfer_begins>(&e.what)) {
      transfers_.push_back({x->from, x->to, x->volume.value(), (e.at + latency(*x)).value(), x->priority, purpose::foreign});
      transfers_.back().began = moves(transfers_.back());
    }
    double known_s = known_[next_].value();
    if (coordinates != coordinator() && known_s > e.at.value()) known_s += election_time(*cluster_, actual_).value();
    if (const auto* l = std::get_if<device_leaves>(&e.what)) gone_known_s_[l->device.index()] = known_s;
    if (const auto* j = std::get_if<device_joins>(&e.what)) known_s = std::max(known_s, gone_known_s_[j->device.index()]);  // departs first
    to_notice_.push({known_s, next_++});
  }
  while (at_most(next_notice(), now)) {
    const event& e = timeline_->events[to_notice_.pop().second];
    apply(noticed_, e);
    if (const auto* q = std::get_if<qoe_becomes>(&e.what)) {
      if (q->latency) wanted.latency = q->latency;
      if (q->deadline) wanted.deadline = q->deadline;
    }
    news_ = std::min(news_.value_or(e.at.value()), e.at.value());
  }
}

HETPLAN_INLINE double environment::next_loss(std::span<const device_id> devices, double horizon) const {
  for (std::size_t i = next_; i < end_ && timeline_->events[i].at.value() <= horizon; ++i) {
    const auto* gone = std::get_if<device_leaves>(&timeline_->events[i].what);
    if (gone != nullptr && std::find(devices.begin(), devices.end(), gone->device) != devices.end()) return timeline_->events[i].at.value();
  }
  return never;
}

HETPLAN_INLINE double environment::next_halt(std::span<const device_id> devices, std::span<const resource_id> resources, double after,
                                             double horizon) const {
  const auto among = [](const auto& all, auto x) { return std::find(all.begin(), all.end(), x) != all.end(); };
  double first = never;
  for (std::size_t i = next_; i < end_ && timeline_->events[i].at.value() <= horizon; ++i) {
    const event_payload& what = timeline_->events[i].what;
    const auto* s = std::get_if<speed_becomes>(&what);
    const auto* r = std::get_if<capacity_becomes>(&what);
    const bool halts = (s != nullptr && s->speed == 0 && among(devices, s->device)) ||
                       (r != nullptr && r->capacity.value() == 0 && among(resources, r->resource));
    const double known = known_[i].value();
    if (!halts || known <= after || known > horizon || known >= first) continue;
    conditions then = actual_;
    for (std::size_t k = next_; k < end_ && timeline_->events[k].at.value() <= known; ++k) apply(then, timeline_->events[k]);
    if (s != nullptr ? then.speed[s->device.index()] == 0 : then.capacity[r->resource.index()].value() == 0) first = known;
  }
  return first;
}

HETPLAN_INLINE std::vector<double> environment::halts(double until) const {
  std::vector<double> times;
  for (std::size_t i = next_; i < end_ && timeline_->events[i].at.value() < until; ++i) {
    const event& e = timeline_->events[i];
    const auto* s = std::get_if<speed_becomes>(&e.what);
    const auto* r = std::get_if<capacity_becomes>(&e.what);
    if ((s != nullptr && s->speed == 0) || (r != nullptr && r->capacity.value() == 0)) times.push_back(e.at.value());
  }
  return times;
}

HETPLAN_INLINE simulator_options environment::options(double now, double until) const {
  simulator_options o = from_the_start(actual_, *cluster_);
  o.until = seconds(until - now);
  for (const side_transfer& f : transfers_) {
    if (moves(f)) o.background.push_back({f.from, f.to, bytes(f.left_bytes), seconds(std::max(0.0, f.release_s - now)), f.priority});
  }
  conditions then = actual_;
  for (std::size_t i = next_; i < end_ && timeline_->events[i].at.value() < until; ++i) {
    apply(then, timeline_->events[i]);
    const seconds at = timeline_->events[i].at - seconds(now);
    if (const auto* r = std::get_if<capacity_becomes>(&timeline_->events[i].what)) o.capacities.push_back({at, r->resource, r->capacity});
    if (const auto* s = std::get_if<speed_becomes>(&timeline_->events[i].what)) o.speeds.push_back({at, s->device, s->speed});
    const auto* x = std::get_if<transfer_begins>(&timeline_->events[i].what);
    if (x != nullptr && then.present[x->from.index()] != 0 && then.present[x->to.index()] != 0) {
      o.background.push_back({x->from, x->to, x->volume, at + latency(*x), x->priority});
    }
  }
  return o;
}

HETPLAN_INLINE void environment::begin(const migration& m, purpose what, double now) {
  constexpr int last = std::numeric_limits<int>::max();
  for (const auto& round : m.rounds) {
    for (const fetch& f : round) {
      const route* way = cluster_->network().find(f.from, f.to);
      if (way == nullptr)
        throw invalid_input("run: no route from \"" + (*cluster_)[f.from].name + "\" to \"" + (*cluster_)[f.to].name + "\" for a backup");
      transfers_.push_back({f.from, f.to, f.volume.value(), now + way->latency.value(), last, what});
    }
  }
}

HETPLAN_INLINE void environment::drop(purpose what) {
  std::erase_if(transfers_, [&](const side_transfer& f) { return f.what == what; });
}

HETPLAN_INLINE bool environment::under_way(purpose what) const {
  return std::any_of(transfers_.begin(), transfers_.end(), [&](const side_transfer& f) { return f.what == what; });
}

HETPLAN_INLINE bool environment::waits(purpose what) const {
  return std::any_of(transfers_.begin(), transfers_.end(), [&](const side_transfer& f) { return f.what == what && !moves(f); });
}

HETPLAN_INLINE std::vector<foreign_traffic> environment::foreign() const {
  std::vector<foreign_traffic> traffic;
  for (const side_transfer& f : transfers_) {
    if (f.what == purpose::foreign) traffic.push_back({f.from, f.to, bytes(f.left_bytes), f.priority});
  }
  return traffic;
}

HETPLAN_INLINE double environment::repeats(const std::vector<double>& left, double now) const {
  double most = never;
  std::size_t i = 0;
  for (const side_transfer& f : transfers_) {
    if (!moves(f)) continue;
    const double moved = f.left_bytes - left[i];
    if (!at_most(f.release_s, now) || left[i] <= 0) return 1;
    if (moved > 0) {
      const double whole = std::floor(left[i] / moved);
      most = std::min(most, 1 + whole + (at_most((whole + 1) * moved, left[i]) ? 1 : 0));
    }
    ++i;
  }
  return most;
}

HETPLAN_INLINE std::vector<double> environment::left_after(long long runs, std::vector<double> left) const {
  std::size_t i = 0;
  for (const side_transfer& f : transfers_) {
    if (!moves(f)) continue;
    const double before = static_cast<double>(runs - 1) * (f.left_bytes - left[i]);
    left[i] = at_most(left[i], before) ? 0 : left[i] - before;
    ++i;
  }
  return left;
}

HETPLAN_INLINE std::vector<double> environment::transfers_alone(double now, double until) const {
  if (transfers_.empty()) return {};
  tasks::task_graph_builder b(cluster_->size());  // an empty transfer ends the run
  const side_transfer& any = transfers_.front();
  b.add(tasks::transfer{.from = any.from, .to = any.to, .route = b.add_route({}), .release_s = until - now});
  simulator_options o = options(now, until);
  o.until.reset();
  return simulate(std::move(b).build(), cluster_->network(), policy_of_plan{sharing::fair_share}, o).background_left;
}

HETPLAN_INLINE std::array<environment::carried, 2> environment::settle(const std::vector<double>& left, double now) {
  std::array<carried, 2> both;
  std::vector<std::size_t> moving;
  for (std::size_t f = 0; f < transfers_.size(); ++f) {
    if (moves(transfers_[f])) moving.push_back(f);
  }
  const std::size_t before = transfers_.size();
  advance(now);
  for (std::size_t f = before; f < transfers_.size(); ++f) {
    if (transfers_[f].began) moving.push_back(f);  // started during the run
  }
  for (std::size_t i = 0; i < std::min(left.size(), moving.size()); ++i) {
    side_transfer& f = transfers_[moving[i]];
    if (const double volume = f.left_bytes - left[i]; f.what != purpose::foreign && volume > 0) {
      carried& moved = both[f.what == purpose::weights ? 0 : 1];
      if (moved.sent_bytes.empty()) moved.sent_bytes = moved.received_bytes = std::vector<double>(cluster_->size(), 0);
      moved.volume_bytes += volume;
      moved.sent_bytes[f.from.index()] += volume;
      moved.received_bytes[f.to.index()] += volume;
    }
    f.left_bytes = left[i];
  }
  const auto is_over = [](const side_transfer& f) { return f.left_bytes <= 0; };
  const bool calmer =
      std::any_of(transfers_.begin(), transfers_.end(), [&](const side_transfer& f) { return is_over(f) && f.what == purpose::foreign; });
  if (calmer) news_ = std::min(news_.value_or(now), now);
  std::erase_if(transfers_, is_over);
  return both;
}

}  // namespace hetplan::adapt
