// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/region_dp.hpp>

#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::partition::detail {

HETPLAN_INLINE region_cells::region_cells(const region_chain& chain, region_cost cost, std::vector<std::size_t> regions)
    : cost_(cost), microbatches_(chain.microbatches), regions_(std::move(regions)), positions_(chain.positions.size()),
      row_(positions_ + 1) {
  const std::size_t n = regions_.size();
  forward_s_.resize(n * positions_ * row_, inf);
  work_s_.resize(n * positions_ * row_, inf);
  least_work_s_.resize(n * positions_ * row_, inf);
  for (std::size_t g = 0; g < n; ++g) {
    for (std::size_t i = 0; i < positions_; ++i) {
      for (std::size_t j = i + 1; j <= positions_; ++j) {
        const region_times t = region_times_of(chain, regions_[g], i, j);
        forward_s_[at(g, i) + j] = t.forward_s;
        work_s_[at(g, i) + j] = t.limited_work_s();
      }
      double least = inf;
      for (std::size_t j = positions_ + 1; j-- > i + 1;) least_work_s_[at(g, i) + j] = least = std::min(least, work_s(g, i, j));
    }
  }
  transfer_s_.resize(n * n * positions_, inf);
  for (std::size_t g = 0; g < n; ++g) {
    for (std::size_t h = 0; h < n; ++h) {
      for (std::size_t j = 1; g != h && j < positions_; ++j) {
        transfer_s_[(g * n + h) * positions_ + j] = checked_transfer_s(chain, regions_[g], regions_[h], j);
      }
    }
  }
}

HETPLAN_INLINE region_cells::step region_cells::trace(std::size_t g, std::size_t i, const std::vector<successor>& behind, bool last,
                                                      label made) const {
  if (last && work_s(g, i, positions_) == made.eq1 && made.all == made.eq1) return {positions_, 0, {}};
  for (std::size_t j = i + 1; j < positions_; ++j) {
    if (work_s(g, i, j) > made.eq1) continue;
    for (std::size_t s = 0; s < behind.size(); ++s) {
      step found{positions_, s, {}};
      behind[s].behind->each(j, [&](const label& l) {
        if (extended(option_of(g, behind[s].region, j, l), work_s(g, i, j), forward_s(g, i, j)) == made) found = {j, s, l};
      });
      if (found.position == j) return found;
    }
  }
  constexpr bool label_has_an_origin = false;
  HETPLAN_ASSERT(label_has_an_origin);
  return {};
}

HETPLAN_INLINE region_cells::option region_cells::option_of(std::size_t g, std::size_t h, std::size_t j, const label& l) const {
  const double c = transfer_s(g, h, j), one = c + l.eq1;
  if (cost_ == region_cost::printed) return {one, c + one, 0};
  return {one, c + one, std::max(microbatches_ * c, c + l.all)};
}
HETPLAN_INLINE void region_cells::gather(std::size_t g, std::size_t from, const std::vector<successor>& behind) {
  options_.clear();
  option_begin_.assign(positions_ + 1, 0);
  least_two_.assign(positions_, inf);
  last_option_ = 0;
  for (std::size_t j = from; j < positions_; ++j) {
    const std::size_t begin = options_.size();
    option_begin_[j] = static_cast<std::uint32_t>(begin);
    for (const successor& s : behind) {
      s.behind->each(j, [&](const label& l) {
        const option o = option_of(g, s.region, j, l);
        if (o.two == inf) return;
        const auto no_worse = [](const option& a, const option& b) { return a.one <= b.one && a.two <= b.two && a.links <= b.links; };
        const auto mine = options_.begin() + static_cast<std::ptrdiff_t>(begin);
        if (std::any_of(mine, options_.end(), [&](const option& a) { return no_worse(a, o); })) return;
        options_.erase(std::remove_if(mine, options_.end(), [&](const option& b) { return no_worse(o, b); }), options_.end());
        options_.push_back(o);
      });
    }
    option_begin_[j + 1] = static_cast<std::uint32_t>(options_.size());
    least_two_[j] = least_two_[j - 1];
    for (std::size_t o = begin; o < options_.size(); ++o) least_two_[j] = std::min(least_two_[j], options_[o].two);
    if (options_.size() > begin) last_option_ = j + 1;
  }
}

HETPLAN_INLINE void region_cells::insert(std::vector<label>& found, label l) {
  const auto next = std::lower_bound(found.begin(), found.end(), l.eq1, [](const label& a, double eq1) { return a.eq1 < eq1; });
  if (next != found.end() && next->eq1 == l.eq1 && next->all <= l.all) return;
  if (next != found.begin() && (next - 1)->all <= l.all) return;
  auto worse = next;
  while (worse != found.end() && worse->all >= l.all) ++worse;
  found.insert(found.erase(next, worse), l);
}

/// Bounds on splits that improve on the best known cost: position windows and label limits of split_exactly's cells, by set of regions (bit
/// g for region g) and position.
///
/// Complexity  O(2^R R + R^2 L^2).
/// Source      ours.
class region_bounds {
 public:
  region_bounds(const region_cells& cells, region_use use, region_cost cost, int microbatches, double best_s);

  /// Returns the furthest position that stages of a set, each below the best known cost, reach from the first layer.
  [[nodiscard]] std::size_t furthest(std::size_t set) const { return furthest_[set]; }
  /// Returns the earliest position from which such stages of a set reach the last layer.
  [[nodiscard]] std::size_t earliest(std::size_t set) const { return earliest_[set]; }
  /// Returns the limit below which labels at position i must stay, with `others` regions before it: all of them or any, by region_use.
  [[nodiscard]] region_cells::label limit(std::size_t others, std::size_t i, double best_s) const {
    constexpr double inf = region_cells::inf;
    const region_cells::label before = before_s_[others * positions_ + i];
    return before.eq1 < inf ? region_cells::label{best_s - before.eq1, best_s - before.all} : region_cells::label{-inf, -inf};
  }

 private:
  void make_reach(const region_cells& cells, double best_s);
  /// Sets the least cost before each position over stages in any regions, repeats allowed: sums of F + c + max(0, c - F), and of F + c.
  /// @param link_turns  microbatches that a link carries one after the other; 0: not counted.
  void make_fill(const region_cells& cells, region_use use, int link_turns, double best_s);

  std::size_t n_, positions_;
  std::vector<std::size_t> furthest_, earliest_;
  std::vector<region_cells::label> before_s_;  ///< by number of regions left, then position
};

HETPLAN_INLINE region_bounds::region_bounds(const region_cells& cells, region_use use, region_cost cost, int microbatches, double best_s)
    : n_(cells.regions()), positions_(cells.positions()) {
  make_reach(cells, best_s);
  make_fill(cells, use, cost == region_cost::printed ? 0 : microbatches, best_s);
}

HETPLAN_INLINE void region_bounds::make_reach(const region_cells& cells, double best_s) {
  const std::size_t N = positions_, sets = std::size_t{1} << n_;
  // reach[g][l]: furthest end of a run of g that begins at or before l; start[g][l]: earliest begin of one that ends at or behind l.
  std::vector<std::size_t> reach(n_ * (N + 1)), start(n_ * (N + 1));
  for (std::size_t g = 0; g < n_; ++g) {
    for (std::size_t l = 0; l <= N; ++l) reach[g * (N + 1) + l] = start[g * (N + 1) + l] = l;
    for (std::size_t i = 0; i < N; ++i) {
      for (std::size_t j = i + 1; j <= N; ++j) {
        if (cells.work_s(g, i, j) >= best_s) continue;
        auto& r = reach[g * (N + 1) + i];
        auto& s = start[g * (N + 1) + j];
        r = std::max(r, j);
        s = std::min(s, i);
      }
    }
    for (std::size_t l = 1; l <= N; ++l) reach[g * (N + 1) + l] = std::max(reach[g * (N + 1) + l], reach[g * (N + 1) + l - 1]);
    for (std::size_t l = N; l-- > 0;) start[g * (N + 1) + l] = std::min(start[g * (N + 1) + l], start[g * (N + 1) + l + 1]);
  }
  furthest_.assign(sets, 0);
  earliest_.assign(sets, N);
  for (std::size_t set = 1; set < sets; ++set) {
    for (std::size_t g = 0; g < n_; ++g) {
      if ((set >> g & 1U) == 0) continue;
      const std::size_t rest = set & ~(std::size_t{1} << g);
      furthest_[set] = std::max(furthest_[set], reach[g * (N + 1) + furthest_[rest]]);
      earliest_[set] = std::min(earliest_[set], start[g * (N + 1) + earliest_[rest]]);
    }
  }
}

HETPLAN_INLINE void region_bounds::make_fill(const region_cells& cells, region_use use, int link_turns, double best_s) {
  const std::size_t N = positions_;
  std::vector<region_cells::label> by_stages((n_ + 1) * N, {region_cells::inf, region_cells::inf});
  std::vector<double> link_s(n_ * N, region_cells::inf);
  by_stages[0] = {0, 0};
  for (std::size_t g = 0; g < n_; ++g) {
    for (std::size_t h = 0; h < n_; ++h) {
      for (std::size_t j = 1; j < N; ++j) link_s[g * N + j] = std::min(link_s[g * N + j], cells.transfer_s(g, h, j));
    }
  }
  for (std::size_t k = 1; k < n_; ++k) {
    for (std::size_t g = 0; g < n_; ++g) {
      for (std::size_t i = k - 1; i < N; ++i) {
        const region_cells::label so_far = by_stages[(k - 1) * N + i];
        if (so_far.eq1 >= best_s) continue;
        for (std::size_t j = i + 1; j < N; ++j) {
          if (so_far.eq1 + cells.work_s(g, i, j) >= best_s) continue;
          const double f = cells.forward_s(g, i, j), c = link_s[g * N + j];
          if (link_turns > 0 && so_far.all + f + link_turns * c >= best_s) continue;
          region_cells::label& least = by_stages[k * N + j];
          least.eq1 = std::min(least.eq1, so_far.eq1 + c + std::max(f, c));
          least.all = std::min(least.all, so_far.all + f + c);
        }
      }
    }
  }
  before_s_.assign(n_ * N, {region_cells::inf, region_cells::inf});
  for (std::size_t others = 0; others < n_; ++others) {
    for (std::size_t l = 0; l < N; ++l) {
      region_cells::label& least = before_s_[others * N + l];
      for (std::size_t k = use == region_use::all ? others : 0; k <= others; ++k) {
        least.eq1 = std::min(least.eq1, by_stages[k * N + l].eq1);
        least.all = std::min(least.all, by_stages[k * N + l].all);
      }
    }
  }
}

}  // namespace hetplan::partition::detail

namespace hetplan::partition {

namespace detail {

/// Returns the status if no split fits, with the simplest reason that holds for every split.
HETPLAN_INLINE status no_split(const region_chain& chain, const region_cells& cells, region_use use, const std::string& orders) {
  const std::size_t n = cells.regions(), positions = cells.positions();
  status s{outcome::infeasible, {}};
  if (use == region_use::all && n > positions) {
    s.reason = std::to_string(n) + " regions cannot share " + std::to_string(positions) + " positions";
  }
  for (std::size_t i = 0; i < positions && s.reason.empty(); ++i) {
    bool fits = false;
    for (std::size_t g = 0; g < n && !fits; ++g) {
      for (std::size_t b = 0; b <= i && !fits; ++b) {
        for (std::size_t e = i + 1; e <= positions && !fits; ++e) fits = cells.work_s(g, b, e) < region_cells::inf;
      }
    }
    if (!fits) s.reason = "layer " + std::to_string(chain.positions[i]) + " is part of no run of layers that fits a region";
  }
  if (s.reason.empty()) {
    s.reason = std::string("no split has stages that all fit and links between them, with ") +
               (use == region_use::all ? "every region used" : "any of the regions");
  }
  s.proof =
      infeasibility_proof{.of = "splits of " + std::to_string(positions) + " positions over " + std::to_string(n) + " regions in " + orders,
                          .searched = std::max(1LL, cells.extensions())};
  return s;
}

HETPLAN_INLINE status out_of_extensions(long long most, bool found) {
  return {outcome::stopped, std::to_string(most) + " extensions were weighed; " + (found ? "the best so far" : "no split so far")};
}

/// Chains with more positions are first split at a quarter of them, those with the least transfer times.
inline constexpr std::size_t coarse_positions = 24;

HETPLAN_INLINE region_chain coarser(const region_chain& chain) {
  region_chain coarse = chain;
  coarse.positions = {0};
  for (std::size_t begin = 1; begin < chain.positions.size(); begin += 4) {
    std::size_t lightest = begin;
    double least_s = region_cells::inf;
    for (std::size_t j = begin; j < std::min(begin + 4, chain.positions.size()); ++j) {
      double sum_s = 0;
      for (std::size_t g = 0; g + 1 < chain.regions; ++g) sum_s += checked_transfer_s(chain, g, g + 1, j);
      if (sum_s < least_s) least_s = sum_s, lightest = j;
    }
    coarse.positions.push_back(chain.positions[lightest]);
  }
  return coarse;
}

/// Returns the best split of the cells' regions in this order, or no split.
HETPLAN_INLINE region_split best_in_order(const region_chain& chain, region_cells& cells, const std::vector<std::size_t>& order,
                                          const region_dp_options& o) {
  const std::size_t n = order.size(), positions = cells.positions();
  const bool any = o.use == region_use::any;
  if (!any && n > positions) return {};
  std::vector<region_cells::cell> table(n);
  const auto successors = [&](std::size_t k) {
    std::vector<region_cells::successor> all;
    for (std::size_t b = k + 1; b < (any ? n : std::min(n, k + 2)); ++b) all.push_back({order[b], &table[b]});
    return all;
  };
  const auto last = [&](std::size_t k) { return any || k + 1 == n; };
  for (std::size_t k = n; k-- > 0;) {
    const std::size_t lo = any ? 0 : k, hi = any ? positions - 1 : k == 0 ? 0 : positions - (n - k);
    table[k] = cells.fill(order[k], lo, hi, successors(k), last(k), [](std::size_t) {
      return region_cells::label{region_cells::inf, region_cells::inf};
    });
    if (cells.extensions() > o.most_extensions) return {};
  }
  std::size_t front = 0;
  region_cells::label best{region_cells::inf, region_cells::inf};
  for (std::size_t k = 0; k < (any ? n : 1); ++k) {
    table[k].each(0, [&](const region_cells::label& l) {
      if (l.all < best.all) best = l, front = k;
    });
  }
  if (best.all == region_cells::inf) return {};
  region_split split;
  for (std::size_t k = front, i = 0;;) {
    split.first.push_back(chain.positions[i]);
    split.region.push_back(cells.region(order[k]));
    const auto step = cells.trace(order[k], i, successors(k), last(k), best);
    if (step.position == positions) break;
    k += 1 + step.successor;
    i = step.position;
    best = step.behind;
  }
  split.seconds = region_split_seconds(chain, split, o.cost);
  return split;
}

/// Exact search over sets of regions.
class region_sets {
 public:
  region_sets(const region_chain& chain, const region_dp_options& o, region_cells& cells, region_split known)
      : chain_(chain), options_(o), n_(chain.regions), cells_(cells), known_(std::move(known)), best_s_(known_.seconds) {}

  region_result run() {
    const region_bounds bounds(cells_, options_.use, options_.cost, chain_.microbatches, best_s_);
    const std::size_t full = (std::size_t{1} << n_) - 1;
    table_.resize((full + 1) * n_);
    region_result r;
    bool stopped = false;
    for (std::size_t set = 1; set <= full && !stopped; ++set) {
      for (std::size_t g = 0; g < n_ && !stopped; ++g) {
        if ((set >> g & 1U) == 0) continue;
        fill(set, g, bounds);
        stopped = cells_.extensions() > options_.most_extensions;
      }
    }
    if (set_ != 0) known_ = traced();
    r.weighed = cells_.extensions();
    r.split = std::move(known_);
    if (stopped) {
      r.status = out_of_extensions(options_.most_extensions, r.split.exists());
    } else if (!r.split.exists()) {
      r.status = no_split(chain_, cells_, options_.use, "any order");
    }
    return r;
  }

 private:
  std::vector<region_cells::successor> successors(std::size_t set, std::size_t g) const {
    std::vector<region_cells::successor> all;
    const std::size_t rest = set & ~(std::size_t{1} << g);
    for (std::size_t h = 0; h < n_; ++h) {
      if (rest >> h & 1U) all.push_back({h, &table_[rest * n_ + h]});
    }
    return all;
  }

  void fill(std::size_t set, std::size_t g, const region_bounds& bounds) {
    const std::size_t full = (std::size_t{1} << n_) - 1, others = n_ - static_cast<std::size_t>(std::popcount(set));
    const std::size_t lo = std::max(bounds.earliest(set), options_.use == region_use::all ? others : 0);
    const std::size_t hi = std::min(bounds.furthest(full & ~set), cells_.positions() - 1);
    table_[set * n_ + g] = cells_.fill(g, lo, hi, successors(set, g), std::popcount(set) == 1,
                                       [&](std::size_t i) { return bounds.limit(others, i, best_s_); });
    if (options_.use == region_use::all && others > 0) return;
    table_[set * n_ + g].each(0, [&](const region_cells::label& l) {
      if (l.all >= best_s_) return;
      best_s_ = l.all;
      set_ = set, front_ = g, label_ = l;
    });
  }

  region_split traced() const {
    region_split split;
    region_cells::label l = label_;
    std::size_t set = set_, g = front_, i = 0;
    for (;;) {
      split.first.push_back(chain_.positions[i]);
      split.region.push_back(g);
      const auto behind = successors(set, g);
      const auto step = cells_.trace(g, i, behind, std::popcount(set) == 1, l);
      if (step.position == cells_.positions()) break;
      set &= ~(std::size_t{1} << g);
      g = behind[step.successor].region;
      i = step.position;
      l = step.behind;
    }
    split.seconds = region_split_seconds(chain_, split, options_.cost);
    return known_.exists() && known_.seconds <= split.seconds ? known_ : split;
  }

  const region_chain& chain_;
  const region_dp_options& options_;
  std::size_t n_;
  region_cells& cells_;
  region_split known_;
  double best_s_;
  std::vector<region_cells::cell> table_;  ///< by set, then front region
  std::size_t set_ = 0, front_ = 0;        ///< of the best split; 0: none better than the known one
  region_cells::label label_ = {};
};

}  // namespace detail

HETPLAN_INLINE region_result split_in_order(const region_chain& chain, const std::vector<std::size_t>& order,
                                            const region_dp_options& options) {
  const std::string who = "split_in_order";
  detail::require_region_chain(chain, who);
  std::vector<bool> listed(chain.regions, false);
  for (const std::size_t g : order) {
    if (g >= chain.regions || listed[g]) {
      throw invalid_input(who + ": region " + std::to_string(g) + " in the order; expected each of the " + std::to_string(chain.regions) +
                          " regions once at most");
    }
    listed[g] = true;
  }
  if (order.empty()) throw invalid_input(who + ": the order is empty");
  detail::region_cells cells(chain, options.cost, order);
  region_result r;
  std::vector<std::size_t> of_cells(order.size());
  std::iota(of_cells.begin(), of_cells.end(), std::size_t{0});
  r.split = detail::best_in_order(chain, cells, of_cells, options);
  r.weighed = cells.extensions();
  if (r.weighed > options.most_extensions) {
    r.status = detail::out_of_extensions(options.most_extensions, false);
  } else if (!r.split.exists()) {
    r.status = detail::no_split(chain, cells, options.use, "the given order");
  }
  return r;
}

HETPLAN_INLINE region_result split_exactly(const region_chain& chain, const region_dp_options& options) {
  const std::string who = "split_exactly";
  detail::require_region_chain(chain, who);
  if (chain.regions > max_exact_regions) {
    throw invalid_input(who + ": " + std::to_string(chain.regions) + " regions; expected at most " + std::to_string(max_exact_regions) +
                        ", or split_by_beam");
  }
  region_result found = split_by_beam(chain, {.cost = options.cost, .use = options.use});
  found.status = {};
  found.weighed = 0;
  if (chain.positions.size() > detail::coarse_positions) {
    const region_result coarse = split_exactly(detail::coarser(chain), options);
    found.weighed = coarse.weighed;
    if (coarse.split.seconds < found.split.seconds) found.split = coarse.split;
  }
  std::vector<std::size_t> all(chain.regions);
  std::iota(all.begin(), all.end(), std::size_t{0});
  detail::region_cells cells(chain, options.cost, all);
  cells.spend(found.weighed);
  if (found.split.exists()) {
    region_split better = detail::best_in_order(chain, cells, found.split.region, options);
    if (better.seconds < found.split.seconds) found.split = std::move(better);
  }
  return detail::region_sets(chain, options, cells, std::move(found.split)).run();
}

HETPLAN_INLINE region_result split_regions(const region_chain& chain, const region_dp_options& options, region_beam_options beam) {
  if (chain.regions <= max_exact_regions) return split_exactly(chain, options);
  beam.cost = options.cost;
  beam.use = options.use;
  region_result r = split_by_beam(chain, beam);
  if (!r.split.exists()) return r;
  const region_result finished = split_in_order(chain, r.split.region, options);
  r.weighed += finished.weighed;
  if (finished.split.seconds < r.split.seconds) r.split = finished.split;
  return r;
}

HETPLAN_INLINE double beam_against_exact::gap() const {
  if (!exact.split.exists() || beam.split.seconds == exact.split.seconds) return 0;
  return beam.split.seconds / exact.split.seconds - 1;
}

HETPLAN_INLINE beam_against_exact compare_with_exact(const region_chain& chain, const region_beam_options& beam,
                                                     long long most_extensions) {
  return {split_exactly(chain, {.cost = beam.cost, .use = beam.use, .most_extensions = most_extensions}), split_by_beam(chain, beam)};
}

}  // namespace hetplan::partition
