// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Exact splits of a layer chain over regions under DeepCEE's cost, for one order of the regions or for all orders.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/partition/region_chain.hpp>

namespace hetplan::partition::detail {

/// Tabled costs of a chain for a subset of its regions, which are renumbered, and one step of the recurrence: a new front stage.
///
/// Complexity  of the tables: O(R L^2) calls of stage, O(R^2 L) of transfer_s, and equal memory.
/// Source      ours, for DeepCEE, section 3.3.2, eq. 1; see split_in_order.
class region_cells {
 public:
  static constexpr double inf = std::numeric_limits<double>::infinity();

  /// Cost of a suffix of the chain: the largest term of eq. 1, and the largest of all terms, which is no smaller.
  struct label {
    double eq1, all;
    bool operator==(const label&) const = default;
  };
  /// Labels of the positions [lo, lo + begin.size() - 1) for one front region before given successors. At each position they ascend in eq1
  /// and descend in all.
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

  /// Returns the cell of region g at positions [lo, hi], as a stage before the successors or as the last stage. Labels that reach
  /// `limit(i)` at position i, in either number, are dropped.
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

  /// Origin of a label: the position behind its stage, the successor's index, and the successor's label.
  struct step {
    std::size_t position, successor;
    label behind;
  };
  /// Returns the origin of the label `made` at position i; its position is positions() for the last stage.
  [[nodiscard]] step trace(std::size_t g, std::size_t i, const std::vector<successor>& behind, bool last, label made) const;

  [[nodiscard]] long long extensions() const { return extensions_; }
  void spend(long long extensions) { extensions_ += extensions; }

 private:
  /// Contribution of a label behind a boundary to the stage before: eq1 = max(work, F + one, two), all = max(eq1, F + links).
  struct option {
    double one, two, links;
  };

  [[nodiscard]] std::size_t at(std::size_t g, std::size_t i) const { return (g * positions_ + i) * row_; }

  [[nodiscard]] option option_of(std::size_t g, std::size_t h, std::size_t j, const label& l) const;
  [[nodiscard]] label extended(const option& o, double work_s, double forward_s) const {
    const double eq1 = std::max(work_s, std::max(forward_s + o.one, o.two));
    return {eq1, cost_ == region_cost::printed ? eq1 : std::max(eq1, forward_s + o.links)};
  }

  /// Collects the Pareto-minimal options at each boundary.
  void gather(std::size_t g, std::size_t from, const std::vector<successor>& behind);
  static void insert(std::vector<label>& found, label l);

  region_cost cost_;
  int microbatches_;
  std::vector<std::size_t> regions_;
  std::size_t positions_, row_;
  std::vector<double> forward_s_, work_s_;  ///< by region, begin, end
  std::vector<double> least_work_s_;        ///< minimum over this end and later ones
  std::vector<double> transfer_s_;          ///< by region, region, position
  std::vector<option> options_;             ///< of the cell being filled
  std::vector<std::uint32_t> option_begin_;
  std::vector<double> least_two_;  ///< minimum over this boundary and earlier ones
  std::size_t last_option_ = 0;
  long long extensions_ = 0;
};

}  // namespace hetplan::partition::detail

namespace hetplan::partition {

/// Largest number of regions for which all orders are searched exactly.
inline constexpr std::size_t max_exact_regions = 12;

struct region_dp_options {
  region_cost cost = region_cost::printed;
  region_use use = region_use::all;
  long long most_extensions = 300'000'000;  ///< limit, a few seconds of work; the best so far is then returned with status stopped
};

/// Returns the best split of regions in the given order.
///
/// Recurrence from the last layer to the first, with a_s = F_s + c_s + max(0, c_s - F_s):
///     G(s, l) = min over l' of max(m T_s + AL_s, a_s + G(s + 1, l')).
/// It is valid because eq. 1 is a maximum of terms that all grow by a_s when a stage is put in front. Under serial_links the second maximum
/// grows by F_s + c_s instead, so a cell keeps every Pareto-minimal pair (largest term of eq. 1, largest term of all).
///
/// @param order  distinct regions. Each has a stage (region_use::all) or may be left out (any).
/// @return       feasible; infeasible with a proof; or stopped, without a split.
/// Complexity    O(R L^2) for R regions and L positions, O(R^2 L^2) with region_use::any; under serial_links times the few pairs per cell.
///               Memory O(R L^2).
/// Throws        invalid_input (invalid chain; an order with unknown or repeated regions); invalid_model (NaN or negative seconds).
/// Determinism   ties: the earlier region of the order in front, then earlier boundaries.
/// Source        ours, for DeepCEE, section 3.3.2, eq. 1.
[[nodiscard]] region_result split_in_order(const region_chain& chain, const std::vector<std::size_t>& order,
                                           const region_dp_options& options = {});

/// Returns the best split over all orders of at most max_exact_regions regions, by the same recurrence over (set of regions behind, front
/// region, position).
///
/// The beam's split is the first incumbent. A cell (U, g, l) is skipped if the regions outside U cannot hold the layers before l, or those
/// of U the rest, with each stage below the incumbent's cost; or if its value plus the least cost before it, by stages in any regions,
/// reaches the incumbent. Neither test assumes that times grow with the length of a run.
///
/// @return       feasible: a best split; infeasible, with a proof; or stopped: the best so far, if any.
/// Complexity    O(2^R R^2 L^2) in the worst case; bench_regions measures the effect of the bounds. Memory O(2^R R L + R L^2).
/// Throws        invalid_input (invalid chain, too many regions); invalid_model (NaN or negative seconds).
/// Determinism   yes; ties: the beam's split, else first found.
/// Source        ours, for DeepCEE, section 3.3.3: a reference for its beam.
[[nodiscard]] region_result split_exactly(const region_chain& chain, const region_dp_options& options = {});

/// Returns split_exactly's split for up to max_exact_regions regions; otherwise the beam's, improved by split_in_order for its order.
///
/// @param beam   options of the beam; cost and use are taken from `options`.
/// @return       feasible also for a split of the beam, which is not proven optimal.
/// Throws, Complexity, Determinism  as the parts.
/// Source        DeepCEE, section 3.3.3; the exact parts are ours.
[[nodiscard]] region_result split_regions(const region_chain& chain, const region_dp_options& options = {}, region_beam_options beam = {});

/// Results of beam search and exact search on one chain.
struct beam_against_exact {
  region_result exact, beam;

  /// Returns the beam's relative excess over the exact cost; infinite if only the exact search found a split, 0 if it found none.
  [[nodiscard]] double gap() const;
};
/// Runs both searches with the beam's cost and use.   Throws, Complexity  as the two.
[[nodiscard]] beam_against_exact compare_with_exact(const region_chain& chain, const region_beam_options& beam = {},
                                                    long long most_extensions = region_dp_options{}.most_extensions);

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/region_dp.ipp>
#endif
