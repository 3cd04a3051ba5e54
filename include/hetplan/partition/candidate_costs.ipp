// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/candidate_costs.hpp>

#include <utility>

#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::partition {

HETPLAN_INLINE candidate_costs::candidate_costs(const search_tables& tables, const device_space& space, const plan& blank,
                                                bool keep_budgets)
    : table_(tables.table), cuts_(tables.cuts), savers_(tables.savers), pins_(tables.pins), offload_(tables.offload), space_(space),
      cluster_(tables.cluster), slopes_(tables.slopes), size_(blank.microbatch_size), largest_(std::min(size_, table_.max_share())),
      microbatches_(blank.microbatches), training_(blank.workload.mode == mode::training), keep_budgets_(keep_budgets),
      longer_is_slower_(size_ <= most_portions), repeats_(pass_count(blank.workload, tables.model.tokens_per_sample())),
      tied_(worst_exchange(cluster_.network(), cluster_.devices())) {
  for (std::size_t g = 0; g < space.groups.size(); ++g) rings_.push_back(ring_reduction(cluster_.network(), space.example(g)));
  for (const auto& members : space.classes) {
    limit_.push_back(memory_limit_bytes(cluster_[members.front()]));
    longer_is_slower_ = longer_is_slower_ && grows_with_share(members.front());
    longer_is_slower_ = longer_is_slower_ && !table_.times_sending();  // the first and the last stage send less
  }
}

HETPLAN_INLINE bool candidate_costs::grows_with_share(device_id d) const {
  for (int g = 1; g <= table_.degrees(d); ++g) {
    for (std::size_t s = 1; s < table_.distinct_shares(); ++s) {
      const int less = table_.samples_of(s - 1), more = table_.samples_of(s);
      const double *some = table_.totals(d, less, g), *some_entries = table_.entries(d, less, g);
      const double *all = table_.totals(d, more, g), *all_entries = table_.entries(d, more, g);
      const double rounding_s = 1e-15 * all[table_.size()];
      for (std::size_t b = 0; b < table_.size(); ++b) {
        if (all[b + 1] - all_entries[b] < some[b + 1] - some_entries[b] - rounding_s) return false;
        if (all_entries[b] - all[b] < some_entries[b] - some[b] - rounding_s) return false;  // the boundary before the block
      }
    }
  }
  return true;
}

HETPLAN_INLINE placed_stage candidate_costs::place(std::size_t first, std::size_t last, std::size_t group, int in_flight) const {
  placed_stage s;
  if (!keeps_pins(first, last, group)) return s;
  const demand need = demand_of(first, last, group);
  if (!share_out(first, last, group, need, in_flight)) return s;
  s.total_s = 0;
  s.exists = true;
  s.most_in_flight = std::numeric_limits<int>::max();
  for (const filling& f : filled_) {
    if (f.taken < f.devices) s.exists = false;
    const int most = f.largest_share();
    if (most == 0) continue;
    const interval_time t = table_.time(first, last, f.example, most);
    interval_time more;
    if (in_flight > 0 && class_with_tiers(group)) {
      const double full = need.fixed + most * (in_flight * need.kept + need.once) + table_.workspace().bytes(first, last, most);
      const auto cheapest = offload_.cheapest(first, last, f.example, most, t.degree, full - limit_[f.of_class]);
      if (!cheapest) return {};
      more = *cheapest;
    }
    s.total_s = std::max(s.total_s, t.total_s + more.total_s);
    s.backward_s = std::max(s.backward_s, t.backward_s + more.backward_s);
    s.first_s = std::max(s.first_s, t.first_s + more.first_s);
    s.later_s = std::max(s.later_s, t.later_s + more.later_s);
    s.most_in_flight = std::min(s.most_in_flight, fits(need, f.of_class, most));
    s.collective_s = std::max(s.collective_s, optimizer_s(first, last, group, f.example));
  }
  if (training_) s.collective_s += reduction_s(first, last, group);
  return s;
}

HETPLAN_INLINE std::optional<std::size_t> candidate_costs::class_with_tiers(std::size_t group) const {
  const device_space::device_group& g = space_.groups[group];
  if (g.size() != 1 || !offload_.has_tiers(space_.classes[g.front().of_class].front())) return std::nullopt;
  return g.front().of_class;
}

HETPLAN_INLINE std::vector<share_run> candidate_costs::shares(std::size_t first, std::size_t last, std::size_t group, int in_flight) const {
  std::vector<share_run> runs;
  if (!share_out(first, last, group, demand_of(first, last, group), in_flight)) return runs;
  for (const filling& f : filled_) {
    const int each = f.taken / f.devices, more = f.taken % f.devices;
    if (more > 0) runs.push_back({f.of_class, more, each + 1});
    runs.push_back({f.of_class, f.devices - more, each});
  }
  return runs;
}

HETPLAN_INLINE bool candidate_costs::has_room(std::size_t first, std::size_t last, std::size_t group, int in_flight) const {
  if (!keeps_pins(first, last, group)) return false;
  demand need = demand_of(first, last, group);
  if (savers_.recompute) need.kept = 0;          // a longer stage may have smaller inputs
  if (const auto c = class_with_tiers(group)) {  // an upper bound on the room that tiers can make
    const device_id d = space_.classes[*c].front();
    const double fixed = need.fixed;
    need.fixed -= offload_.most_freed(first, last, d);
    need.fixed = std::max(need.fixed, std::min(fixed, 0.0));
  }
  long long room = 0;
  for (const auto& p : space_.groups[group]) room += static_cast<long long>(p.devices) * cap(need, p.of_class, in_flight);
  return room >= size_;
}

HETPLAN_INLINE stage_traffic candidate_costs::traffic(std::pair<double, double> in, std::pair<double, double> out) const {
  return {out.first + (training_ ? in.second : 0), in.first + (training_ ? out.second : 0)};
}

HETPLAN_INLINE device_part candidate_costs::part(std::size_t first, std::size_t last, std::size_t group, const share_run& r,
                                                 const stage_traffic& t) const {
  const int n = members(group);
  const double reduced = training_ && n > 1 ? ring_share(static_cast<std::size_t>(n)) * table_.trainable_bytes(first, last) : 0;
  const double microbatches = static_cast<double>(repeats_) * microbatches_;
  const device& d = cluster_[space_.classes[r.of_class].front()];
  const energy_slopes& e = slopes_[d.id.index()];
  const double busy = microbatches * table_.time(first, last, d.id, r.samples).total_s + optimizer_s(first, last, group, d.id);
  return {busy,
          e.busy_W * busy + e.send_J_per_byte * (microbatches * r.samples * t.sent + reduced) +
              e.receive_J_per_byte * (microbatches * r.samples * t.received + reduced),
          e.idle_W};
}

HETPLAN_INLINE double candidate_costs::held_bytes(std::size_t first, std::size_t last, std::size_t group, int samples,
                                                  int in_flight) const {
  const demand need = demand_of(first, last, group);
  return need.fixed + samples * (in_flight * need.kept + need.once) + table_.workspace().bytes(first, last, samples);
}

HETPLAN_INLINE stage_budget candidate_costs::budget(std::size_t first, std::size_t last, std::size_t group, int in_flight,
                                                    const stage_traffic& t) const {
  stage_budget sum;
  for (const share_run& r : shares(first, last, group, in_flight)) {
    const device_part x = part(first, last, group, r, t);
    sum.energy_J += r.devices * x.energy_J;
    sum.idle_W += r.devices * x.idle_W;
    if (!keep_budgets_) continue;
    const device& d = cluster_[space_.classes[r.of_class].front()];
    sum.stretch_s = std::max(sum.stretch_s, x.busy_s / d.max_busy);
    if (d.energy_budget) {
      const double left = d.energy_budget->value() * (1 + limit_tolerance) - x.energy_J;
      sum.limit_s = std::min(sum.limit_s, left < 0 ? -1 : x.idle_W > 0 ? left / x.idle_W : std::numeric_limits<double>::infinity());
    }
  }
  return sum;
}

HETPLAN_INLINE candidate_costs::demand candidate_costs::demand_of(std::size_t first, std::size_t last, std::size_t group) const {
  demand need{first, last, table_.state_bytes(first, last), table_.activation_bytes(first, last),
              microbatches_ * table_.cache_bytes(first, last)};
  if (const int n = shards(group); n > 1) need.fixed -= table_.optimizer_bytes(first, last) * (1 - 1.0 / n);
  if (training_ && savers_.recompute) need.once += std::exchange(need.kept, cuts_.bytes_in(first, last).first);
  return need;
}

HETPLAN_INLINE stage candidate_costs::blank_stage(std::string name, std::size_t group) const {
  return {.name = std::move(name),
          .recompute = whole_stage_if(training_ && savers_.recompute),
          .shard = shards(group) > 1 ? sharding::state : sharding::none};
}

HETPLAN_INLINE int candidate_costs::cap(const demand& need, std::size_t of_class, int in_flight) const {
  if (in_flight == 0) return largest_;
  const double room = limit_[of_class] - need.fixed, each = in_flight * need.kept + need.once;
  int most = count_that_fits(room, each, largest_);
  table_.workspace().for_largest(need.first, need.last, [&](const temporary_bytes& t) {
    most = std::min(most, count_that_fits(room - t.fixed, each + t.each, largest_));
  });
  return most;
}

HETPLAN_INLINE int candidate_costs::fits(const demand& need, std::size_t of_class, int samples) const {
  const double room = limit_[of_class] - need.fixed - samples * need.once - table_.workspace().bytes(need.first, need.last, samples);
  return count_that_fits(room, samples * need.kept, std::numeric_limits<int>::max());
}

HETPLAN_INLINE int candidate_costs::members(std::size_t group) const {
  int n = 0;
  for (const auto& p : space_.groups[group]) n += p.devices;
  return n;
}

HETPLAN_INLINE double candidate_costs::least_collective_s(std::size_t first, std::size_t last, std::size_t group) const {
  if (!training_) return 0;
  double slowest = 0;
  for (const auto& p : space_.groups[group])
    slowest = std::max(slowest, optimizer_s(first, last, group, space_.classes[p.of_class].front()));
  return slowest + ring_s(first, last, group);
}

HETPLAN_INLINE double candidate_costs::ring_s(std::size_t first, std::size_t last, std::size_t group) const {
  if (members(group) < 2) return 0;
  const double reduced = table_.trainable_bytes(first, last);
  return reduced > 0 ? rings_[group].time_s(reduced) : 0;
}

HETPLAN_INLINE double candidate_costs::reduction_s(std::size_t first, std::size_t last, std::size_t group) const {
  double total = ring_s(first, last, group);
  if (const double shared = table_.tied_bytes(first, last); shared > 0) total += tied_.swap_s(shared);
  return total;
}

HETPLAN_INLINE bool candidate_costs::share_out(std::size_t first, std::size_t last, std::size_t group, const demand& need,
                                               int in_flight) const {
  filled_.clear();
  const bool tiers = class_with_tiers(group).has_value();  // then memory has a price, and place() asks for it
  for (const auto& p : space_.groups[group]) {
    filled_.push_back({{p.devices, tiers ? largest_ : cap(need, p.of_class, in_flight)}, p.of_class, space_.classes[p.of_class].front()});
  }
  if (filled_.size() == 1) {  // no choice
    filling& only = filled_.front();
    only.taken = size_;
    return only.largest_share() <= only.cap;
  }
  return apportion(size_, filled_, [&](const filling& f, int share) { return table_.total_s(first, last, f.example, share); });
}

HETPLAN_INLINE std::optional<plan> least_overflow(const search_tables& t, const device_space& space, const plan& blank) {
  require_device_space(space, t.cluster, "least_overflow");
  constexpr double inf = std::numeric_limits<double>::infinity();
  const candidate_costs costs(t, space, blank, false);
  const std::size_t n = t.sequence.size();
  const int in_flight = microbatches_in_flight(blank, 1);

  struct filling : sample_taker {
    std::size_t of_class;
  };
  /// Returns the largest fullness of a group's devices and sets their shares by class.
  const auto fill = [&](std::size_t first, std::size_t last, std::size_t group, std::vector<filling>& classes) {
    const auto fullness = [&](const filling& f, int samples) {
      const device& d = t.cluster[space.classes[f.of_class].front()];
      double room = d.memory_for_layers().value();
      for (const memory_tier& tier : d.tiers) room += tier.memory.value();
      const double full = costs.held_bytes(first, last, group, samples, in_flight) / room;
      return std::min(std::numeric_limits<double>::max(), full);  // infinity means that no choice exists
    };
    classes.clear();
    if (!costs.keeps_pins(first, last, group)) return inf;
    int left = blank.microbatch_size;
    for (const auto& p : space.groups[group]) {
      classes.push_back({{.devices = p.devices, .cap = blank.microbatch_size, .taken = p.devices}, p.of_class});
      left -= p.devices;
    }
    if (left < 0 || !apportion(left, classes, fullness)) return inf;
    double fullest = 0;
    for (const filling& f : classes) fullest = std::max(fullest, fullness(f, f.largest_share()));
    return fullest;
  };

  struct choice {
    double fullest = inf;
    std::size_t end = 0, state = 0, group = 0;
  };
  // best[b][s]: best plan of blocks b and later, with the devices of state s taken; (end, state) is the rest behind its first stage.
  std::vector<std::vector<choice>> best(n + 1, std::vector<choice>(space.states()));
  best[n][0].fullest = 0;
  std::vector<filling> classes;
  for (std::size_t end = n; end > 0; --end) {
    for (std::size_t s = 0; s < space.states(); ++s) {
      if (best[end][s].fullest == inf) continue;
      for (const device_space::move& m : space.moves[s]) {
        for (std::size_t begin = end; begin-- > 0;) {
          if (!t.sequence.is_stage(begin, end)) continue;
          const double fullest = std::max(best[end][s].fullest, fill(begin, end, m.group, classes));
          if (fullest < best[begin][m.to].fullest) best[begin][m.to] = {fullest, end, s, m.group};
        }
      }
    }
  }
  std::size_t state = 0;
  for (std::size_t s = 1; s < space.states(); ++s) {
    if (best[0][s].fullest < best[0][state].fullest) state = s;
  }
  if (best[0][state].fullest == inf) return std::nullopt;
  plan nearest = blank;
  std::vector<std::size_t> used(space.classes.size(), 0);
  for (std::size_t begin = 0; begin < n;) {
    const choice& c = best[begin][state];
    stage s = costs.blank_stage("s" + std::to_string(nearest.stages.size()), c.group);
    s.layers = t.layers_of(begin, c.end);
    fill(begin, c.end, c.group, classes);
    for (const filling& f : classes) {
      for (int i = 0; i < f.devices; ++i) s.devices.push_back({space.classes[f.of_class][used[f.of_class]++], f.share(i)});
    }
    nearest.stages.push_back(std::move(s));
    begin = c.end;
    state = c.state;
  }
  set_warmup(nearest, t.model, warmup_rule::one);
  return nearest;
}

}  // namespace hetplan::partition
