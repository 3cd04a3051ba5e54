// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/improve_schedule.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <hetplan/core/sorting.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>

namespace hetplan::place {

/// Schedules that share_out tries in a round, and the number of its rounds.
inline constexpr std::size_t share_out_levels = 16, share_out_rounds = 4;

/// Moves operators of the most loaded device to the devices with most room, those first that their longest transfers delay least: more
/// and more of them, until that no longer helps. The first round starts from everything on one device, the others from the best. Moves of
/// single operators do not come that far with hundreds of independent operators.
///
/// @param base   a schedule of the table.
/// @param tried  counts the schedules that were made.
/// @return       the best of them if it is shorter than `base`; else `base`. Within memory if `base` is.
/// Complexity    levels x rounds times schedule_in_order, and O(edges x devices + operators x devices x levels) a round.
/// Source        ours; longest first to where it ends first: Graham, "Bounds on Multiprocessing Timing Anomalies", 1969.
[[nodiscard]] operator_schedule share_out(const placement_table& t, const placement_rules& r, operator_schedule base, long long& tried);

namespace detail {

/// Returns how much longer the path through an operator is on another device, by its longest transfers.
[[nodiscard]] HETPLAN_INLINE double detour_s(const placement_table& t, const placement_rules& r, const std::vector<std::size_t>& device,
                                             std::size_t v, std::size_t to) {
  const auto through_s = [&](std::size_t k) {
    double in_s = 0, out_s = 0;
    for (const std::uint32_t e : t.in_edges(v)) in_s = std::max(in_s, carried_s(t, r.copies, e, device[t.edges()[e].from], k));
    for (const std::uint32_t e : t.out_edges(v)) out_s = std::max(out_s, carried_s(t, r.copies, e, k, device[t.edges()[e].to]));
    return in_s + t.time_s(v, k) + out_s;
  };
  return through_s(to) - through_s(device[v]);
}

/// Returns the best schedule of one round, from one schedule.
[[nodiscard]] HETPLAN_INLINE operator_schedule share_out_once(const placement_table& t, const placement_rules& r, operator_schedule base,
                                                              long long& tried) {
  const std::size_t d = t.devices();
  std::vector<double> load(d, 0);
  for (std::size_t v = 0; v < t.size(); ++v) load[base.device[v]] += t.time_s(v, base.device[v]);
  const auto home = static_cast<std::size_t>(std::max_element(load.begin(), load.end()) - load.begin());
  std::vector<std::pair<double, std::size_t>> leaving;  // (least loss in seconds, operator)
  for (std::size_t v = 0; v < t.size(); ++v) {
    if (base.device[v] != home || t.time_s(v, home) <= 0) continue;
    double least_s = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < d; ++k) {
      if (k != home) least_s = std::min(least_s, detour_s(t, r, base.device, v, k));
    }
    if (std::isfinite(least_s)) leaving.emplace_back(least_s, v);
  }
  sort_stably(leaving);
  const std::vector<std::size_t> sequence = sequence_of(t, base);
  operator_schedule best = std::move(base);
  const std::vector<std::size_t> before = best.device;
  constexpr int most_idle = 3;
  std::size_t last = 0;
  int idle = 0;
  for (std::size_t level = 1; level <= share_out_levels && idle < most_idle; ++level) {
    std::size_t n = leaving.size() * level / share_out_levels;
    while (n > 0 && n < leaving.size() && leaving[n].first == leaving[n - 1].first) ++n;
    if (n <= last) continue;
    last = n;
    std::vector<std::pair<double, std::size_t>> longest_first;
    std::vector<double> room = load;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t v = leaving[i].second;
      longest_first.emplace_back(-t.time_s(v, home), v);
      room[home] -= t.time_s(v, home);
    }
    sort_stably(longest_first);
    std::vector<std::size_t> device = before;
    device_memory memory(t);
    for (std::size_t v = 0; v < t.size(); ++v) memory.add(v, device[v]);
    for (const auto& [time, v] : longest_first) {
      memory.remove(v, home);
      std::size_t to = home;
      for (std::size_t k = 0; k < d; ++k) {
        if (room[k] + t.time_s(v, k) < room[to] + t.time_s(v, to) && memory.fits(v, k)) to = k;
      }
      room[to] += t.time_s(v, to);
      memory.add(v, to);
      device[v] = to;
    }
    ++tried;
    operator_schedule s = schedule_in_order(t, r, sequence, device);
    ++idle;
    if (s.makespan_s < best.makespan_s) best = std::move(s), idle = 0;
  }
  return best;
}

}  // namespace detail

HETPLAN_INLINE operator_schedule share_out(const placement_table& t, const placement_rules& r, operator_schedule base, long long& tried) {
  operator_schedule best = std::move(base);
  const auto take = [&](operator_schedule other) {
    const bool shorter = other.makespan_s < best.makespan_s;
    if (shorter) best = std::move(other);
    return shorter;
  };
  if (operator_schedule alone = one_device(t, r); alone.found())
    static_cast<void>(take(detail::share_out_once(t, r, std::move(alone), tried)));
  for (std::size_t round = 1; round < share_out_rounds && take(detail::share_out_once(t, r, best, tried)); ++round) {
  }
  return best;
}

namespace detail {

/// Operators that are placed anew between fixed ones before and behind them.
class placement_window {
 public:
  placement_window(const placement_table& t, const placement_rules& r, std::uint64_t seed)
      : table_(t), rules_(r), holds_(t, r.contention), random_(seed), inside_(t.size(), 0), rank_(t.size(), 0), end_(t.size(), 0),
        behind_s_(t.size(), 0), sent_(r.copies == transfer_copies::per_device ? t.size() * t.devices() : 0), memory_(t) {}

  /// Opens the window on the operators at [first, last) of a schedule's sequence. Times outside the window are the schedule's.
  void open(const std::vector<std::size_t>& sequence, std::size_t first, std::size_t last, const operator_schedule& s) {
    for (const std::size_t v : ops_) inside_[v] = 0;
    ops_.assign(sequence.begin() + static_cast<std::ptrdiff_t>(first), sequence.begin() + static_cast<std::ptrdiff_t>(last));
    // The trials' tails need the table's topological order, not that of starts.
    for (const std::size_t v : ops_) inside_[v] = 1;
    topological_.clear();
    for (const std::size_t v : sequence_in_table_order(first, last, sequence)) topological_.push_back(v);
    const std::size_t d = table_.devices();
    if (device_.empty()) {
      device_ = s.device;
      for (std::size_t v = 0; v < table_.size(); ++v) memory_.add(v, device_[v]);
    }
    for (std::size_t v = 0; v < table_.size(); ++v) move(v, s.device[v]);
    free_s_.assign(d, 0);
    next_s_.assign(d, 0);
    for (std::size_t i = 0; i < first; ++i) {
      const std::size_t v = sequence[i];
      end_[v] = s.start_s[v] + table_.time_s(v, device_[v]);
      free_s_[device_[v]] = std::max(free_s_[device_[v]], end_[v]);
    }
    measure_behind(sequence, last);
    channel_s_.assign(holds_.size(), 0);
    already_sent_.clear();
    const double start_s = start_of(s);
    for (const scheduled_transfer& x : s.transfers) {
      const operator_edge& e = table_.edges()[x.edge];
      if (inside_[e.from] || inside_[e.to] || x.end_s > start_s) continue;
      if (rules_.contention != contention::shared || held_s(table_, rules_, x.edge, x.from, x.to) > 0) {
        for (const std::size_t c : holds_.of(x.from, x.to)) channel_s_[c] = std::max(channel_s_[c], x.end_s);
      }
      if (!sent_.empty()) already_sent_.push_back({e.from * d + x.to, x.end_s});
    }
  }

  /// Returns the cost of a trial in operators: four edges cost as much as one, and so do sixteen devices or channels.
  [[nodiscard]] long long trial_operators() const {
    std::size_t edges = 0;
    for (const std::size_t v : ops_) edges += table_.in_edges(v).size() + table_.out_edges(v).size();
    return static_cast<long long>(std::max({ops_.size(), edges / 8, (free_s_.size() + channel_s_.size()) / 16}));
  }

  /// Runs trials until `steps` operators have been scheduled. Returns how many were.
  /// @param heat  initial threshold, in operators of mean length.
  long long search(long long steps, double heat) {
    const long long a_trial = trial_operators();
    long long used = a_trial;
    double value = evaluate();
    best_ = value;
    best_device_ = devices_of_window();
    best_order_ = order_;
    // A trial worse by less than the threshold is accepted. The threshold falls to a hundredth.
    double threshold = heat * value / static_cast<double>(table_.size());
    const long long cooled_at = std::max(1LL, steps / 64);
    constexpr double cooling = 0.93;  // 64 times: to a hundredth
    for (long long next = used + cooled_at; used < steps;) {
      for (; used >= next; next += cooled_at) threshold *= cooling;
      change();
      used += 1 + static_cast<long long>(changed_.size());
      if (changed_.empty()) continue;
      const bool fits =
          std::all_of(changed_.begin(), changed_.end(), [&](const auto& c) { return memory_.free_bytes(device_[c.first]) >= 0; });
      if (!fits) {
        undo();
        continue;
      }
      used += a_trial;
      const double now = evaluate();
      if (now > value + threshold) {
        undo();
        continue;
      }
      value = now;
      if (value < best_) {
        best_ = value;
        best_device_ = devices_of_window();
        best_order_ = order_;
      }
    }
    return used;
  }

  [[nodiscard]] const std::vector<std::size_t>& operators() const { return ops_; }
  [[nodiscard]] const std::vector<std::size_t>& best_device() const { return best_device_; }  ///< by index in operators()
  [[nodiscard]] const std::vector<std::size_t>& best_order() const { return best_order_; }

 private:
  [[nodiscard]] std::size_t draw(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  [[nodiscard]] double start_of(const operator_schedule& s) const {
    double first = std::numeric_limits<double>::infinity();
    for (const std::size_t v : ops_) first = std::min(first, s.start_s[v]);
    return first;
  }

  [[nodiscard]] std::vector<std::size_t> sequence_in_table_order(std::size_t first, std::size_t last,
                                                                 const std::vector<std::size_t>& sequence) {
    if (position_.empty()) {
      position_.resize(table_.size());
      for (std::size_t i = 0; i < table_.size(); ++i) position_[table_.order()[i]] = i;
    }
    std::vector<std::size_t> all(sequence.begin() + static_cast<std::ptrdiff_t>(first),
                                 sequence.begin() + static_cast<std::ptrdiff_t>(last));
    sort_by(all, [&](std::size_t v) { return position_[v]; });
    return all;
  }

  /// Measures the time from the start of each operator behind the window to the end of all, by data and by the order on its device.
  void measure_behind(const std::vector<std::size_t>& sequence, std::size_t last) {
    for (std::size_t i = sequence.size(); i-- > last;) {
      const std::size_t v = sequence[i], k = device_[v];
      double rest = next_s_[k];
      for (const std::uint32_t e : table_.out_edges(v)) {
        const std::size_t w = table_.edges()[e].to;
        rest = std::max(rest, carried_s(table_, rules_.copies, e, k, device_[w]) + behind_s_[w]);
      }
      next_s_[k] = behind_s_[v] = rest + table_.time_s(v, k);
    }
  }

  /// Schedules the window, longest tail first. Returns an estimate of the makespan.
  [[nodiscard]] double evaluate() {
    for (auto it = topological_.rbegin(); it != topological_.rend(); ++it) {
      const std::size_t v = *it, k = device_[v];
      double rest = 0;
      for (const std::uint32_t e : table_.out_edges(v)) {
        const std::size_t w = table_.edges()[e].to;
        rest = std::max(rest, carried_s(table_, rules_.copies, e, k, device_[w]) + (inside_[w] ? rank_[w] : behind_s_[w]));
      }
      rank_[v] = rest + table_.time_s(v, k);
    }
    order_ = topological_;
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return rank_[a] > rank_[b]; });
    device_s_ = free_s_;
    used_channel_s_ = channel_s_;
    ++stamp_;
    for (const auto& [key, at_s] : already_sent_) sent_[key] = {stamp_, at_s};
    double value = 0;
    for (const std::size_t v : order_) {
      const std::size_t k = device_[v];
      double data_s = 0;
      for (const std::uint32_t e : table_.in_edges(v)) data_s = std::max(data_s, arrival_s(e, k));
      end_[v] = std::max(data_s, device_s_[k]) + table_.time_s(v, k);
      device_s_[k] = end_[v];
      value = std::max(value, end_[v] + rank_[v] - table_.time_s(v, k));
    }
    for (std::size_t k = 0; k < device_s_.size(); ++k) value = std::max(value, device_s_[k] + next_s_[k]);
    return value;
  }

  [[nodiscard]] double arrival_s(std::uint32_t edge, std::size_t device) {
    const std::size_t u = table_.edges()[edge].from, from = device_[u];
    if (from == device) return end_[u];
    if (!sent_.empty()) {
      if (const auto& s = sent_[u * table_.devices() + device]; s.first == stamp_) return s.second;
    }
    double there_s = end_[u] + carried_s(table_, rules_.copies, edge, from, device);
    if (const auto held = holds_.of(from, device); !held.empty()) {
      const double holds_s = held_s(table_, rules_, edge, from, device);
      if (rules_.contention != contention::shared || holds_s > 0) {
        for (const std::size_t c : held) there_s = std::max(there_s, used_channel_s_[c] + holds_s);
        for (const std::size_t c : held) used_channel_s_[c] = there_s;
      }
    }
    if (!sent_.empty()) sent_[u * table_.devices() + device] = {stamp_, there_s};
    return there_s;
  }

  /// Moves some operators of the window to one device. Sets changed_ to them and their former devices.
  void change() {
    changed_.clear();
    const std::size_t to = draw(table_.devices()), most = 1 + draw(draw(3) == 0 ? 30 : 6), kind = draw(6);
    const std::size_t first = ops_[draw(ops_.size())];
    if (kind == 0) {  // neighbours in the order
      for (std::size_t i = draw(ops_.size()), n = 0; i < topological_.size() && n < most; ++i, ++n) move(topological_[i], to);
    } else if (kind == 1) {  // a path
      std::size_t v = first;
      for (std::size_t n = 0; n < most && inside_[v]; ++n) {
        move(v, to);
        const auto out = table_.out_edges(v);
        if (out.empty()) break;
        v = table_.edges()[out[draw(out.size())]].to;
      }
    } else if (kind == 4) {  // a swap of one or two operators for one or two of another device, possible even if memories are full
      const std::size_t mine = 1 + draw(2), theirs = 1 + draw(2);  // drawn in this order by every compiler
      exchange(first, mine, theirs);
    } else {  // a neighbourhood, an island of one device, or a branch between hubs of many readers or inputs
      grow(first, kind == 2 ? most : kind == 3 ? 4 * most : 64, kind == 3, kind == 5, to);
    }
  }

  void exchange(std::size_t first, std::size_t mine, std::size_t theirs) {
    const std::size_t here = device_[first], there = device_[ops_[draw(ops_.size())]];
    if (here == there) return;
    move(first, there);
    const std::size_t offset = draw(ops_.size());
    for (std::size_t i = 0, most = std::min<std::size_t>(ops_.size(), 16); i < most && (mine > 1 || theirs > 0); ++i) {
      const std::size_t v = ops_[(offset + i) % ops_.size()];
      if (v == first) continue;
      if (device_[v] == here && mine > 1 && !just_moved(v)) {
        move(v, there);
        --mine;
      } else if (device_[v] == there && theirs > 0 && !just_moved(v)) {
        move(v, here);
        --theirs;
      }
    }
  }
  [[nodiscard]] bool just_moved(std::size_t v) const {
    return std::any_of(changed_.begin(), changed_.end(), [&](const auto& c) { return c.first == v; });
  }
  [[nodiscard]] bool is_hub(std::size_t v) const { return table_.in_edges(v).size() > 3 || table_.out_edges(v).size() > 3; }

  void grow(std::size_t first, std::size_t most, bool island, bool branch, std::size_t to) {
    const std::size_t of = device_[first];
    ++round_;
    if (met_.empty()) met_.assign(table_.size(), 0);
    queue_ = {first};
    met_[first] = round_;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::size_t v = queue_[i];
      const auto meet = [&](std::size_t w) {
        if (queue_.size() >= most || !inside_[w] || met_[w] == round_ || (island && device_[w] != of) || (branch && is_hub(w))) return;
        met_[w] = round_;
        queue_.push_back(w);
      };
      for (const std::uint32_t e : table_.out_edges(v)) meet(table_.edges()[e].to);
      for (const std::uint32_t e : table_.in_edges(v)) meet(table_.edges()[e].from);
    }
    for (const std::size_t v : queue_) move(v, to);
  }

  void move(std::size_t v, std::size_t to) {
    if (device_[v] == to || !std::isfinite(table_.time_s(v, to))) return;
    changed_.emplace_back(v, device_[v]);
    memory_.remove(v, device_[v]);
    memory_.add(v, to);
    device_[v] = to;
  }
  void undo() {
    for (auto it = changed_.rbegin(); it != changed_.rend(); ++it) {
      memory_.remove(it->first, device_[it->first]);
      memory_.add(it->first, it->second);
      device_[it->first] = it->second;
    }
  }

  [[nodiscard]] std::vector<std::size_t> devices_of_window() const {
    std::vector<std::size_t> all;
    all.reserve(ops_.size());
    for (const std::size_t v : ops_) all.push_back(device_[v]);
    return all;
  }

  const placement_table& table_;
  placement_rules rules_;
  channels holds_;
  std::mt19937_64 random_;
  std::vector<std::size_t> ops_, topological_, order_, position_, device_;
  std::vector<char> inside_;
  std::vector<double> rank_, end_, behind_s_;
  std::vector<double> free_s_, next_s_, device_s_;    ///< by device: time free before the window; tail behind it; time free in a trial
  std::vector<double> channel_s_, used_channel_s_;    ///< by channel: time free before the window; in a trial
  std::vector<std::pair<std::size_t, double>> sent_;  ///< with copies per device: (trial, arrival of the output)
  std::vector<std::pair<std::size_t, double>> already_sent_;
  std::size_t stamp_ = 0, round_ = 0;
  std::vector<std::size_t> met_, queue_;
  std::vector<std::pair<std::size_t, std::size_t>> changed_;  ///< (operator, former device)
  device_memory memory_;
  double best_ = 0;
  std::vector<std::size_t> best_device_, best_order_;
};

}  // namespace detail

HETPLAN_INLINE operator_schedule improve_schedule(const placement_table& t, const placement_rules& r, operator_schedule start,
                                                  const improve_options& options, const any_observer<schedule_improved>& observer) {
  if (!start.found() || t.devices() < 2) return start;
  operator_schedule best = std::move(start);
  detail::placement_window window(t, r, options.seed);
  const std::size_t n = t.size(), size = std::clamp<std::size_t>(options.largest_window, 2, std::max<std::size_t>(2, n));
  const auto all = static_cast<long long>(std::max(n, t.edges().size() / 4));
  const long long most = std::min(options.steps, std::numeric_limits<long long>::max() / operators_per_step) * operators_per_step;
  constexpr std::array heats{1.5, 0.3, 0.06, 0.0};
  long long used = 0;
  const auto done = [&] { return used >= most || best.makespan_s <= best.bound_s; };
  const auto take = [&](operator_schedule other) {
    if (other.makespan_s >= best.makespan_s) return;
    other.bound_s = best.bound_s;
    other.steps = best.steps;
    best = std::move(other);
  };
  if (most / all >= static_cast<long long>(8 * share_out_levels * share_out_rounds)) {
    long long tried = 0;
    take(share_out(t, r, best, tried));
    used += tried * all;
  }
  bool stopped = false;
  for (std::size_t round = 0, idle = 0; !stopped && !done() && idle < heats.size(); ++round) {
    const double before_s = best.makespan_s;
    for (std::size_t first = 0; !stopped && !done() && first < n; first += n <= size ? n : size / 2) {
      const std::size_t last = std::min(n, first + size);
      std::vector<std::size_t> sequence = sequence_of(t, best);
      window.open(sequence, first, last, best);
      const auto trials = static_cast<long long>(options.trials_per_operator * (last - first) * (last - first));
      const long long wanted = n <= size ? most / static_cast<long long>(2 * heats.size()) : trials;
      used += window.search(std::min(most - used, wanted), heats[round % heats.size()]) + 4 * all;
      std::vector<std::size_t> device = best.device;
      for (std::size_t i = 0; i < window.operators().size(); ++i) device[window.operators()[i]] = window.best_device()[i];
      std::copy(window.best_order().begin(), window.best_order().end(), sequence.begin() + static_cast<std::ptrdiff_t>(first));
      take(schedule_in_order(t, r, sequence, device));
      stopped = observer && observer({best.makespan_s, used / operators_per_step}) == control::stop;
    }
    idle = best.makespan_s < before_s ? 0 : idle + 1;
    if (n <= size) idle = 0;  // the budget ends a single window
  }
  best.steps += used / operators_per_step;
  return best;
}

}  // namespace hetplan::place
