// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/automatic_orders.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/schedule/order_rules.hpp>

namespace hetplan::schedule::detail {

class optimum_search {
 public:
  optimum_search(const tick_table& t, order_goal goal, const found_orders& given, long long most)
      : t_(t), outlook_(t, goal), state_(t), waits_(t.devices.size(), 0), short_of_memory_(t.devices.size(), false), most_(most) {
    best_.orders = given;
    for (std::size_t d = 0; d < t.devices.size(); ++d) {
      double all = 0;
      for (const std::size_t s : t.devices[d].stages) all += static_cast<double>(t.m) * t.stages[s].activation;
      short_of_memory_[d] = all > t.devices[d].memory;
    }
  }

  [[nodiscard]] optimum run() {
    best_.proven = outlook_.bound(state_) >= best_.orders.value || extend();
    return std::move(best_);
  }

 private:
  struct branch {
    ticks bound, sum;
    partial_orders::task task;
    ticks start;  ///< start of the task; `never` in the branch that postpones this forward
  };

  /// Explores all branches of the current state. Returns false if the limit on states stopped it.
  bool extend() {
    if (++best_.states > most_) return false;
    if (state_.left() == 0) {
      best_.orders.sequence = sequence_;
      best_.orders.value = outlook_.bound(state_);
      return true;
    }
    for (const branch& b : branches()) {
      if (b.bound >= best_.orders.value) continue;
      bool ended = true;
      const std::size_t d = t_.stages[b.task.stage].device;
      const std::uint64_t waits = waits_[d];
      if (b.start == never) {
        waits_[d] |= std::uint64_t{1} << b.task.stage;
        ended = extend();
      } else {
        waits_[d] = 0;
        const auto undo = state_.give(b.task, b.start);
        sequence_.push_back(b.task);
        if (!seen_better()) ended = extend();
        sequence_.pop_back();
        state_.take_back(b.task, undo);
      }
      waits_[d] = waits;
      if (!ended) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<branch> branches() {
    ticks first_end = never;
    partial_orders::task first;
    const auto open = [&](partial_orders::task a) {
      if (a.what == 0 && (waits_[t_.stages[a.stage].device] >> a.stage & 1U) != 0) return never;
      return state_.earliest(a, room::for_itself);
    };
    for (std::uint32_t s = 0; s < t_.stages.size(); ++s) {
      for (std::uint32_t what = 0; what < 3; ++what) {
        const ticks start = open({s, what});
        if (start < never && start + state_.length({s, what}) < first_end) {
          first_end = start + state_.length({s, what});
          first = {s, what};
        }
      }
    }
    std::vector<branch> found;
    if (first_end == never) return found;
    const std::size_t device = t_.stages[first.stage].device;
    for (const std::size_t s : t_.devices[device].stages) {
      for (std::uint32_t what = 0; what < 3; ++what) {
        const partial_orders::task a{static_cast<std::uint32_t>(s), what};
        const ticks start = open(a);
        if (start == never || (start >= first_end && !(a == first))) continue;
        const auto undo = state_.give(a, start);
        branch b{0, 0, a, start};
        b.bound = outlook_.bound(state_, &b.sum);
        state_.take_back(a, undo);
        found.push_back(b);
      }
    }
    if (first.what == 0 && short_of_memory_[device]) found.push_back({outlook_.bound(state_), never, first, never});
    std::sort(found.begin(), found.end(), [](const branch& a, const branch& b) {
      return std::tie(a.bound, a.sum, a.task.stage, a.task.what) < std::tie(b.bound, b.sum, b.task.stage, b.task.what);
    });
    return found;
  }

  [[nodiscard]] bool seen_better() {
    state_.reached(times_);
    std::uint64_t key = state_.counts_hash();
    for (const std::uint64_t w : waits_) key = (key ^ w) * 0x9e3779b97f4a7c15U;
    std::vector<entry>& same = seen_[{key}];
    for (const entry& e : same) {
      if (e.counts == state_.counts() && e.waits == waits_ &&
          std::equal(times_.begin(), times_.end(), e.times.begin(), [](ticks mine, ticks theirs) { return theirs <= mine; }))
        return true;
    }
    if (stored_ < most_stored) {
      std::erase_if(same, [&](const entry& e) {
        return e.counts == state_.counts() && e.waits == waits_ &&
               std::equal(times_.begin(), times_.end(), e.times.begin(), [](ticks mine, ticks theirs) { return mine <= theirs; });
      });
      same.push_back({state_.counts(), waits_, times_});
      ++stored_;
    }
    return false;
  }

  struct entry {
    std::vector<std::uint32_t> counts;
    std::vector<std::uint64_t> waits;
    std::vector<ticks> times;
  };
  static constexpr std::size_t most_stored = 4'000'000;

  const tick_table& t_;
  order_outlook outlook_;
  partial_orders state_;
  std::vector<std::uint64_t> waits_;  ///< by device: bit set of the stages whose forward is postponed
  std::vector<bool> short_of_memory_;
  long long most_;
  std::vector<partial_orders::task> sequence_;
  std::vector<ticks> times_;
  keyed<std::vector<entry>> seen_;  ///< by hash
  std::size_t stored_ = 0;
  optimum best_;
};

HETPLAN_INLINE optimum proven_optimum(const tick_table& t, order_goal goal, const found_orders& given, long long most) {
  return optimum_search(t, goal, given, most).run();
}

/// Returns the best orders for `more` microbatches that repeat a part of a sequence for fewer; no orders if no part fits.
///
/// The part between two states can repeat if in both states each stage is equally far ahead of the first stage's forwards. Memory then
/// holds as much as before.
/// @param few   table of `sequence`; differs from `more` only in the number of microbatches.
/// Complexity   O(tasks of few * tasks of more).   Source  ours; the building blocks of Qi et al., 2024, are such parts.
[[nodiscard]] found_orders stretched_orders(const tick_table& few, const tick_table& more, order_goal goal,
                                            const std::vector<partial_orders::task>& sequence);

HETPLAN_INLINE found_orders stretched_orders(const tick_table& few, const tick_table& more, order_goal goal,
                                             const std::vector<partial_orders::task>& sequence) {
  found_orders best;
  if (more.m < few.m || sequence.empty()) return best;
  if (more.m == few.m) return {sequence, value_of(more, goal, sequence)};
  // Sorting by start keeps dependencies: a task never starts before what it needs.
  std::vector<std::pair<ticks, partial_orders::task>> timed;
  partial_orders state(few);
  for (const partial_orders::task& a : sequence) {
    const ticks start = std::max(state.arrival(a.stage, a.what), state.free_at(few.stages[a.stage].device));
    timed.emplace_back(start, a);
    state.give(a, start);
  }
  sort_by(timed, [](const auto& x) { return x.first; });
  std::vector<int> ahead(3 * few.stages.size(), 0);  // tasks by stage and phase, less the first stage's forwards
  keyed<std::pair<std::size_t, std::size_t>> seen;   // last position and forward count of each state
  std::size_t forwards = 0;
  std::vector<partial_orders::task> repeated;
  for (std::size_t i = 0; i <= timed.size(); ++i) {
    const key_parts state_now = parts_of(ahead);
    if (!seen.insert(state_now, {i, forwards})) {
      const auto [from, forwards_then] = std::exchange(*seen.find(state_now), {i, forwards});
      const std::size_t more_each = forwards - forwards_then;
      if (more_each > 0 && (more.m - few.m) % more_each == 0) {
        repeated.clear();
        const auto add = [&](std::size_t a, std::size_t b) {
          for (; a < b; ++a) repeated.push_back(timed[a].second);
        };
        add(0, from);
        for (std::size_t n = (more.m - few.m) / more_each + 1; n > 0; --n) add(from, i);
        add(i, timed.size());
        const ticks value = value_of(more, goal, repeated);
        if (value < best.value) best = {repeated, value};
      }
    }
    if (i == timed.size()) break;
    const partial_orders::task a = timed[i].second;
    if (a.stage == 0 && a.what == 0) {
      ++forwards;
      for (std::size_t k = 1; k < ahead.size(); ++k) --ahead[k];
    } else {
      ++ahead[3 * a.stage + a.what];
    }
  }
  return best;
}

/// Returns orders improved by random local search. A move shifts a task of a device past a few others, most often where the device is
/// idle. It is kept if the cost does not rise: the goal and the total by which devices exceed `target`.
///
/// @param steps  approximate limit on tasks replayed; keeps the remainder if `target` is reached earlier.
/// @return       orders no worse than `given`, and within memory if `given` is.
/// Complexity    steps.   Determinism  fixed by the seed.   Source  ours.
[[nodiscard]] found_orders improved_orders(const tick_table& t, order_goal goal, const found_orders& given, ticks target, long long& steps,
                                           std::uint64_t seed);

/// Device orders under local search and their replay.
class moving_orders {
 public:
  moving_orders(const tick_table& t, order_goal goal, const std::vector<partial_orders::task>& sequence, ticks target)
      : goal_(goal), target_(target), state_(t), orders_(t.devices.size()), next_(t.devices.size()), waits_(t.devices.size()) {
    for (const auto& a : sequence) orders_[t.stages[a.stage].device].push_back(a);
  }

  struct value {
    ticks cost = never;  ///< minimised by the search
    ticks goal = never;
  };

  /// Replays the orders. The value is `never` if they deadlock or exceed memory.
  [[nodiscard]] value run() {
    state_ = empty_;
    std::fill(next_.begin(), next_.end(), 0);
    for (auto& w : waits_) w.clear();
    sequence_.clear();
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t d = 0; d < orders_.size(); ++d) {
        for (; next_[d] < orders_[d].size(); ++next_[d]) {
          const auto a = orders_[d][next_[d]];
          const ticks arrival = state_.arrival(a.stage, a.what);
          if (arrival == never) break;
          if (a.what == 0 && !state_.has_room(a.stage, room::for_itself)) return {};
          if (arrival > state_.free_at(d) && state_.began(d) != never) waits_[d].push_back(next_[d]);
          state_.give(a, std::max(arrival, state_.free_at(d)));
          sequence_.push_back(a);
          moved = true;
        }
      }
    }
    if (state_.left() > 0) return {};
    value v{0, 0};
    for (std::size_t d = 0; d < orders_.size(); ++d) {
      if (orders_[d].empty()) continue;
      const ticks mine = state_.free_at(d) - (goal_ == order_goal::makespan ? 0 : state_.began(d));
      v.goal = std::max(v.goal, mine);
      v.cost += std::max(ticks{0}, mine - target_);
    }
    v.cost += static_cast<ticks>(orders_.size()) * (v.goal - target_);
    return v;
  }

  std::vector<std::vector<partial_orders::task>>& orders() { return orders_; }
  [[nodiscard]] const std::vector<partial_orders::task>& sequence() const { return sequence_; }
  /// Returns the positions of a device's tasks that start after a wait.
  [[nodiscard]] const std::vector<std::size_t>& waits(std::size_t device) const { return waits_[device]; }

 private:
  order_goal goal_;
  ticks target_;
  partial_orders state_, empty_{state_};
  std::vector<std::vector<partial_orders::task>> orders_;
  std::vector<std::size_t> next_;
  std::vector<std::vector<std::size_t>> waits_;
  std::vector<partial_orders::task> sequence_;
};

HETPLAN_INLINE found_orders improved_orders(const tick_table& t, order_goal goal, const found_orders& given, ticks target, long long& steps,
                                            std::uint64_t seed) {
  moving_orders moving(t, goal, given.sequence, target);
  found_orders best = given;
  auto now = moving.run();
  if (now.goal == never) return best;
  std::vector<std::vector<std::size_t>> waits(t.devices.size());
  const auto note_waits = [&] {
    for (std::size_t d = 0; d < waits.size(); ++d) waits[d] = moving.waits(d);
  };
  note_waits();
  const auto random = [&](std::size_t n) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>((seed >> 33U) % n);
  };
  constexpr std::size_t farthest = 6;
  while (steps > 0 && best.value > target) {
    --steps;
    const std::size_t d = random(t.devices.size());
    auto& order = moving.orders()[d];
    if (order.size() < 2) continue;
    std::size_t from = random(order.size());
    if (!waits[d].empty() && random(4) != 0) from = waits[d][random(waits[d].size())] + random(farthest);
    const std::size_t far = 1 + random(farthest);
    std::size_t to = random(2) == 0 ? from - std::min(from, far) : from + far;
    from = std::min(from, order.size() - 1);
    to = std::min(to, order.size() - 1);
    if (from == to || order[from] == order[to]) continue;
    const auto shift = [&](std::size_t a, std::size_t b) {
      const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
      if (a < b) std::rotate(at(a), at(a + 1), at(b + 1));
      else std::rotate(at(b), at(a), at(a + 1));
    };
    shift(from, to);
    const auto next = moving.run();
    steps -= static_cast<long long>(moving.sequence().size());
    if (next.goal == never || next.cost > now.cost) {
      shift(to, from);
      continue;
    }
    now = next;
    note_waits();
    if (now.goal < best.value) best = {moving.sequence(), now.goal};
  }
  return best;
}

/// State of automatic_orders: candidates, the best first, and steps left.
class automatic_search {
 public:
  automatic_search(const pipeline_times& p, const automatic_options& options)
      : p_(p), options_(options), table_(p), left_(options.steps),
        bound_(order_outlook(table_, options.goal).bound(partial_orders(table_))) {
    if (goal_known()) return;
    bound_ = 0;  // a device that begins later may have a shorter span
    for (const auto& d : table_.devices) bound_ = std::max(bound_, static_cast<ticks>(table_.m) * d.work);
  }

  [[nodiscard]] const tick_table& table() const { return table_; }
  [[nodiscard]] ticks bound() const { return bound_; }
  /// True if the goal depends on the ends of devices alone.
  [[nodiscard]] bool goal_known() const { return options_.goal == order_goal::makespan || table_.starts_known; }
  [[nodiscard]] long long left() const { return left_; }
  /// True if the best candidate reaches the lower bound.
  [[nodiscard]] bool done() const { return !found_.empty() && found_.front().orders.value <= bound_; }
  struct candidate {
    found_orders orders;
    const char* by;
  };
  [[nodiscard]] const std::vector<candidate>& found() const { return found_; }

  void run() {
    for (const auto& [rule, name] : {std::pair{dispatch_rule::eager, "eager"}, std::pair{dispatch_rule::compact, "compact"}}) {
      add(dispatched_sequence(table_, rule), name);
    }
    patterns();
    prove();
    beams();
    fewer();
    improve();
    prove();
  }

 private:
  static constexpr std::size_t most_of_a_kind = 6, most_stages_proven = 64;

  void add(found_orders&& f, const char* by) {
    if (f.value == never) return;
    const auto worse = [&](const candidate& c) { return f.value < c.orders.value; };
    const auto at = std::find_if(found_.begin(), found_.end(), worse);
    if (std::any_of(found_.begin(), at, [&](const candidate& c) { return c.orders.sequence == f.sequence; })) return;
    found_.insert(at, {std::move(f), by});
    // A limit per method keeps candidates diverse: local search may gain more from a worse candidate of another method.
    std::size_t same = 0;
    const auto too_many =
        std::find_if(found_.begin(), found_.end(), [&](const candidate& c) { return c.by == by && ++same > most_of_a_kind; });
    if (too_many != found_.end()) found_.erase(too_many);
  }
  void add(std::vector<partial_orders::task>&& sequence, const char* by) {
    const ticks value = value_of(table_, options_.goal, sequence);
    left_ -= static_cast<long long>(sequence.size());
    add(found_orders{std::move(sequence), value}, by);
  }

  void patterns() {
    if (done()) return;
    add(best_rounds(table_, options_.goal), "rounds");
    const bool one_each = std::all_of(table_.devices.begin(), table_.devices.end(), [](const auto& d) { return d.stages.size() <= 1; });
    if (one_each) {
      long long share = left_ / 4;
      left_ -= share;
      add(searched_rounds(table_, options_.goal, bound_, share), "rounds");
      left_ += share;
      return;
    }
    if (is_v_shape(table_)) {
      long long share = left_ / 4;
      left_ -= share;
      v_orders v = searched_v(table_, options_.goal, bound_, most_of_a_kind, share);
      for (found_orders& f : v.as_they_are) add(std::move(f), "V blocks");
      for (found_orders& f : v.gaps_chosen) add(std::move(f), "V blocks, gaps chosen");
      left_ += share;
    }
    if (const auto passes = interleaved_passes(table_); !passes.empty()) {
      for (const bool pull : {false, true}) {
        for (const gap_rule g : {gap_rule::whole, gap_rule::largest, gap_rule::any}) {
          add(filled_orders(table_, passes, std::vector<gap_rule>(table_.devices.size(), g), pull), "interleaved");
        }
      }
    }
  }

  /// Runs branch and bound with a share of all steps, unless it has been tried at the best value.
  void prove() {
    if (done() || !goal_known()) return;
    if (table_.stages.size() > most_stages_proven || found_.front().orders.value == tried_to_prove_) return;
    constexpr long long steps_a_state = 100;
    optimum o = proven_optimum(table_, options_.goal, found_.front().orders, options_.steps / (4 * steps_a_state));
    left_ -= o.states * steps_a_state;
    tried_to_prove_ = o.orders.value;
    if (o.proven) bound_ = o.orders.value;
    if (o.orders.value < found_.front().orders.value) add(std::move(o.orders), "branch and bound");
  }

  /// Runs wider and wider beams while steps suffice. A child costs one bound, which visits all stages.
  void beams() {
    const long long each = static_cast<long long>(table_.tasks() * (table_.stages.size() + 4));
    for (const std::size_t width : {std::size_t{5}, std::size_t{20}, std::size_t{60}}) {
      const long long cost = each * static_cast<long long>(width) * 2;
      if (done() || cost > left_ / 4) return;
      left_ -= cost;
      add(beam_search(table_, options_.goal, width), "beam");
    }
  }

  /// Stretches orders for two and three microbatches per device, which cost fewer steps: the steady state of a pipeline repeats.
  void fewer() {
    const int per_device = static_cast<int>(p_.devices());
    for (const int m : {2 * per_device, 3 * per_device}) {
      if (done() || m * 4 > 3 * p_.microbatches || left_ <= 0) return;
      pipeline_times less = p_;
      less.microbatches = m;
      automatic_options o = options_;
      o.steps = left_ / 3;
      automatic_search small(less, o);
      small.run();
      left_ -= o.steps - small.left();
      for (const candidate& c : small.found()) {
        if (done()) return;
        add(stretched_orders(small.table(), table_, options_.goal, c.orders.sequence), c.by);
      }
    }
  }

  void improve() {
    // Half of the steps goes to all candidates alike, since the best one now may not end up best; the rest goes to the best one.
    const std::vector<candidate> starts = found_;
    const long long each = left_ / 2 / static_cast<long long>(starts.size());
    for (std::size_t i = 0; i < starts.size(); ++i) improve(starts[i], each, i);
    for (std::uint64_t i = starts.size(); left_ > 0 && !done(); ++i) improve(candidate(found_.front()), std::max(left_ / 3, each / 4), i);
  }
  void improve(const candidate& c, long long share, std::uint64_t draw) {
    if (done()) return;
    left_ -= share;
    add(improved_orders(table_, options_.goal, c.orders, bound_, share, options_.seed + draw), c.by);
    left_ += share;
  }

  const pipeline_times& p_;
  automatic_options options_;
  tick_table table_;
  long long left_;
  ticks bound_, tried_to_prove_ = never;
  std::vector<candidate> found_;
};

}  // namespace hetplan::schedule::detail

namespace hetplan::schedule {

HETPLAN_INLINE found_by_search automatic_orders(const pipeline_times& p, const automatic_options& options) {
  check(p);
  detail::automatic_search search(p, options);
  search.run();
  const auto& best = search.found().front();
  found_by_search out;
  out.orders = detail::orders_of(search.table(), best.orders.sequence);
  out.value = static_cast<double>(best.orders.value) * search.table().unit;
  out.bound = static_cast<double>(search.bound()) * search.table().unit;
  out.optimal = search.done();
  out.by = best.by;
  out.steps = options.steps - search.left();
  return out;
}

}  // namespace hetplan::schedule
