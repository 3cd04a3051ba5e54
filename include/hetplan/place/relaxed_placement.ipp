// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/relaxed_placement.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan::place {

HETPLAN_INLINE alike_operators find_alike_operators(const placement_table& t, const std::vector<device_set>& sets) {
  const std::size_t n = t.size(), d = t.devices();
  alike_operators a;
  // Kind of each edge, its ends aside.
  key_index edge_kinds;
  std::vector<std::size_t> edge_kind;
  for (std::size_t e = 0; e < t.edges().size(); ++e) {
    key_parts key{t.edges()[e].bytes};
    if (!t.data().edge_time_s.empty()) {
      const auto first = t.data().edge_time_s.begin() + static_cast<std::ptrdiff_t>(e * d * d);
      key.insert(key.end(), first, first + static_cast<std::ptrdiff_t>(d * d));
    }
    edge_kind.push_back(edge_kinds.number(key));
  }
  std::size_t classes = 0;
  {
    key_index kinds;
    for (std::size_t v = 0; v < n; ++v) {
      key_parts key{sets[v], t.shared_out_bytes(v), t.working_bytes(v)};
      for (std::size_t k = 0; k < d; ++k) key.emplace_back(t.time_s(v, k));
      a.class_of.push_back(kinds.number(key));
    }
    classes = kinds.size();
  }
  for (bool refined = true; refined;) {
    using neighbour = std::tuple<bool, std::size_t, std::size_t>;  // (true for readers, edge kind, class)
    key_index kinds;
    std::vector<std::size_t> next;
    for (std::size_t v = 0; v < n; ++v) {
      std::vector<neighbour> around;
      for (const std::uint32_t e : t.in_edges(v)) around.emplace_back(false, edge_kind[e], a.class_of[t.edges()[e].from]);
      for (const std::uint32_t e : t.out_edges(v)) around.emplace_back(true, edge_kind[e], a.class_of[t.edges()[e].to]);
      sort_stably(around);
      key_parts key{a.class_of[v]};
      for (const auto& [reads, kind, of_class] : around) key.insert(key.end(), {reads, kind, of_class});
      next.push_back(kinds.number(key));
    }
    refined = kinds.size() > classes;
    classes = kinds.size();
    a.class_of = std::move(next);
  }
  a.like.assign(classes, n);
  a.size.assign(classes, 0);
  for (std::size_t v = 0; v < n; ++v) {
    a.like[a.class_of[v]] = std::min(a.like[a.class_of[v]], v);
    ++a.size[a.class_of[v]];
  }
  key_index edge_classes;
  for (std::size_t e = 0; e < t.edges().size(); ++e) {
    const std::size_t from = a.class_of[t.edges()[e].from], to = a.class_of[t.edges()[e].to];
    const std::size_t c = edge_classes.number({from, to, edge_kind[e]});
    if (c == a.edges.size()) a.edges.push_back({from, to, e, 0});
    ++a.edges[c].size;
  }
  return a;
}

namespace detail {

/// Window of a device or channel below a limit: the least time before its first use and after its last.
struct use_window {
  double before_s = std::numeric_limits<double>::infinity();
  double behind_s = std::numeric_limits<double>::infinity();

  void add(double before, double behind) { before_s = std::min(before_s, before), behind_s = std::min(behind_s, behind); }
  [[nodiscard]] bool used() const { return std::isfinite(before_s); }
  [[nodiscard]] double around_s() const { return before_s + behind_s; }
};

/// Relaxed program over classes of operators, with seconds in units of `unit_s`.
class relaxed_program {
 public:
  relaxed_program(const placement_table& t, const placement_rules& r, const device_domains& domains, const std::vector<device_set>& sets,
                  const alike_operators& alike, double unit_s, const std::vector<double>& byte_price)
      : table_(t), rules_(r), holds_(t, r.contention), domains_(domains), sets_(sets), alike_(alike), unit_s_(unit_s),
        end_(program_.add_column(1)), device_window_(t.devices()) {
    add_operators(byte_price);
    add_edges();
    add_memory();
    add_devices();
    add_channels();
  }

  [[nodiscard]] const std::vector<use_window>& device_windows() const { return device_window_; }
  [[nodiscard]] const lp_problem& problem() const { return program_; }
  /// Returns the bytes that a solution holds on each device.
  [[nodiscard]] std::vector<double> held_bytes(const lp_solution& s) const {
    std::vector<double> held(table_.devices(), 0);
    for (std::size_t c = 0; c < alike_.like.size(); ++c) {
      each_device(set_of(c), [&](std::size_t k) { held[k] += held_bytes(c) * s.x[static_cast<std::size_t>(share(c, k))]; });
    }
    return held;
  }
  /// Returns the program with the devices of a set used and all others left out.
  [[nodiscard]] lp_problem with_devices(device_set used) const {
    lp_problem p = program_;
    for (std::size_t k = 0; k < table_.devices(); ++k) {
      if (use_[k] < 0) continue;
      const auto c = static_cast<std::size_t>(use_[k]);
      p.lower[c] = p.upper[c] = has(used, k) ? 1 : 0;
    }
    return p;
  }

 private:
  [[nodiscard]] device_set set_of(std::size_t c) const { return sets_[alike_.like[c]]; }
  [[nodiscard]] int share(std::size_t c, std::size_t k) const { return share_[c * table_.devices() + k]; }
  [[nodiscard]] double held_bytes(std::size_t c) const {
    return table_.shared_out_bytes(alike_.like[c]) * static_cast<double>(alike_.size[c]);
  }
  [[nodiscard]] double time(std::size_t c, std::size_t k) const { return table_.time_s(alike_.like[c], k) / unit_s_; }

  void add_operators(const std::vector<double>& byte_price) {
    share_.assign(alike_.like.size() * table_.devices(), -1);
    for (std::size_t c = 0; c < alike_.like.size(); ++c) {
      lp_problem::row whole{.terms = {}, .lower = 1, .upper = 1};
      lp_problem::row last{.terms = {{end_, 1}}, .lower = 0};
      each_device(set_of(c), [&](std::size_t k) {
        const double paid = byte_price.empty() ? 0 : byte_price[k] * held_bytes(c) / unit_s_;
        const int x = share_[c * table_.devices() + k] = program_.add_column(paid, 0, 1);
        whole.terms.emplace_back(x, 1);
        if (time(c, k) > 0) last.terms.emplace_back(x, -time(c, k));
      });
      start_.push_back(program_.add_column(0));
      last.terms.emplace_back(start_.back(), -1);
      program_.rows.push_back(std::move(whole));
      program_.rows.push_back(std::move(last));
    }
  }

  /// Adds the paths, and the shares of edges on every pair of devices, which sum to those of their ends.
  void add_edges() {
    for (const auto& e : alike_.edges) {
      auto& columns = moved_.emplace_back();
      std::vector<lp_problem::row> leave(table_.devices()), arrive(table_.devices());
      lp_problem::row after{.terms = {{start_[e.to], 1}, {start_[e.from], -1}}, .lower = 0};
      each_device(set_of(e.from), [&](std::size_t j) {
        if (time(e.from, j) > 0) after.terms.emplace_back(share(e.from, j), -time(e.from, j));
        each_device(set_of(e.to), [&](std::size_t k) {
          const double takes = domains_.carried_s(e.like, j, k) / unit_s_;
          if (!std::isfinite(takes)) return;
          const int u = program_.add_column(0, 0, 1);
          columns.push_back({j, k, u});
          leave[j].terms.emplace_back(u, 1);
          arrive[k].terms.emplace_back(u, 1);
          if (takes > 0) after.terms.emplace_back(u, -takes);
        });
      });
      each_device(set_of(e.from), [&](std::size_t j) { balance(std::move(leave[j]), share(e.from, j)); });
      each_device(set_of(e.to), [&](std::size_t k) { balance(std::move(arrive[k]), share(e.to, k)); });
      program_.rows.push_back(std::move(after));
    }
  }
  void balance(lp_problem::row row, int share) {
    row.terms.emplace_back(share, -1);
    row.lower = row.upper = 0;
    program_.rows.push_back(std::move(row));
  }

  void add_memory() {
    const double held = table_.all_held_bytes();
    for (std::size_t k = 0; k < table_.devices(); ++k) {
      if (!(held > table_.capacity_bytes(k))) continue;
      lp_problem::row row{.terms = {}, .upper = table_.capacity_bytes(k) / held};
      for (std::size_t c = 0; c < alike_.like.size(); ++c) {
        const double bytes = held_bytes(c);
        if (share(c, k) >= 0 && bytes > 0) row.terms.emplace_back(share(c, k), bytes / held);
      }
      program_.rows.push_back(std::move(row));
    }
  }

  /// Adds the work of each device, within its window if the device is used.
  void add_devices() {
    use_.assign(table_.devices(), -1);
    for (std::size_t v = 0; v < table_.size(); ++v) {
      each_device(sets_[v], [&](std::size_t k) {
        const double time_s = table_.time_s(v, k), end_s = domains_.end_s(v, k);
        device_window_[k].add(end_s - time_s, domains_.through_s(v, k) - end_s);
      });
    }
    for (std::size_t k = 0; k < table_.devices(); ++k) {
      if (!device_window_[k].used()) continue;
      lp_problem::row row{.terms = {{end_, 1}}, .lower = 0};
      for (std::size_t c = 0; c < alike_.like.size(); ++c) {
        if (share(c, k) >= 0 && time(c, k) > 0) row.terms.emplace_back(share(c, k), -time(c, k) * static_cast<double>(alike_.size[c]));
      }
      use_[k] = program_.add_column(0, 0, 1);
      if (device_window_[k].around_s() > 0) row.terms.emplace_back(use_[k], -device_window_[k].around_s() / unit_s_);
      program_.rows.push_back(std::move(row));
      for (std::size_t c = 0; c < alike_.like.size(); ++c) {
        if (share(c, k) >= 0) program_.rows.push_back({.terms = {{use_[k], 1}, {share(c, k), -1}}, .lower = 0});
      }
    }
  }

  /// Adds the load of each channel, within its window if the channel is used.
  void add_channels() {
    const std::size_t channels = holds_.size();
    std::vector<lp_problem::row> load(channels, {.terms = {{end_, 1}}, .lower = 0});
    std::vector<use_window> window(channels);
    std::vector<std::vector<int>> users(channels);
    std::vector<std::vector<std::pair<std::size_t, int>>> sent(alike_.like.size());  // with copies per device: (pair of devices, column)
    for (std::size_t q = 0; q < alike_.edges.size(); ++q) {
      const auto& e = alike_.edges[q];
      for (const moved& m : moved_[q]) {
        const auto held = holds_.of(m.from, m.to);
        if (m.from == m.to || held.empty()) continue;
        int column = m.column;
        auto weight = static_cast<double>(e.size);
        bool counted = false;
        if (rules_.copies == transfer_copies::per_device) {
          // The output's share on a pair of devices is at least that of each edge.
          auto& all = sent[e.from];
          const std::size_t pair = m.from * table_.devices() + m.to;
          const auto it = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.first == pair; });
          counted = it != all.end();
          column = counted ? it->second : program_.add_column(0, 0, 1);
          if (!counted) all.emplace_back(pair, column);
          program_.rows.push_back({.terms = {{column, 1}, {m.column, -1}}, .lower = 0});
          weight = static_cast<double>(alike_.size[e.from]);
        }
        for (std::size_t i = 0; i < held.size(); ++i) {
          const double takes = busy_s(table_, rules_, e.like, m.from, m.to, i) / unit_s_;
          const std::size_t w = alike_.like[e.to];
          window[held[i]].add(domains_.end_s(alike_.like[e.from], m.from),
                              domains_.through_s(w, m.to) - domains_.end_s(w, m.to) + table_.time_s(w, m.to));
          if (counted || !(takes > 0)) continue;
          load[held[i]].terms.emplace_back(column, -takes * weight);
          users[held[i]].push_back(column);
        }
      }
    }
    for (std::size_t c = 0; c < channels; ++c) {
      if (load[c].terms.size() < 2) continue;
      const int use = program_.add_column(0, 0, 1);
      for (const int u : users[c]) program_.rows.push_back({.terms = {{use, 1}, {u, -1}}, .lower = 0});
      if (window[c].around_s() > 0) load[c].terms.emplace_back(use, -window[c].around_s() / unit_s_);
      program_.rows.push_back(std::move(load[c]));
    }
  }

  struct moved {
    std::size_t from, to;
    int column;
  };

  const placement_table& table_;
  placement_rules rules_;
  channels holds_;
  const device_domains& domains_;
  const std::vector<device_set>& sets_;
  const alike_operators& alike_;
  double unit_s_;
  lp_problem program_;
  int end_;
  std::vector<int> share_, start_, use_;   ///< classes x devices; by class; by device
  std::vector<std::vector<moved>> moved_;  ///< by class of edges
  std::vector<use_window> device_window_;
};

/// Returns the unit of a program's seconds: about the makespan, or more if single times exceed it by too much for a meaningful ratio.
[[nodiscard]] HETPLAN_INLINE double unit_of(const placement_table& t, double about_s) {
  double longest_s = 0;
  for (const double s : t.data().time_s) longest_s = std::max(longest_s, std::isfinite(s) ? s : 0);
  for (std::size_t e = 0; e < t.edges().size(); ++e) {
    for (std::size_t from = 0; from < t.devices(); ++from) {
      for (std::size_t to = 0; to < t.devices(); ++to) {
        const double s = t.transfer_s(e, from, to);
        longest_s = std::max(longest_s, std::isfinite(s) ? s : 0);
      }
    }
  }
  const double unit_s = std::max(about_s, longest_s * 1e-9);
  return unit_s > 0 ? unit_s : 1;
}

}  // namespace detail

HETPLAN_INLINE relaxed_bound relax_placement(const placement_table& t, const placement_rules& r, double limit_s, const any_lp_solver& lp,
                                             const relaxation_options& options) {
  relaxed_bound answer;
  if (!lp.exists() || t.devices() > 64 || !(limit_s > 0)) return answer;
  device_domains domains(t, r);
  std::vector<device_set> sets = domains.all();
  answer.bound_s = domains.narrow(sets, limit_s);
  if (!std::isfinite(answer.bound_s)) return {.bound_s = limit_s};
  const alike_operators alike = find_alike_operators(t, sets);
  if (alike.like.size() > options.most_classes) return answer;
  std::size_t moves = 0;
  for (const auto& e : alike.edges) {
    moves += static_cast<std::size_t>(std::popcount(sets[alike.like[e.from]]) * std::popcount(sets[alike.like[e.to]]));
  }
  if (moves > options.most_columns / 2) return answer;
  const double unit_s = detail::unit_of(t, std::isfinite(limit_s) ? limit_s : answer.bound_s);
  const detail::relaxed_program program(t, r, domains, sets, alike, unit_s, options.byte_price);
  // `sure` are devices that some operator must use, `open` those that may be left out.
  device_set sure = 0, open = 0;
  for (const device_set s : sets) sure |= is_one(s) ? s : 0;
  for (std::size_t k = 0; k < t.devices(); ++k) {
    if (program.device_windows()[k].used() && !has(sure, k)) open |= device_set{1} << k;
  }
  double least_s = limit_s;
  // False if the solver has no answer, and hence no bound.
  const auto solve = [&](const lp_problem& p) {
    const std::size_t at = answer.bases.size();
    lp_solution s = at < options.start.size() ? lp.solve(p, options.start[at]) : lp.solve(p);
    answer.steps += (s.iterations + 1) * std::max(16LL, static_cast<long long>(p.objective.size() + p.rows.size()) / 256);
    answer.bases.push_back(std::move(s.basis));
    if (s.status == lp_status::optimal && s.objective * unit_s < least_s) {
      least_s = s.objective * unit_s;
      answer.held_bytes = program.held_bytes(s);
    }
    return s.status == lp_status::optimal || s.status == lp_status::infeasible;
  };
  // The sets of used devices are enumerated if that takes few and small programs.
  constexpr int most_open = 4;
  constexpr std::size_t most_moves = 4000;
  if (std::popcount(open) > most_open || moves > most_moves) {
    if (!solve(program.problem())) return answer;
  } else {
    for (device_set used = open;; used = (used - 1) & open) {
      if (!solve(program.with_devices(sure | used))) return answer;
      if (used == 0) break;
    }
  }
  if (answer.held_bytes.empty() && !std::isfinite(limit_s)) return answer;
  // The margin covers the solver's tolerance of rows.
  answer.bound_s = std::max(answer.bound_s, least_s * (1 - 1e-7));
  return answer;
}

}  // namespace hetplan::place
