// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The best whole plans that a search knows: what a partial plan must promise to stay.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <hetplan/partition/partial_store.hpp>
#include <hetplan/partition/search_result.hpp>
#include <hetplan/plan/any_objective.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// The options.plans best, or all where the objective is not monotone: those are scored when all are known.
///
/// Source  Dora, section 4.1 (the K best plans). Own: the worst of them prunes.
class incumbents {
 public:
  /// @param known_score  plans as good as this are known already.
  incumbents(const any_objective& objective, const search_options& options, double known_score)
      : objective_(objective), wanted_(static_cast<std::size_t>(options.plans)), threshold_(known_score) {}

  [[nodiscard]] double score(double response_s, double energy_J) const { return detail::checked_score(objective_, response_s, energy_J); }
  /// The largest score that still matters, with room for rounding.
  [[nodiscard]] double worth_keeping() const { return threshold_ + 1e-9 * std::abs(threshold_); }
  [[nodiscard]] const std::vector<partial_node>& all() const { return whole_; }

  void add(const partial_node& whole) {
    const auto better = [](const partial_node& x, const partial_node& y) {
      return std::pair(x.rank, x.stages) < std::pair(y.rank, y.stages);
    };
    whole_.insert(std::upper_bound(whole_.begin(), whole_.end(), whole, better), whole);
    if (!objective_.monotone()) return;
    if (whole_.size() > wanted_) whole_.pop_back();
    if (whole_.size() == wanted_) threshold_ = std::min(threshold_, whole_.back().rank);
  }

 private:
  const any_objective& objective_;
  std::size_t wanted_;
  double threshold_;
  std::vector<partial_node> whole_;  ///< best first
};

}  // namespace HETPLAN_NAMESPACE::partition
