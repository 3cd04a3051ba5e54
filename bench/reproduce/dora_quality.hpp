// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a search that keeps K partial plans per cell loses: against the best plan of the whole space under the
/// estimate, against the best simulated one, and what the choice of shares costs either.
///
/// Seeded random instances: unequal devices, uneven networks, chains and DAGs, memory, energy and busy limits that
/// many plans break.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/hetplan.hpp>

#include "reproduce/sections.hpp"
#include "support/search_instance.hpp"

namespace bench {

namespace quality {

using namespace hetplan;
using namespace hetplan::partition;

inline constexpr double same = 1e-9;  // relative: sums of the same numbers in another order
inline constexpr std::array kept_per_cell{1, 3, 10};

inline std::string percent(double share) { return number("%.2f %%", 100 * share); }

/// How far scores lie above what they are compared with.
class distances {
 public:
  void lost() {
    ++count_;
    ++lost_;
  }
  void add(double score, double best) {
    ++count_;
    const double d = best > 0 ? score / best - 1 : score - best;
    all_.push_back(d > same ? d : 0);
    if (d < -same) throw std::logic_error("quality: better than the best of the whole space");
  }
  [[nodiscard]] long long count() const { return count_; }
  /// Compared; off; none that keeps the limits; of those off: median; of all: 95th percentile, worst.
  [[nodiscard]] row columns() const {
    std::vector<double> all = all_, off;
    std::copy_if(all.begin(), all.end(), std::back_inserter(off), [](double d) { return d > 0; });
    const auto n = static_cast<double>(std::max(count_, 1LL));
    return {std::to_string(count_),
            percent(static_cast<double>(off.size()) / n),
            percent(static_cast<double>(lost_) / n),
            percent(quantile(off, 0.5)),
            percent(quantile(all, 0.95)),
            percent(quantile(all, 1))};
  }

 private:
  static double quantile(std::vector<double>& values, double q) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())) - (q > 0 ? 1 : 0))];
  }
  std::vector<double> all_;
  long long count_ = 0, lost_ = 0;
};

inline row with(row names, const row& numbers) {
  names.insert(names.end(), numbers.begin(), numbers.end());
  return names;
}

/// One instance with its tables; asks everything about it.
struct problem {
  test::search_instance i;
  search_tables tables;
  device_space devices;
  space_options space;

  explicit problem(test::search_instance instance)
      : i(std::move(instance)),
        tables(i.model, i.sequence, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank.workload, i.blank.microbatch_size),
        devices(test::any_order(tables, i.blank)) {
    for (const auto& members : tables.classes) space.device_order.insert(space.device_order.end(), members.begin(), members.end());
  }
  problem(const problem&) = delete;

  template <class Objective>
  [[nodiscard]] std::optional<scored_plan> best(const Objective& o, bool all_shares = false) const {
    space_options options = space;
    options.all_shares = all_shares;
    auto plans =
        brute_force(i.sequence, i.model, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank, options, o, dominant_step{}, 1);
    if (plans.empty()) return std::nullopt;
    return std::move(plans.front());
  }
  template <class Objective>
  [[nodiscard]] std::vector<found_plan> search(const Objective& o, int k) const {
    return two_substate_dp(tables, devices, i.blank, o, top_k{k}, {.plans = k}).plans;
  }
  /// The simulated score, or nothing if a limit is broken.
  template <class Objective>
  [[nodiscard]] std::optional<double> simulated(const plan& p, const Objective& o) const {
    const evaluation e = judge(p, i.model, i.cluster, roofline{}).evaluation;
    if (find_broken_limit(e, i.cluster)) return std::nullopt;
    return score(o, e);
  }
  /// A response a little above the least: latency and energy both matter.
  [[nodiscard]] std::optional<keep_qoe> qoe() const {
    const auto fastest = best(minimize_latency{});
    if (!fastest) return std::nullopt;
    return keep_qoe{1.2 * fastest->evaluation.response(), 1000};
  }
};

inline const row distance_columns{"instances", "off", "none fits", "median of off", "95 % of all", "worst"};

// Under the estimate.

template <class Objective>
void compare_estimates(const problem& p, const Objective& o, std::array<distances, kept_per_cell.size()>& by_k) {
  const auto best = p.best(o);
  if (!best) return;
  for (std::size_t k = 0; k < by_k.size(); ++k) {
    const auto found = p.search(o, kept_per_cell[k]);
    if (found.empty()) by_k[k].lost();
    else by_k[k].add(score(o, found.front().estimate), best->score);
  }
}

inline std::vector<row> under_the_estimate(std::uint64_t instances) {
  std::array<distances, kept_per_cell.size()> latency, qoe;
  for (std::uint64_t seed = 1; seed <= instances; ++seed) {
    const problem p(test::random_search_instance(seed, {.most_layers = 7, .most_devices = 4}));
    compare_estimates(p, minimize_latency{}, latency);
    if (const auto o = p.qoe()) compare_estimates(p, *o, qoe);
  }
  std::vector<row> rows{with({"objective", "K"}, distance_columns)};
  for (std::size_t k = 0; k < kept_per_cell.size(); ++k)
    rows.push_back(with({"latency", std::to_string(kept_per_cell[k])}, latency[k].columns()));
  for (std::size_t k = 0; k < kept_per_cell.size(); ++k)
    rows.push_back(with({"keep_qoe", std::to_string(kept_per_cell[k])}, qoe[k].columns()));
  return rows;
}

// Simulated.

struct simulated_rows {
  std::array<distances, kept_per_cell.size()> by_k;
  distances first, rescored;
};

template <class Objective>
void compare_simulated(const problem& p, const Objective& o, simulated_rows& rows) {
  double best = std::numeric_limits<double>::infinity();
  for_each_plan(p.i.sequence, p.i.model, p.i.cluster, roofline{}, plain_memory{}, p.i.blank, p.space, [&](const plan& each) {
    if (const auto s = p.simulated(each, o)) best = std::min(best, *s);
  });
  if (!std::isfinite(best)) return;
  const auto tell = [&](distances& d, std::optional<double> score) {
    if (score) d.add(*score, best);
    else d.lost();
  };
  std::vector<found_plan> found;
  for (std::size_t k = 0; k < rows.by_k.size(); ++k) {
    found = p.search(o, kept_per_cell[k]);
    std::optional<double> mine;
    for (const found_plan& f : found) {
      if (const auto s = p.simulated(f.plan, o); s && (!mine || *s < *mine)) mine = s;
    }
    tell(rows.by_k[k], mine);
  }
  if (found.empty()) {
    for (distances* d : {&rows.first, &rows.rescored}) d->lost();
    return;
  }
  // The plans of the largest K, chosen from in other ways.
  tell(rows.first, p.simulated(found.front().plan, o));
  const plan* choice = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const found_plan& f : found) {
    const evaluation e = estimate(f.plan, p.i.model, p.i.cluster, roofline{}, plain_memory{}, linear_power{}, critical_path{});
    if (find_broken_limit(e, p.i.cluster)) continue;
    if (const double s = score(o, e); s < least) {
      least = s;
      choice = &f.plan;
    }
  }
  tell(rows.rescored, choice == nullptr ? std::nullopt : p.simulated(*choice, o));
}

inline std::vector<row> simulated(std::uint64_t instances) {
  simulated_rows latency, qoe;
  for (std::uint64_t seed = 1; seed <= instances; ++seed) {
    const problem p(test::random_search_instance(seed, {.most_layers = 6, .most_devices = 4}));
    compare_simulated(p, minimize_latency{}, latency);
    if (const auto o = p.qoe()) compare_simulated(p, *o, qoe);
  }
  std::vector<row> rows{with({"objective", "taken"}, distance_columns)};
  for (const auto& [name, of] : {std::pair("latency", &latency), std::pair("keep_qoe", &qoe)}) {
    for (std::size_t k = 0; k < kept_per_cell.size(); ++k) {
      rows.push_back(with({name, "best simulated of K = " + std::to_string(kept_per_cell[k])}, of->by_k[k].columns()));
    }
    rows.push_back(with({name, "best by critical_path of K = 10"}, of->rescored.columns()));
    rows.push_back(with({name, "first of K = 10"}, of->first.columns()));
  }
  return rows;
}

// Shares.

template <class Objective>
void compare_shares(const problem& p, const Objective& o, distances& d) {
  const auto all = p.best(o, true);
  if (!all) return;
  const auto greedy = p.best(o);
  if (greedy) d.add(greedy->score, all->score);
  else d.lost();
}

inline std::vector<row> shares(std::uint64_t instances) {
  distances latency, energy, qoe;
  for (std::uint64_t seed = 1; seed <= instances; ++seed) {
    const problem p(test::random_search_instance(seed, {.most_layers = 5, .most_devices = 3}));
    compare_shares(p, minimize_latency{}, latency);
    compare_shares(p, minimize_energy{}, energy);
    if (const auto o = p.qoe()) compare_shares(p, *o, qoe);
  }
  std::vector<row> rows{with({"objective", "shares"}, distance_columns)};
  rows.push_back(with({"latency", "min-max"}, latency.columns()));
  rows.push_back(with({"energy", "min-max"}, energy.columns()));
  rows.push_back(with({"keep_qoe", "min-max"}, qoe.columns()));
  return rows;
}

}  // namespace quality

inline void add_quality(const sections& page) {
  page.add_csv("dora.quality-estimated.csv", quality::under_the_estimate(page.quick() ? 50 : 6000));
  page.add_csv("dora.quality-simulated.csv", quality::simulated(page.quick() ? 50 : 3000));
  page.add_csv("dora.quality-shares.csv", quality::shares(page.quick() ? 50 : 4000));
}

}  // namespace bench
