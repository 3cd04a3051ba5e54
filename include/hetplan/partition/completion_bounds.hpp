// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the blocks that are still to be placed cost at least, on the devices that are still to be had.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <hetplan/partition/device_space.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/plan.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// Lower bounds on any completion of a partial plan, by boundary and state of the device space.
///
/// busiest_s  the largest step: devices share the work at their best rates, certified by weights (the Lagrangian of
///            the fractional assignment): sum over blocks of B min_d(w_d / r_d) / sum w_d, w_d the device's mean rate.
/// path_s     one microbatch through all these blocks, every block on the group that is fastest for it; serial
///            sequences only. k devices that share B samples have at most B - k + 1 each, so r_d(k) = max over
///            shares up to that of share / time, and sum over blocks of min_k B / (sum of the k largest r_d(k)): a sum
///            of parallel rates is no more than the parallel rate of sums (Milne).
/// stage_s    a stage on one group, in the same way.
/// energy_J   dynamic energy of the work where it is cheapest, whatever the state.
/// Complexity O(blocks x (states x classes x B + groups + shares x classes log classes)), shares those that differ.
/// Source     busiest_s: semantics, section 9 (a), in closed form, for the devices of a state. The others: own.
class completion_bounds {
 public:
  completion_bounds(const search_tables& t, const device_space& space, const std::vector<std::size_t>& boundaries, const plan& blank,
                    bool serial);

  [[nodiscard]] double busiest_s(std::size_t state, std::size_t boundary) const { return busiest_[state * columns_ + boundary]; }
  [[nodiscard]] double path_s(std::size_t state, std::size_t boundary) const { return path_[state * columns_ + boundary]; }
  /// A stage between two boundaries on a group, at best rates.
  [[nodiscard]] double stage_s(std::size_t group, std::size_t first, std::size_t last) const;
  [[nodiscard]] double energy_J(std::size_t boundary) const { return energy_[boundary]; }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();

  /// Seconds per sample of a block, without the boundary before it, on a device of a class with shares up to m, at its best degree: 1 / r.
  class block_times {
   public:
    block_times(const search_tables& t, const device_space& space, const std::vector<std::size_t>& boundaries, std::size_t most);
    [[nodiscard]] double operator()(std::size_t block, std::size_t of_class, std::size_t m) const;
    [[nodiscard]] std::size_t most() const { return most_; }
    /// row[i] = the sum of f(block) over all blocks before boundary i.
    template <class F>
    void add_up(double* row, F&& f) const {
      for (std::size_t i = 1; i < boundaries_.size(); ++i) {
        row[i] = row[i - 1];
        for (std::size_t b = boundaries_[i - 1]; b < boundaries_[i]; ++b) row[i] += f(b);
      }
    }
    /// By class: of all blocks; 0 where they take no time.
    [[nodiscard]] std::vector<double> mean_rates() const;
    /// Classes by the time of a block with shares up to m, fastest first; ties: the smaller number. Of rank(), which comes first.
    [[nodiscard]] std::span<const std::uint32_t> fastest(std::size_t block, std::size_t m) const {
      return {&ranked_[at(block, 0, 0) + static_cast<std::size_t>(prefix_table::which_share(static_cast<int>(m))) * classes_], classes_};
    }
    void rank();

   private:
    [[nodiscard]] std::size_t at(std::size_t b, std::size_t c, std::size_t s) const { return (b * classes_ + c) * distinct_ + s; }

    const std::vector<std::size_t>& boundaries_;
    std::size_t blocks_, classes_, most_, distinct_;  ///< distinct shares up to the most samples
    std::vector<double> per_sample_;
    std::vector<std::uint32_t> ranked_ = {};  ///< by block, distinct share, then rank
  };

  void add_energy(const search_tables& t, const device_space& space, const block_times& times, double samples);
  /// What one of k devices has of a microbatch at most.
  [[nodiscard]] std::size_t largest_of(std::size_t k, const block_times& times) const;
  void add_group(std::size_t g, const device_space::device_group& group, const block_times& times);
  /// @param there  classes of which devices are left.
  void add_busiest(std::size_t state, const std::vector<int>& left, const std::vector<std::size_t>& there, const block_times& times,
                   const std::vector<double>& weight);
  void add_path(std::size_t state, const std::vector<int>& left, const block_times& times);

  std::size_t columns_;
  double size_;                         ///< samples of a microbatch
  std::vector<double> busiest_, path_;  ///< by state, then boundary
  std::vector<double> energy_;          ///< by boundary
  std::vector<double> stage_;           ///< by group, then boundary: prefix sums
};

}  // namespace HETPLAN_NAMESPACE::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/completion_bounds.ipp>
#endif
