// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/series_schedule.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/place/heft.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/optimal_schedule.hpp>
#include <hetplan/place/part_table.hpp>
#include <hetplan/place/placement_bounds.hpp>

namespace HETPLAN_NAMESPACE::place {

namespace detail {

/// A part between two devices: what is known of it.
struct part_between {
  double lower_s = 0;
  operator_schedule best = {};                    ///< from the end of the entry on
  std::vector<operator_schedule> elsewhere = {};  ///< on one device alone, where memory asks for it
  long long steps = 0;                            ///< of the last search

  [[nodiscard]] double upper_s() const { return best.makespan_s; }
  [[nodiscard]] bool settled() const { return lower_s >= below(upper_s()); }
};

/// Parts that are the same.
struct part_kind {
  part_of_series like;
  placement_data data;
  std::vector<part_between> between;  ///< devices x devices: entry, exit; where there is none, 0
};

/// A choice for every part: the devices around it, and which of its schedules.
struct part_path {
  struct step {
    std::size_t from = 0, to = 0, choice = 0;
  };
  std::vector<step> steps = {};
  double length_s = std::numeric_limits<double>::infinity();
};

class series_search {
 public:
  static constexpr long long steps_per_operator = 8;  ///< of a part's first search

  series_search(const placement_table& t, const placement_rules& r, const series_parts& s, const series_search_options& o)
      : table_(t), rules_(r), series_(s), options_(o), parts_(list_parts(s)), left_(o.steps) {
    std::map<std::uint64_t, std::vector<std::size_t>> alike;
    for (const part_of_series& p : parts_) {
      placement_data data = part_data(t, p);
      auto& candidates = alike[fingerprint(data)];
      const auto it = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t k) {
        return kinds_[k].like.entry == p.entry && kinds_[k].like.exit == p.exit && kinds_[k].data == data;
      });
      kind_of_.push_back(it == candidates.end() ? kinds_.size() : *it);
      if (it != candidates.end()) continue;
      candidates.push_back(kinds_.size());
      kinds_.push_back({p, std::move(data), std::vector<part_between>((p.entry ? t.devices() : 1) * (p.exit ? t.devices() : 1))});
    }
  }

  [[nodiscard]] operator_schedule run(const any_observer<schedule_improved>& observer) {
    const auto first_steps = [](const part_kind& kind) { return steps_per_operator * static_cast<long long>(kind.data.operators.size()); };
    long long needed = 0;
    for (const part_kind& kind : kinds_) needed += first_steps(kind) * static_cast<long long>(kind.between.size());
    if (needed > left_)
      return {.status = {outcome::stopped, "too many parts and devices for a budget of " + std::to_string(left_) + " steps"}};
    for (part_kind& kind : kinds_) {
      for (std::size_t i = 0; i < kind.between.size(); ++i) search(kind, i, first_steps(kind));
    }
    bool stopped = false;
    while (!stopped) {
      const part_path lower = shortest_lower();
      const part_path upper = shortest_upper();
      if (upper.length_s <= lower.length_s * (1 + 1e-9) || !std::isfinite(lower.length_s)) break;
      if (!refine({&lower, &upper})) break;
      stopped = observer && observer({upper.length_s, options_.steps - left_}) == control::stop;
    }
    const double lower_s = shortest_lower().length_s;
    if (!std::isfinite(lower_s)) {
      operator_schedule none{.status = {outcome::infeasible, "no choice of devices keeps their memory and routes; all were tried"}};
      none.bound_s = lower_s;
      none.steps = options_.steps - left_;
      return none;
    }
    operator_schedule best = compose_within_memory();
    best.bound_s = std::min(lower_s, best.makespan_s);
    if (series_.exact() && best.makespan_s <= lower_s * (1 + 1e-9)) best.bound_s = best.makespan_s;
    best.steps = options_.steps - left_;
    if (stopped) best.status = {outcome::stopped, "an observer stopped the search; the best so far"};
    return best;
  }

 private:
  [[nodiscard]] static std::uint64_t fingerprint(const placement_data& d) {
    std::uint64_t h = d.edges.size();
    const auto add = [&](std::uint64_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29; };
    for (const double s : d.time_s) add(std::bit_cast<std::uint64_t>(s));
    for (const double s : d.edge_time_s) add(std::bit_cast<std::uint64_t>(s));
    for (const operator_edge& e : d.edges) add(e.from * 1'000'003 + e.to), add(std::bit_cast<std::uint64_t>(e.bytes));
    return h;
  }

  [[nodiscard]] std::size_t exits(const part_kind& kind) const { return kind.like.exit ? table_.devices() : 1; }
  [[nodiscard]] placement_table table_between(const part_kind& kind, std::size_t at) const {
    const std::size_t from = at / exits(kind), to = at % exits(kind);
    return part_table(kind.data, kind.like, kind.like.entry ? std::optional(from) : std::nullopt,
                      kind.like.exit ? std::optional(to) : std::nullopt);
  }

  void search(part_kind& kind, std::size_t at, long long steps) {
    part_between& b = kind.between[at];
    b.steps = steps;
    const placement_table t = table_between(kind, at);
    operator_schedule s = b.best;
    const bool large = t.size() > options_.exact_operators;
    if (!s.found()) {
      s = heft(t, rules_);
      if (operator_schedule one = one_device(t, rules_); one.makespan_s < s.makespan_s) s = std::move(one);
      if (large) b.lower_s = bounds_of(t).best_s();
    }
    s.steps = 0;
    s.bound_s = std::min(b.lower_s, s.makespan_s);
    if (large) s = improve_schedule(t, rules_, std::move(s), {.steps = steps});
    s = optimal_schedule(t, rules_, std::move(s), {.steps = steps});
    left_ -= std::max(s.steps, 1LL);
    if (s.status.result == outcome::infeasible) {
      b.lower_s = std::numeric_limits<double>::infinity();
      return;
    }
    if (rules_.contention == contention::shared) {
      const operator_schedule alone = optimal_schedule(t, {contention::none, rules_.copies}, {}, {.steps = steps});
      left_ -= std::max(alone.steps, 1LL);
      s.bound_s = std::max(s.bound_s, alone.bound_s);
    }
    b.lower_s = std::max(b.lower_s, s.bound_s);
    b.best = std::move(s);
  }

  /// More steps for what is not settled on some paths; false: all is, or too few steps are left to be of use.
  [[nodiscard]] bool refine(std::initializer_list<const part_path*> paths) {
    std::set<std::pair<std::size_t, std::size_t>> open;
    for (const part_path* path : paths) {
      for (std::size_t i = 0; i < path->steps.size(); ++i) {
        const part_kind& kind = kinds_[kind_of_[i]];
        const std::size_t at = path->steps[i].from * exits(kind) + path->steps[i].to;
        if (!kind.between[at].settled()) open.emplace(kind_of_[i], at);
      }
    }
    bool any = false;
    for (const auto& [kind, at] : open) {
      const long long before = kinds_[kind].between[at].steps, most = left_ / (2 * static_cast<long long>(open.size()));
      if (most <= before) continue;
      search(kinds_[kind], at, std::min(4 * before, most));
      any = true;
    }
    return any;
  }

  /// The shortest way through all parts.
  ///
  /// @param length      of a part, between a pair of devices, by a choice of its schedules.
  /// @param elsewhere   are schedules on one device choices?
  template <class Length>
  [[nodiscard]] part_path shortest(const Length& length, bool elsewhere) const {
    const std::size_t d = table_.devices();
    struct arrival {
      double length_s = std::numeric_limits<double>::infinity();
      part_path::step last = {};
    };
    std::vector<std::vector<arrival>> at(parts_.size(), std::vector<arrival>(d));
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const part_kind& kind = kinds_[kind_of_[i]];
      for (std::size_t b = 0; b < kind.between.size(); ++b) {
        const std::size_t from = b / exits(kind), to = b % exits(kind);
        const double before_s = i == 0 ? 0 : at[i - 1][from].length_s;
        for (std::size_t c = 0; c <= (elsewhere ? kind.between[b].elsewhere.size() : 0); ++c) {
          const double there_s = before_s + length(i, b, c);
          if (there_s < at[i][to].length_s) at[i][to] = {there_s, {from, to, c}};
        }
      }
    }
    part_path path;
    std::size_t to = 0;
    for (std::size_t k = 1; k < d; ++k) {
      if (at.back()[k].length_s < at.back()[to].length_s) to = k;
    }
    path.length_s = at.back()[to].length_s;
    if (!std::isfinite(path.length_s)) return path;
    path.steps.resize(parts_.size());
    for (std::size_t i = parts_.size(); i-- > 0; to = path.steps[i].from) path.steps[i] = at[i][to].last;
    return path;
  }

  [[nodiscard]] part_path shortest_lower() const {
    return shortest([&](std::size_t part, std::size_t b, std::size_t) { return kinds_[kind_of_[part]].between[b].lower_s; }, false);
  }
  [[nodiscard]] part_path shortest_upper() const {
    return shortest([&](std::size_t part, std::size_t b, std::size_t) { return kinds_[kind_of_[part]].between[b].upper_s(); }, false);
  }

  [[nodiscard]] static const operator_schedule& schedule_of(const part_between& b, std::size_t choice) {
    return choice == 0 ? b.best : b.elsewhere[choice - 1];
  }
  [[nodiscard]] const operator_schedule& chosen(std::size_t part, const part_path::step& s) const {
    const part_kind& kind = kinds_[kind_of_[part]];
    return schedule_of(kind.between[s.from * exits(kind) + s.to], s.choice);
  }

  /// Parts one after the other; operators beside them wherever they end first.
  [[nodiscard]] operator_schedule compose(const part_path& path) const {
    operator_schedule s{.device = std::vector<std::size_t>(table_.size(), partial_schedule::none),
                        .start_s = std::vector<double>(table_.size(), 0)};
    double before_s = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const operator_schedule& part = chosen(i, path.steps[i]);
      for (std::size_t j = parts_[i].entry; j < parts_[i].operators.size(); ++j) {
        s.device[parts_[i].operators[j]] = part.device[j];
        s.start_s[parts_[i].operators[j]] = before_s + part.start_s[j];
      }
      if (series_.exact()) {
        const std::vector<std::size_t> edges = part_edges(table_, parts_[i]);
        for (scheduled_transfer x : part.transfers) {
          x.edge = edges[x.edge];
          x.start_s += before_s;
          x.end_s += before_s;
          s.transfers.push_back(x);
        }
      }
      before_s += part.makespan_s;
    }
    s.makespan_s = before_s;
    return s;
  }

  /// Where operators or edges are beside the parts, a schedule of all in the order of the parts' starts.
  [[nodiscard]] operator_schedule with_sides(const operator_schedule& parts) const {
    std::vector<double> start_s = parts.start_s;
    for (const std::size_t v : table_.order()) {
      for (const std::uint32_t e : table_.in_edges(v)) start_s[v] = std::max(start_s[v], start_s[table_.edges()[e].from]);
    }
    std::vector<std::size_t> order(table_.order().begin(), table_.order().end());
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return start_s[a] < start_s[b]; });
    return schedule_greedily(
        table_, rules_, order, [](std::size_t, std::size_t, const trial& at) { return at.end_s; },
        [&](std::size_t v, std::size_t k) { return parts.device[v] == partial_schedule::none || parts.device[v] == k; });
  }

  [[nodiscard]] operator_schedule finish(const operator_schedule& parts) const { return series_.exact() ? parts : with_sides(parts); }
  /// By device: what the operators that are placed need beyond its capacity; negative: room.
  [[nodiscard]] std::vector<double> excess_bytes(const operator_schedule& s) const {
    device_memory memory(table_);
    for (std::size_t v = 0; v < table_.size(); ++v) {
      if (s.device[v] != partial_schedule::none) memory.add(v, s.device[v]);
    }
    std::vector<double> excess;
    for (std::size_t k = 0; k < table_.devices(); ++k) excess.push_back(-memory.free_bytes(k));
    return excess;
  }
  [[nodiscard]] bool fits(const operator_schedule& s) const {
    const std::vector<double> excess = excess_bytes(s);
    return std::none_of(excess.begin(), excess.end(), [](double x) { return x > 0; });
  }

  [[nodiscard]] operator_schedule compose_within_memory() {
    const part_path free = shortest_upper();
    if (!std::isfinite(free.length_s)) return {.status = {outcome::stopped, "not every part has a schedule yet"}};
    const operator_schedule s = compose(free);
    if (fits(s)) return finish(s);
    for (part_kind& kind : kinds_) add_elsewhere(kind);
    return search_prices(free.length_s);
  }

  /// Schedules of a part on the device of its entry alone, or of its exit.
  void add_elsewhere(part_kind& kind) {
    for (std::size_t b = 0; b < kind.between.size(); ++b) {
      if (!kind.between[b].best.found()) continue;
      const placement_table t = table_between(kind, b);
      std::set<std::size_t> on;
      if (kind.like.entry) on.insert(b / exits(kind));
      if (kind.like.exit) on.insert(b % exits(kind));
      for (const std::size_t k : on) {
        std::vector<std::size_t> device(t.size(), k);
        if (kind.like.entry) device.front() = b / exits(kind);
        if (kind.like.exit) device.back() = b % exits(kind);
        operator_schedule s = schedule_in_order(t, rules_, {t.order().begin(), t.order().end()}, device);
        if (s.found()) kind.between[b].elsewhere.push_back(std::move(s));
      }
    }
  }

  /// Prices of bytes that rise where a device holds too much; the best schedule within memory that they lead to.
  [[nodiscard]] operator_schedule search_prices(double length_s) const {
    constexpr int rounds = 200;
    const std::size_t d = table_.devices();
    double held = 0;
    for (std::size_t v = 0; v < table_.size(); ++v) held += table_.held_bytes(v);
    const std::vector<std::vector<std::vector<double>>> bytes = bytes_of_choices();
    // A price moves by a step that shrinks when it has gone too far.
    std::vector<double> price(d, 0), step(d, length_s / held / 4), before(d, 0);
    std::vector<std::size_t> nearest;  // devices of the path that exceeds memory least
    double least_excess = std::numeric_limits<double>::infinity();
    operator_schedule best{.status = {outcome::stopped, "memory: no path of parts that fits was found"}};
    for (int round = 0; round < rounds; ++round) {
      // Parts that are alike would all change their devices at once: prices are tilted along the path, so that one after another does.
      const auto tilted = [&](std::size_t part, std::size_t k) {
        const double along = static_cast<double>(part) / static_cast<double>(parts_.size()) - 0.5;
        return price[k] * (1 + 0.2 * along * (2 * static_cast<double>(k) / static_cast<double>(std::max<std::size_t>(1, d - 1)) - 1));
      };
      const part_path path = shortest(
          [&](std::size_t part, std::size_t between, std::size_t choice) {
            const part_kind& kind = kinds_[kind_of_[part]];
            double sum = schedule_of(kind.between[between], choice).makespan_s;
            const double* held_by = &bytes[kind_of_[part]][between][choice * d];
            for (std::size_t k = 0; k < d; ++k) sum += tilted(part, k) * held_by[k];
            return sum;
          },
          true);
      const operator_schedule s = compose(path);
      const std::vector<double> excess = excess_bytes(s);
      const double over = std::accumulate(excess.begin(), excess.end(), 0.0, [](double sum, double x) { return sum + std::max(0.0, x); });
      if (over <= 0 && s.makespan_s < best.makespan_s) {
        operator_schedule whole = finish(s);
        if (whole.makespan_s < best.makespan_s) best = std::move(whole);
      }
      if (over > 0 && over < least_excess) least_excess = over, nearest = s.device;
      for (std::size_t k = 0; k < d; ++k) {
        if (!std::isfinite(excess[k])) continue;
        if (before[k] * excess[k] < 0) step[k] /= 2;
        else step[k] *= 1.1;
        price[k] = std::max(0.0, price[k] + (excess[k] > 0 ? step[k] : -step[k]));
        before[k] = excess[k];
      }
    }
    if (series_.exact() && !nearest.empty()) {
      operator_schedule repaired = schedule_within_memory(table_, rules_, {table_.order().begin(), table_.order().end()}, nearest);
      if (repaired.makespan_s < best.makespan_s) best = std::move(repaired);
    }
    return best;
  }

  /// By kind and pair of devices: choices x devices, what the inside and the exit hold there.
  [[nodiscard]] std::vector<std::vector<std::vector<double>>> bytes_of_choices() const {
    std::vector<std::vector<std::vector<double>>> all;
    for (const part_kind& kind : kinds_) {
      auto& of_kind = all.emplace_back();
      for (const part_between& b : kind.between) {
        auto& of_pair = of_kind.emplace_back((1 + b.elsewhere.size()) * table_.devices(), 0.0);
        for (std::size_t c = 0; c <= b.elsewhere.size(); ++c) {
          const operator_schedule& s = schedule_of(b, c);
          for (std::size_t i = kind.like.entry; i < s.device.size(); ++i)
            of_pair[c * table_.devices() + s.device[i]] += kind.data.held_bytes[i];
        }
      }
    }
    return all;
  }

  const placement_table& table_;
  placement_rules rules_;
  const series_parts& series_;
  series_search_options options_;
  std::vector<part_of_series> parts_;
  std::vector<part_kind> kinds_;
  std::vector<std::size_t> kind_of_;  ///< by part
  long long left_;
};

}  // namespace detail

HETPLAN_INLINE operator_schedule series_schedule(const placement_table& t, const placement_rules& r, const series_parts& parts,
                                                 const series_search_options& options, const any_observer<schedule_improved>& observer) {
  return detail::series_search(t, r, parts, options).run(observer);
}

}  // namespace HETPLAN_NAMESPACE::place
