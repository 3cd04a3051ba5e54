// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/partial_orders.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE double order_timeline::longest_span() const { return spans.empty() ? 0 : *std::max_element(spans.begin(), spans.end()); }

namespace detail {

class replay_run {
 public:
  replay_run(const pipeline_times& p, const orders_by_device& orders)
      : p_(p), orders_(orders), m_(static_cast<std::size_t>(p.microbatches)), ahead_(p.stages.size()), behind_(p.stages.size()),
        split_(p.stages.size(), false), ends_(2, std::vector<double>(p.stages.size() * m_, not_yet)) {
    if (orders.size() > p.devices())
      throw invalid_input("orders of " + std::to_string(orders.size()) + " devices; expected at most " + std::to_string(p.devices()));
    for (const stage_delay& e : p.edges) {
      ahead_[e.to].push_back(&e);
      behind_[e.from].push_back(&e);
    }
    std::vector<bool> seen(3 * p.stages.size() * m_, false);
    for (std::size_t d = 0; d < orders.size(); ++d) {
      for (const order_entry& e : orders[d]) {
        const std::size_t s = e.stage.index(), kind = static_cast<std::size_t>(e.what);
        if (kind > 2 || s >= p.stages.size() || p.stages[s].device != d || e.microbatch < 0 || e.microbatch >= p.microbatches) {
          throw invalid_input("orders of device " + std::to_string(d) + ": no task of stage " + std::to_string(s) + ", microbatch " +
                              std::to_string(e.microbatch) + " is its own");
        }
        if (seen[(kind * p.stages.size() + s) * m_ + static_cast<std::size_t>(e.microbatch)]) {
          throw invalid_input("orders of device " + std::to_string(d) + ": a task of stage " + std::to_string(s) + " twice");
        }
        seen[(kind * p.stages.size() + s) * m_ + static_cast<std::size_t>(e.microbatch)] = true;
        if (e.what == phase::backward_weight) split_[s] = true;
      }
    }
  }

  [[nodiscard]] order_timeline run() {
    order_timeline out;
    const std::size_t devices = p_.devices();
    out.tasks.resize(devices);
    out.spans.assign(devices, 0);
    out.peaks.assign(devices, 0);
    std::vector<double> held(devices, 0.0), free(devices, 0.0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t d = 0; d < orders_.size(); ++d) {
        while (out.tasks[d].size() < orders_[d].size()) {
          const order_entry& e = orders_[d][out.tasks[d].size()];
          const double ready = ready_at(e);
          if (ready == not_yet) break;
          const double start = std::max(free[d], ready);
          free[d] = start + length(e);
          record(e, free[d]);
          out.tasks[d].push_back({e, start, free[d]});
          hold(e, held[d], out.peaks[d]);
          moved = true;
        }
      }
    }
    for (std::size_t d = 0; d < orders_.size(); ++d) {
      if (out.tasks[d].size() < orders_[d].size()) out.ends = false;
      if (out.tasks[d].empty()) continue;
      out.spans[d] = out.tasks[d].back().end - out.tasks[d].front().start;
      out.makespan = std::max(out.makespan, out.tasks[d].back().end);
    }
    return out;
  }

 private:
  static constexpr double not_yet = std::numeric_limits<double>::infinity();

  [[nodiscard]] double end_of(phase what, std::size_t stage, const order_entry& e) const {
    return ends_[what == phase::forward ? 0 : 1][stage * m_ + static_cast<std::size_t>(e.microbatch)];
  }
  [[nodiscard]] double ready_at(const order_entry& e) const {
    const std::size_t s = e.stage.index();
    double t = 0;
    if (e.what == phase::forward) {
      for (const stage_delay* a : ahead_[s]) t = std::max(t, end_of(phase::forward, a->from, e) + a->forward);
    } else if (e.what == phase::backward_input) {
      t = end_of(phase::forward, s, e);
      for (const stage_delay* b : behind_[s]) t = std::max(t, end_of(phase::backward_input, b->to, e) + b->backward);
    } else {
      t = end_of(phase::backward_input, s, e);
    }
    return t;
  }
  [[nodiscard]] double length(const order_entry& e) const {
    const phase_times& t = p_.stages[e.stage.index()];
    if (e.what == phase::forward) return t.forward;
    if (e.what == phase::backward_weight) return t.backward_weight;
    return t.backward_input + (split_[e.stage.index()] ? 0 : t.backward_weight);
  }
  void record(const order_entry& e, double end) {
    if (e.what != phase::backward_weight) {
      ends_[e.what == phase::forward ? 0 : 1][e.stage.index() * m_ + static_cast<std::size_t>(e.microbatch)] = end;
    }
  }
  void hold(const order_entry& e, double& held, double& peak) const {
    const phase_times& t = p_.stages[e.stage.index()];
    if (e.what == phase::forward) held += t.activation;
    if (e.what == phase::backward_input) held += t.recomputed;
    peak = std::max(peak, held);
    const double kept = split_[e.stage.index()] ? t.kept_for_weights : 0;
    if (e.what == phase::backward_input) held -= t.recomputed + t.activation - kept;
    if (e.what == phase::backward_weight) held -= kept;
  }

  const pipeline_times& p_;
  const orders_by_device& orders_;
  std::size_t m_;
  std::vector<std::vector<const stage_delay*>> ahead_, behind_;
  std::vector<bool> split_;
  std::vector<std::vector<double>> ends_;
};

}  // namespace detail

HETPLAN_INLINE order_timeline replay_orders(const pipeline_times& p, const orders_by_device& orders) {
  return detail::replay_run(p, orders).run();
}

}  // namespace hetplan::schedule

namespace hetplan::schedule::detail {

HETPLAN_INLINE double common_unit(const std::vector<double>& times) {
  double longest = 0;
  for (const double t : times) longest = std::max(longest, t);
  if (longest <= 0) return 1;
  const double nothing = 1e-11 * longest;
  double unit = longest;
  for (double t : times) {
    while (t > nothing) {
      double rest = unit - t * std::floor(unit / t);
      if (rest > t - nothing) rest = 0;  // a multiple up to rounding
      unit = t;
      t = rest;
    }
  }
  // Euclid's last step is the least exact, so the unit is derived again from the longest time.
  unit = longest / std::round(longest / unit);
  const bool common = longest / unit < 0x1p24 && std::all_of(times.begin(), times.end(), [&](double t) {
                        return std::abs(t - unit * std::round(t / unit)) <= nothing;
                      });
  return common ? unit : longest * 0x1p-36;
}

HETPLAN_INLINE tick_table::tick_table(const pipeline_times& p) : m(static_cast<std::size_t>(p.microbatches)) {
  std::vector<double> times;
  for (const phase_times& s : p.stages) times.insert(times.end(), {s.forward, s.backward_input, s.backward_weight});
  for (const stage_delay& e : p.edges) times.insert(times.end(), {e.forward, e.backward});
  unit = common_unit(times);
  const auto whole = [&](double t) { return static_cast<ticks>(std::llround(t / unit)); };
  devices.resize(p.devices());
  std::vector<double> recomputed(devices.size(), 0.0);
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    const phase_times& s = p.stages[i];
    stages.push_back({.device = s.device,
                      .length = {whole(s.forward), whole(s.backward_input), whole(s.backward_weight)},
                      .ahead = {},
                      .behind = {},
                      .activation = s.activation,
                      .kept = s.kept_for_weights});
    device& d = devices[s.device];
    d.stages.push_back(i);
    d.work += stages[i].length[0] + stages[i].length[1] + stages[i].length[2];
    recomputed[s.device] = std::max(recomputed[s.device], s.recomputed);
  }
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const double limit = p.memory_of(d);
    devices[d].memory = limit + relative_tolerance * limit - recomputed[d];
  }
  for (const stage_delay& e : p.edges) {
    stages[e.to].ahead.push_back({e.from, whole(e.forward)});
    stages[e.from].behind.push_back({e.to, whole(e.backward)});
  }
  std::vector<ticks> begin(stages.size(), 0);
  std::vector<bool> known(stages.size(), true);  // true if nothing else can run on the stage's device before its first forward
  std::vector<std::vector<bool>> from(stages.size(), std::vector<bool>(stages.size(), false));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    from[i][i] = true;
    for (const edge& a : stages[i].ahead) {
      begin[i] = std::max(begin[i], begin[a.stage] + stages[a.stage].length[0] + a.delay);
      if (!known[a.stage]) known[i] = false;
      for (std::size_t j = 0; j < stages.size(); ++j) from[i][j] = from[i][j] || from[a.stage][j];
    }
    if (devices[stages[i].device].stages.front() != i) known[i] = false;
  }
  for (std::size_t i = stages.size(); i-- > 0;) {
    stages[i].window = std::max(stages[i].window, stages[i].length[0]);
    for (const edge& a : stages[i].ahead) {
      const stage& before = stages[a.stage];
      const auto back = std::find_if(before.behind.begin(), before.behind.end(), [&](const edge& e) { return e.stage == i; });
      const ticks around = before.length[0] + a.delay + stages[i].window + stages[i].length[1] + back->delay;
      stages[a.stage].window = std::max(before.window, around);
    }
  }
  for (const stage& s : stages) chain = chain && s.ahead.size() <= 1 && s.behind.size() <= 1;
  before_last_gradient.resize(stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const std::size_t j : devices[stages[i].device].stages) {
      if (from[i][j] || from[j][i]) before_last_gradient[i].emplace_back(j, from[j][i]);
    }
  }
  for (device& d : devices) {
    if (d.stages.empty()) continue;
    d.first_start = never;
    for (const std::size_t i : d.stages) {
      d.first_start = std::min(d.first_start, begin[i]);
      if (!from[i][d.stages.front()]) starts_known = false;
    }
    if (!known[d.stages.front()]) starts_known = false;
  }
}

HETPLAN_INLINE partial_orders::partial_orders(const tick_table& t)
    : t_(&t), done_(3 * t.stages.size(), 0), free_(t.devices.size(), 0), began_(t.devices.size(), never),
      ends_(2 * t.stages.size() * t.m, 0), left_(t.tasks()) {}

HETPLAN_INLINE double partial_orders::held(std::size_t device) const {
  double sum = 0;
  for (const std::size_t s : t_->devices[device].stages) {
    const std::uint32_t* n = &done_[3 * s];
    sum += (n[0] - n[1]) * t_->stages[s].activation + (n[1] - n[2]) * t_->stages[s].kept;
  }
  return sum;
}

HETPLAN_INLINE ticks partial_orders::arrival(std::size_t stage, std::size_t what) const {
  const tick_table::stage& s = t_->stages[stage];
  const std::uint32_t* n = &done_[3 * stage];
  const std::size_t k = n[what];
  if (k == t_->m) return never;
  if (what > 0 && k == n[what - 1]) return never;  // its previous phase has not run
  if (what == 2) return 0;                         // its previous phase ran on the same device
  ticks t = 0;
  for (const tick_table::edge& e : what == 0 ? s.ahead : s.behind) {
    if (done_[3 * e.stage + what] <= k) return never;
    t = std::max(t, end_of(e.stage, what, k) + e.delay);
  }
  return t;
}

HETPLAN_INLINE bool partial_orders::has_room(std::size_t stage, room r) const {
  const tick_table::device& d = t_->devices[t_->stages[stage].device];
  double needed = t_->stages[stage].activation;
  for (const std::size_t s : d.stages) {
    const std::uint32_t* n = &done_[3 * s];
    const double full = t_->stages[s].activation;
    const double holds = (n[0] - n[1]) * full + (n[1] - n[2]) * t_->stages[s].kept;
    needed += holds;
    if (s == stage || r == room::for_itself || n[0] > done_[3 * stage]) continue;
    needed += r == room::for_idle_stages && t_->chain ? std::max(0.0, full - holds) : full;
  }
  return needed <= d.memory;
}

HETPLAN_INLINE ticks partial_orders::earliest(task a, room r) const {
  const ticks t = arrival(a.stage, a.what);
  if (t == never || (a.what == 0 && !has_room(a.stage, r))) return never;
  return std::max(t, free_[t_->stages[a.stage].device]);
}

HETPLAN_INLINE partial_orders::undo partial_orders::give(task a, ticks start) {
  const std::size_t d = t_->stages[a.stage].device;
  const undo u{free_[d], began_[d]};
  began_[d] = std::min(began_[d], start);
  free_[d] = start + length(a);
  std::uint32_t& n = done_[3 * a.stage + a.what];
  if (a.what < 2) ends_[(2 * a.stage + a.what) * t_->m + n] = free_[d];
  ++n;
  --left_;
  return u;
}

HETPLAN_INLINE void partial_orders::take_back(task a, const undo& u) {
  const std::size_t d = t_->stages[a.stage].device;
  free_[d] = u.free;
  began_[d] = u.began;
  --done_[3 * a.stage + a.what];
  ++left_;
}

HETPLAN_INLINE std::uint64_t partial_orders::counts_hash() const {
  std::uint64_t h = 0x9e3779b97f4a7c15U;
  for (const std::uint32_t n : done_) {
    h ^= n;
    h *= 0x100000001b3U;
    h ^= h >> 29U;
  }
  return h;
}

HETPLAN_INLINE void partial_orders::reached(std::vector<ticks>& times) const {
  times.assign(free_.begin(), free_.end());
  for (std::size_t i = 0; i < t_->stages.size(); ++i) {
    const tick_table::stage& s = t_->stages[i];
    for (const std::size_t what : {std::size_t{0}, std::size_t{1}}) {
      for (const tick_table::edge& e : what == 0 ? s.ahead : s.behind) {
        ticks not_before = free_[s.device];
        for (std::size_t k = done(i, what); k < done(e.stage, what); ++k, not_before += s.length[what]) {
          times.push_back(std::max(not_before, end_of(e.stage, what, k) + e.delay));
        }
      }
    }
  }
}

HETPLAN_INLINE orders_by_device orders_of(const tick_table& t, const std::vector<partial_orders::task>& sequence) {
  orders_by_device orders(t.devices.size());
  std::vector<int> next(3 * t.stages.size(), 0);
  for (const partial_orders::task& a : sequence) {
    orders[t.stages[a.stage].device].push_back({static_cast<phase>(a.what), stage_id(a.stage), next[3 * a.stage + a.what]++});
  }
  return orders;
}

HETPLAN_INLINE std::size_t gap_filler::weight_stage(std::size_t device) const {
  const tick_table& t = state_.table();
  std::size_t best = t.stages.size();
  for (const std::size_t s : t.devices[device].stages) {
    if (state_.done(s, 2) < state_.done(s, 1) && (best == t.stages.size() || state_.done(s, 2) < state_.done(best, 2))) best = s;
  }
  return best;
}

HETPLAN_INLINE bool gap_filler::place_weight(std::size_t device) {
  const std::size_t s = weight_stage(device);
  if (s == state_.table().stages.size()) return false;
  const partial_orders::task a{static_cast<std::uint32_t>(s), 2};
  state_.give(a, state_.free_at(device));
  sequence_.push_back(a);
  return true;
}

HETPLAN_INLINE bool gap_filler::fills(std::size_t device, ticks gap) const {
  if ((*gaps_)[device] != gap_rule::largest) return (*gaps_)[device] == gap_rule::any;
  for (std::size_t other = 0; other < idle_.size(); ++other) {
    if (other != device && idle_[other] >= idle_[device] + gap) return false;
  }
  return true;
}

HETPLAN_INLINE bool gap_filler::place(partial_orders::task a) {
  const std::size_t d = state_.table().stages[a.stage].device;
  const ticks arrival = state_.arrival(a.stage, a.what);
  if (arrival == never) return false;
  while (a.what == 0 && !state_.has_room(a.stage, room::for_idle_stages)) {
    if (!place_weight(d)) return false;
  }
  const bool begun = state_.began(d) != never;
  while (begun && arrival > state_.free_at(d)) {
    const ticks gap = arrival - state_.free_at(d);
    const std::size_t s = weight_stage(d);
    if (s == state_.table().stages.size() || (state_.table().stages[s].length[2] > gap && !fills(d, gap))) break;
    place_weight(d);
  }
  const ticks start = std::max(arrival, state_.free_at(d));
  if (begun) idle_[d] += start - state_.free_at(d);
  state_.give(a, start);
  sequence_.push_back(a);
  return true;
}

HETPLAN_INLINE void gap_filler::finish() {
  for (std::size_t d = 0; d < state_.table().devices.size(); ++d) {
    while (place_weight(d)) {
    }
  }
}

HETPLAN_INLINE std::vector<partial_orders::task> filled_orders(const tick_table& t, std::vector<std::vector<partial_orders::task>> passes,
                                                               const std::vector<gap_rule>& gaps, bool pull) {
  gap_filler filler(t, gaps);
  const partial_orders& state = filler.state();
  // Returns the position of a forward of device d that ends by `until` and fits into memory beside all forwards before it.
  const auto pulled = [&](std::size_t d, std::size_t from, ticks until) {
    double needed = state.held(d);
    for (std::size_t i = from; i < passes[d].size() && i < from + 2 * passes.size(); ++i) {
      const partial_orders::task a = passes[d][i];
      if (a.what != 0) continue;
      needed += t.stages[a.stage].activation;
      if (needed > t.devices[d].memory) break;
      const ticks start = state.earliest(a, room::for_idle_stages);
      if (i > from && start < never && start + state.length(a) <= until) return i;
    }
    return passes[d].size();
  };
  std::vector<std::size_t> next(passes.size(), 0);
  std::vector<bool> full(passes.size(), false);  // true if the next forward has no room until a gradient goes before it
  for (;;) {
    std::size_t first = passes.size();
    ticks start = never;
    for (std::size_t d = 0; d < passes.size(); ++d) {
      if (next[d] == passes[d].size()) continue;
      const ticks arrival = filler.state().arrival(passes[d][next[d]].stage, passes[d][next[d]].what);
      if (arrival == never || full[d]) continue;
      const ticks mine = std::max(arrival, filler.state().free_at(d));
      if (mine < start) {
        start = mine;
        first = d;
      }
    }
    if (first < passes.size()) {
      if (pull && start > state.free_at(first) && state.began(first) != never) {
        if (const std::size_t i = pulled(first, next[first], start); i < passes[first].size()) {
          const auto at = [&](std::size_t k) { return passes[first].begin() + static_cast<std::ptrdiff_t>(k); };
          std::rotate(at(next[first]), at(i), at(i + 1));
        }
      }
      if (filler.place(passes[first][next[first]])) ++next[first];
      else full[first] = true;
      continue;
    }
    bool moved = false;
    for (std::size_t d = 0; d < passes.size() && !moved; ++d) {
      for (std::size_t i = next[d]; i < passes[d].size() && !moved; ++i) {
        const partial_orders::task a = passes[d][i];
        if (filler.state().arrival(a.stage, a.what) == never ||
            (full[d] && a.what == 0 && !filler.state().has_room(a.stage, room::for_idle_stages)))
          continue;
        const auto at = [&](std::size_t k) { return passes[d].begin() + static_cast<std::ptrdiff_t>(k); };
        std::rotate(at(next[d]), at(i), at(i + 1));
        full[d] = false;
        moved = true;
      }
    }
    if (!moved) break;
  }
  filler.finish();
  HETPLAN_ASSERT(filler.state().left() == 0);
  return filler.sequence();
}

}  // namespace hetplan::schedule::detail
