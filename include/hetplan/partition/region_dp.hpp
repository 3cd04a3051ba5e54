// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Exact splits of a chain of layers over regions under DeepCEE's cost, for one order of the regions or over all of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/partition/region_chain.hpp>

namespace hetplan::partition::detail {

// The step of the recurrence behind region_dp: one more stage in front of what lies behind.

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

namespace hetplan::partition {

/// The most regions that all orders of are searched exactly.
inline constexpr std::size_t max_exact_regions = 12;

struct region_dp_options {
  region_cost cost = region_cost::printed;
  region_use use = region_use::all;
  long long most_extensions = 300'000'000;  ///< weighed, in a few seconds; then the best so far is the answer, status stopped
};

/// The best split of regions in this order.
///
/// From the last layer to the first: with a_s = F_s + c_s + max(0, c_s - F_s),
///     G(s, l) = min over l' of max(m T_s + AL_s, a_s + G(s + 1, l')),
/// for eq. 1 is the largest of terms that all grow by a_s where a stage is put in front. Under serial_links the second maximum grows by
/// F_s + c_s instead, so a cell keeps every pair (largest term of eq. 1, largest of all) that no other is below in both.
///
/// @param order  regions, each once at most. region_use::all: each has a stage; any: may be left out.
/// @return       feasible, or infeasible with a proof; or stopped, without a split.
/// Complexity    O(R L^2) for R regions and L positions, O(R^2 L^2) with region_use::any; times the pairs of a cell, a few, under
///               serial_links. Memory O(R L^2).
/// Throws        invalid_input (a chain that is none, an order with a region twice or that the chain lacks); invalid_model (seconds NaN
///               or negative).
/// Determinism   ties: the earlier region of the order in front, then the earlier boundaries.
/// Source        ours, for DeepCEE, section 3.3.2, eq. 1.
[[nodiscard]] region_result split_in_order(const region_chain& chain, const std::vector<std::size_t>& order,
                                           const region_dp_options& options = {});

/// The best split over all orders of at most max_exact_regions regions: the same recurrence over (set of the regions behind, the one in
/// front, position).
///
/// The beam's split is the first best one known. A cell (U, g, l) is left out where the regions outside U cannot hold the layers before l,
/// or those of U the others, each stage below the best known; and where its value and what at least lies before it, by stages in any
/// regions, reach the best known. Neither needs times that grow with a run.
///
/// @return       feasible: a best split; infeasible, with a proof; or stopped: the best so far, if any.
/// Complexity    O(2^R R^2 L^2) at worst; what the bounds leave is measured by bench_regions. Memory O(2^R R L + R L^2).
/// Throws        invalid_input (a chain that is none, too many regions); invalid_model (seconds NaN or negative).
/// Determinism   yes; ties: the beam's split, else the first found.
/// Source        ours, for DeepCEE, section 3.3.3, whose beam it judges.
[[nodiscard]] region_result split_exactly(const region_chain& chain, const region_dp_options& options = {});

/// What a planner asks for: split_exactly up to max_exact_regions; the beam above, and then split_in_order of what it found.
///
/// @param beam   its cost and use are those of `options`.
/// @return       feasible for a split of the beam, too, which nothing proves to be best.
/// Throws, Complexity, Determinism  as the parts.
/// Source        DeepCEE, section 3.3.3; the exact parts are ours.
[[nodiscard]] region_result split_regions(const region_chain& chain, const region_dp_options& options = {}, region_beam_options beam = {});

/// The beam beside the exact search.
struct beam_against_exact {
  region_result exact, beam;

  /// By how much the beam's split is slower, relative; infinite where it found none and there is one, 0 where there is none.
  [[nodiscard]] double gap() const;
};
/// Cost and use are the beam's.   Throws, Complexity  as the two.
[[nodiscard]] beam_against_exact compare_with_exact(const region_chain& chain, const region_beam_options& beam = {},
                                                    long long most_extensions = region_dp_options{}.most_extensions);

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/region_dp.ipp>
#endif
