// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/region_dp.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::partition {

namespace detail {

/// All that the chain's callables say, and the step of the recurrence: one more stage in front of those behind.
class region_cells {
 public:
  static constexpr double inf = std::numeric_limits<double>::infinity();

  /// What lies from a position on costs: the largest term of eq. 1, and that of all terms, which is no smaller.
  struct label {
    double eq1, all;
    bool operator==(const label&) const = default;
  };
  /// Positions [lo, lo + begin.size() - 1) of one region in front of certain others; the labels of each ascend in eq1, descend in all.
  struct cell {
    std::size_t lo = 0;
    std::vector<std::uint32_t> begin = {};
    std::vector<label> labels = {};

    template <class Visit>
    void each(std::size_t i, Visit&& visit) const {
      if (i < lo || i + 1 >= lo + begin.size()) return;
      for (std::uint32_t k = begin[i - lo]; k < begin[i - lo + 1]; ++k) visit(labels[k]);
    }
  };
  /// The region behind, and its cell.
  struct successor {
    std::size_t region;
    const cell* behind;
  };

  region_cells(const region_chain& chain, region_cost cost, std::vector<std::size_t> regions)
      : chain_(chain), cost_(cost), regions_(std::move(regions)), positions_(chain.positions.size()), row_(positions_ + 1) {
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

  [[nodiscard]] std::size_t positions() const { return positions_; }
  [[nodiscard]] std::size_t regions() const { return regions_.size(); }
  [[nodiscard]] double forward_s(std::size_t g, std::size_t i, std::size_t j) const { return forward_s_[at(g, i) + j]; }
  [[nodiscard]] double work_s(std::size_t g, std::size_t i, std::size_t j) const { return work_s_[at(g, i) + j]; }
  [[nodiscard]] double transfer_s(std::size_t g, std::size_t h, std::size_t j) const {
    return transfer_s_[(g * regions_.size() + h) * positions_ + j];
  }

  /// The cell of region g at [lo, hi] in front of the successors, or as the last stage. `limit(i)`: labels from there on, in either
  /// number, are of no use at position i.
  template <class Limit>
  cell fill(std::size_t g, std::size_t lo, std::size_t hi, const std::vector<successor>& behind, bool last, Limit&& limit) {
    cell c{.lo = lo};
    if (lo > hi) return c;
    gather(g, lo + 1, behind);
    c.begin.push_back(0);
    std::vector<label> found;
    for (std::size_t i = lo; i <= hi; ++i) {
      found.clear();
      const label most = limit(i);
      double cut = most.eq1;
      const auto add = [&](label l) {
        if (l.eq1 >= cut || l.all >= most.all) return;
        if (cost_ == region_cost::printed) cut = l.eq1;
        insert(found, l);
      };
      if (last) {
        ++extensions_;
        const double alone_s = work_s(g, i, positions_);
        add({alone_s, alone_s});
      }
      const double* work = &work_s_[at(g, i)];
      const double* least_work = &least_work_s_[at(g, i)];
      const double* forward = &forward_s_[at(g, i)];
      const auto first = std::partition_point(least_two_.begin() + static_cast<std::ptrdiff_t>(i + 1), least_two_.end(),
                                              [&](double least) { return least >= cut; });
      for (auto j = static_cast<std::size_t>(first - least_two_.begin()); j < last_option_ && least_work[j] < cut; ++j) {
        if (work[j] >= cut) continue;
        const option* const end = options_.data() + option_begin_[j + 1];
        for (const option* o = options_.data() + option_begin_[j]; o != end; ++o) {
          ++extensions_;
          add(extended(*o, work[j], forward[j]));
        }
      }
      c.labels.insert(c.labels.end(), found.begin(), found.end());
      c.begin.push_back(static_cast<std::uint32_t>(c.labels.size()));
    }
    return c;
  }

  /// What follows a stage that made a label: the position, the successor (its index) and its label.
  struct step {
    std::size_t position, successor;
    label behind;
  };
  /// How the label at position i came about; position() == positions() for the last stage.
  [[nodiscard]] step trace(std::size_t g, std::size_t i, const std::vector<successor>& behind, bool last, label made) const {
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
    HETPLAN_ASSERT(!"a label without an origin");
    return {};
  }

  [[nodiscard]] long long extensions() const { return extensions_; }
  void spend(long long extensions) { extensions_ += extensions; }

 private:
  /// What a label behind a boundary adds to a stage before it: eq1 = max(work, F + one, two), all = max(eq1, F + links).
  struct option {
    double one, two, links;
  };

  [[nodiscard]] std::size_t at(std::size_t g, std::size_t i) const { return (g * positions_ + i) * row_; }

  [[nodiscard]] option option_of(std::size_t g, std::size_t h, std::size_t j, const label& l) const {
    const double c = transfer_s(g, h, j), one = c + l.eq1;
    if (cost_ == region_cost::printed) return {one, c + one, 0};
    return {one, c + one, std::max(chain_.microbatches * c, c + l.all)};
  }
  [[nodiscard]] label extended(const option& o, double work_s, double forward_s) const {
    const double eq1 = std::max(work_s, std::max(forward_s + o.one, o.two));
    return {eq1, cost_ == region_cost::printed ? eq1 : std::max(eq1, forward_s + o.links)};
  }

  /// The options at each boundary, without those that another is no worse than in every number.
  void gather(std::size_t g, std::size_t from, const std::vector<successor>& behind) {
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

  static void insert(std::vector<label>& found, label l) {
    const auto next = std::lower_bound(found.begin(), found.end(), l.eq1, [](const label& a, double eq1) { return a.eq1 < eq1; });
    if (next != found.end() && next->eq1 == l.eq1 && next->all <= l.all) return;
    if (next != found.begin() && (next - 1)->all <= l.all) return;
    auto worse = next;
    while (worse != found.end() && worse->all >= l.all) ++worse;
    found.insert(found.erase(next, worse), l);
  }

  const region_chain& chain_;
  region_cost cost_;
  std::vector<std::size_t> regions_;
  std::size_t positions_, row_;
  std::vector<double> forward_s_, work_s_;  ///< region, begin, end
  std::vector<double> least_work_s_;        ///< of this end and later ones
  std::vector<double> transfer_s_;          ///< region, region, position
  std::vector<option> options_;             ///< of the cell that is being filled
  std::vector<std::uint32_t> option_begin_;
  std::vector<double> least_two_;  ///< of the options at this boundary and earlier ones
  std::size_t last_option_ = 0;
  long long extensions_ = 0;
};

/// No split fits: what every split lacks, where one sentence can say it.
HETPLAN_INLINE status no_split(const region_cells& cells, const region_use use) {
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
    if (!fits) s.reason = "position " + std::to_string(i) + " is part of no run of layers that fits a region";
  }
  if (s.reason.empty()) {
    s.reason = std::string("no split has stages that all fit and links between them, with ") +
               (use == region_use::all ? "every region used" : "any of the regions");
  }
  s.proof = infeasibility_proof{.of = "splits of " + std::to_string(positions) + " positions over " + std::to_string(n) + " regions",
                                .searched = std::max(1LL, cells.extensions())};
  return s;
}

HETPLAN_INLINE status out_of_extensions(long long most) {
  return {outcome::stopped, std::to_string(most) + " extensions were weighed; the best so far"};
}

/// Chains of more positions are first cut at a quarter of them, the ones with least transfers.
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

/// The best split of the regions in this order; none where none fits.
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
    split.region.push_back(order[k]);
    const auto step = cells.trace(order[k], i, successors(k), last(k), best);
    if (step.position == positions) break;
    k += 1 + step.successor;
    i = step.position;
    best = step.behind;
  }
  split.seconds = region_split_seconds(chain, split, o.cost);
  return split;
}

/// Over sets of regions.
class region_sets {
 public:
  region_sets(const region_chain& chain, const region_dp_options& o, region_cells& cells, region_split known)
      : chain_(chain), options_(o), n_(chain.regions), cells_(cells), known_(std::move(known)), best_s_(known_.seconds) {}

  region_result run() {
    make_bounds();
    const std::size_t full = (std::size_t{1} << n_) - 1;
    table_.resize((full + 1) * n_);
    region_result r;
    bool stopped = false;
    for (std::size_t set = 1; set <= full && !stopped; ++set) {
      for (std::size_t g = 0; g < n_ && !stopped; ++g) {
        if ((set >> g & 1U) == 0) continue;
        fill(set, g);
        stopped = cells_.extensions() > options_.most_extensions;
      }
    }
    if (set_ != 0) known_ = traced();
    r.weighed = cells_.extensions();
    r.split = std::move(known_);
    if (stopped) {
      r.status = out_of_extensions(options_.most_extensions);
    } else if (!r.split.exists()) {
      r.status = no_split(cells_, options_.use);
    }
    return r;
  }

 private:
  static constexpr double inf = region_cells::inf;

  std::vector<region_cells::successor> successors(std::size_t set, std::size_t g) const {
    std::vector<region_cells::successor> all;
    const std::size_t rest = set & ~(std::size_t{1} << g);
    for (std::size_t h = 0; h < n_; ++h) {
      if (rest >> h & 1U) all.push_back({h, &table_[rest * n_ + h]});
    }
    return all;
  }

  void fill(std::size_t set, std::size_t g) {
    const std::size_t others = n_ - static_cast<std::size_t>(std::popcount(set)), all = (std::size_t{1} << n_) - 1;
    std::size_t lo = behind_[set], hi = before_[all & ~set];
    if (options_.use == region_use::all) lo = std::max(lo, others);
    hi = std::min(hi, cells_.positions() - 1);
    const bool last = std::has_single_bit(set);
    const auto limit = [&](std::size_t i) {
      const region_cells::label before = before_s_[others * cells_.positions() + i];
      return before.eq1 < inf ? region_cells::label{best_s_ - before.eq1, best_s_ - before.all} : region_cells::label{-inf, -inf};
    };
    table_[set * n_ + g] = cells_.fill(g, lo, hi, successors(set, g), last, limit);
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
      const auto step = cells_.trace(g, i, behind, std::has_single_bit(set), l);
      if (step.position == cells_.positions()) break;
      set &= ~(std::size_t{1} << g);
      g = behind[step.successor].region;
      i = step.position;
      l = step.behind;
    }
    split.seconds = region_split_seconds(chain_, split, options_.cost);
    return known_.exists() && known_.seconds <= split.seconds ? known_ : split;
  }

  /// How far sets of regions reach from either end, each stage below the best known; and the least that lies before a position.
  void make_bounds() {
    const std::size_t N = cells_.positions(), sets = std::size_t{1} << n_;
    // reach[g][l]: the furthest end of a run of g that begins at l or before; start[g][l]: the earliest begin of one that ends at l or behind.
    std::vector<std::size_t> reach(n_ * (N + 1)), start(n_ * (N + 1));
    for (std::size_t g = 0; g < n_; ++g) {
      for (std::size_t l = 0; l <= N; ++l) reach[g * (N + 1) + l] = start[g * (N + 1) + l] = l;
      for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t j = i + 1; j <= N; ++j) {
          if (cells_.work_s(g, i, j) >= best_s_) continue;
          auto& r = reach[g * (N + 1) + i];
          auto& s = start[g * (N + 1) + j];
          r = std::max(r, j);
          s = std::min(s, i);
        }
      }
      for (std::size_t l = 1; l <= N; ++l) reach[g * (N + 1) + l] = std::max(reach[g * (N + 1) + l], reach[g * (N + 1) + l - 1]);
      for (std::size_t l = N; l-- > 0;) start[g * (N + 1) + l] = std::min(start[g * (N + 1) + l], start[g * (N + 1) + l + 1]);
    }
    before_.assign(sets, 0);
    behind_.assign(sets, N);
    for (std::size_t set = 1; set < sets; ++set) {
      for (std::size_t g = 0; g < n_; ++g) {
        if ((set >> g & 1U) == 0) continue;
        const std::size_t rest = set & ~(std::size_t{1} << g);
        before_[set] = std::max(before_[set], reach[g * (N + 1) + before_[rest]]);
        behind_[set] = std::min(behind_[set], start[g * (N + 1) + behind_[rest]]);
      }
    }
    make_fill_bounds();
  }

  /// What at least lies before a position, in any regions, one even twice: sums of F + c + max(0, c - F), and of F + c.
  void make_fill_bounds() {
    const std::size_t N = cells_.positions();
    std::vector<region_cells::label> by_stages((n_ + 1) * N, {inf, inf});
    std::vector<double> link_s(n_ * N, inf);
    by_stages[0] = {0, 0};
    for (std::size_t g = 0; g < n_; ++g) {
      for (std::size_t h = 0; h < n_; ++h) {
        for (std::size_t j = 1; j < N; ++j) link_s[g * N + j] = std::min(link_s[g * N + j], cells_.transfer_s(g, h, j));
      }
    }
    const int link_turns = options_.cost == region_cost::printed ? 0 : chain_.microbatches;
    for (std::size_t k = 1; k < n_; ++k) {
      for (std::size_t g = 0; g < n_; ++g) {
        for (std::size_t i = k - 1; i < N; ++i) {
          const region_cells::label so_far = by_stages[(k - 1) * N + i];
          if (so_far.eq1 >= best_s_) continue;
          for (std::size_t j = i + 1; j < N; ++j) {
            if (so_far.eq1 + cells_.work_s(g, i, j) >= best_s_) continue;
            const double f = cells_.forward_s(g, i, j), c = link_s[g * N + j];
            if (link_turns > 0 && so_far.all + f + link_turns * c >= best_s_) continue;
            region_cells::label& least = by_stages[k * N + j];
            least.eq1 = std::min(least.eq1, so_far.eq1 + c + std::max(f, c));
            least.all = std::min(least.all, so_far.all + f + c);
          }
        }
      }
    }
    before_s_.assign(n_ * N, {inf, inf});
    for (std::size_t others = 0; others < n_; ++others) {
      for (std::size_t l = 0; l < N; ++l) {
        region_cells::label& least = before_s_[others * N + l];
        for (std::size_t k = options_.use == region_use::all ? others : 0; k <= others; ++k) {
          least.eq1 = std::min(least.eq1, by_stages[k * N + l].eq1);
          least.all = std::min(least.all, by_stages[k * N + l].all);
        }
      }
    }
  }

  const region_chain& chain_;
  const region_dp_options& options_;
  std::size_t n_;
  region_cells& cells_;
  region_split known_;
  double best_s_;
  std::vector<std::size_t> before_, behind_;  ///< by set: from the first layer it reaches up to here, to the last one from here on
  std::vector<region_cells::label> before_s_; ///< by number of regions that are left, position
  std::vector<region_cells::cell> table_;     ///< by set, region in front
  std::size_t set_ = 0, front_ = 0;           ///< the best one's; 0: none better than the known
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
  for (std::size_t& g : r.split.region) g = order[g];
  r.weighed = cells.extensions();
  if (r.weighed > options.most_extensions) {
    r.status = detail::out_of_extensions(options.most_extensions);
  } else if (!r.split.exists()) {
    r.status = detail::no_split(cells, options.use);
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

HETPLAN_INLINE double beam_against_exact::gap() const {
  if (!exact.split.exists() || beam.split.seconds == exact.split.seconds) return 0;
  return beam.split.seconds / exact.split.seconds - 1;
}

HETPLAN_INLINE beam_against_exact compare_with_exact(const region_chain& chain, const region_beam_options& beam, long long most_extensions) {
  return {split_exactly(chain, {.cost = beam.cost, .use = beam.use, .most_extensions = most_extensions}), split_by_beam(chain, beam)};
}

}  // namespace HETPLAN_NAMESPACE::partition
