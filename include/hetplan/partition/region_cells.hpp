// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The step of the recurrence behind region_dp: one more stage in front of what lies behind.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/partition/region_chain.hpp>

namespace hetplan::partition::detail {

/// All that a chain's callables say of some of its regions, which have numbers of their own here, and the best of what lies behind.
///
/// Complexity  of the tables: O(R L^2) calls of stage, O(R^2 L) of transfer_s, and as much memory.
/// Source      ours, for DeepCEE, section 3.3.2, eq. 1; see split_in_order.
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

  region_cells(const region_chain& chain, region_cost cost, std::vector<std::size_t> regions);

  [[nodiscard]] std::size_t positions() const { return positions_; }
  [[nodiscard]] std::size_t regions() const { return regions_.size(); }
  [[nodiscard]] std::size_t region(std::size_t g) const { return regions_[g]; }
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
  [[nodiscard]] step trace(std::size_t g, std::size_t i, const std::vector<successor>& behind, bool last, label made) const;

  [[nodiscard]] long long extensions() const { return extensions_; }
  void spend(long long extensions) { extensions_ += extensions; }

 private:
  /// What a label behind a boundary adds to a stage before it: eq1 = max(work, F + one, two), all = max(eq1, F + links).
  struct option {
    double one, two, links;
  };

  [[nodiscard]] std::size_t at(std::size_t g, std::size_t i) const { return (g * positions_ + i) * row_; }

  [[nodiscard]] option option_of(std::size_t g, std::size_t h, std::size_t j, const label& l) const;
  [[nodiscard]] label extended(const option& o, double work_s, double forward_s) const {
    const double eq1 = std::max(work_s, std::max(forward_s + o.one, o.two));
    return {eq1, cost_ == region_cost::printed ? eq1 : std::max(eq1, forward_s + o.links)};
  }

  /// The options at each boundary, without those that another is no worse than in every number.
  void gather(std::size_t g, std::size_t from, const std::vector<successor>& behind);
  static void insert(std::vector<label>& found, label l);

  region_cost cost_;
  int microbatches_;
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

}  // namespace hetplan::partition::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/region_cells.ipp>
#endif
