// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the blocks that are still to be placed cost at least, on the devices that are still to be had.

#include <algorithm>
#include <limits>
#include <vector>

#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::partition {

/// Lower bounds on any completion of a partial plan, by boundary and state of the device space.
///
/// busiest_s  the largest step: devices share the work at their best rates, certified by weights (the Lagrangian of
///            the fractional assignment): sum over blocks of B min_d(w_d / r_d) / sum w_d, w_d the device's mean rate.
/// path_s     one microbatch through all these blocks, every block on all devices at once; serial sequences only.
/// energy_J   dynamic energy of the work where it is cheapest, whatever the state.
/// Rates r_d = max over shares of share / time.
/// Complexity O(states x boundaries x classes).
class completion_bounds {
 public:
  completion_bounds(const search_tables& t, const device_space& space, const std::vector<std::size_t>& boundaries, const plan& blank,
                    bool serial)
      : columns_(boundaries.size()), busiest_(space.states() * columns_, 0), path_(busiest_), energy_(columns_, 0), fits_(busiest_.size(), 1) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const std::size_t n = space.classes.size(), blocks = t.sequence.size();
    const double size = blank.microbatch_size;
    const double samples = size * blank.microbatches * (blank.workload.mode == mode::generation ? blank.workload.tokens : 1);
    std::vector<double> per_sample(blocks * n), weight(n, 0);  // 1 / r, best over shares
    for (std::size_t c = 0; c < n; ++c) {
      const device_id d = space.classes[c].front();
      for (std::size_t b = 0; b < blocks; ++b) {
        double best = inf;
        for (int share = 1; share <= std::min(blank.microbatch_size, t.table.max_share()); ++share) {
          for (int g = 1; g <= t.table.degrees(d); ++g) {
            const double* sums = t.table.totals(d, share, g);
            best = std::min(best, (sums[b + 1] - sums[b]) / share);
          }
        }
        per_sample[b * n + c] = std::max(0.0, best);
        weight[c] += per_sample[b * n + c];
      }
      weight[c] = weight[c] > 0 ? 1 / weight[c] : 0;
    }
    std::vector<double> cheapest(blocks, inf);
    for (std::size_t b = 0; b < blocks; ++b) {
      for (std::size_t c = 0; c < n; ++c) {
        cheapest[b] = std::min(cheapest[b], t.slopes[space.classes[c].front().index()].busy_W * per_sample[b * n + c]);
      }
    }
    for (std::size_t i = 1; i < columns_; ++i) {
      energy_[i] = energy_[i - 1];
      for (std::size_t b = boundaries[i - 1]; b < boundaries[i]; ++b) energy_[i] += samples * cheapest[b];
    }
    for (std::size_t s = 0; s < space.states(); ++s) {
      double total_weight = 0, memory = 0;
      std::vector<std::size_t> there;
      for (std::size_t c = 0; c < n; ++c) {
        if (space.left[s][c] == 0) continue;
        there.push_back(c);
        total_weight += space.left[s][c] * weight[c];
        memory += space.left[s][c] * t.cluster[space.classes[c].front()].usable_memory().value();
      }
      for (std::size_t i = 1; i < columns_; ++i) {
        const std::size_t at = s * columns_ + i;
        busiest_[at] = busiest_[at - 1];
        path_[at] = path_[at - 1];
        fits_[at] = !there.empty() && t.table.state_bytes(0, boundaries[i]) <= memory * (1 + 1e-6);
        for (std::size_t b = boundaries[i - 1]; b < boundaries[i] && !there.empty(); ++b) {
          double least = inf, rate = 0;
          for (const std::size_t c : there) {
            const double x = per_sample[b * n + c];
            least = std::min(least, weight[c] * x);
            rate += x > 0 ? space.left[s][c] / x : inf;
          }
          if (total_weight > 0) busiest_[at] += size * least / total_weight;
          if (serial) path_[at] += size / rate;
        }
      }
    }
  }

  [[nodiscard]] double busiest_s(std::size_t state, std::size_t boundary) const { return busiest_[state * columns_ + boundary]; }
  [[nodiscard]] double path_s(std::size_t state, std::size_t boundary) const { return path_[state * columns_ + boundary]; }
  [[nodiscard]] double energy_J(std::size_t boundary) const { return energy_[boundary]; }
  /// Can the blocks before the boundary be held by the devices left at all?
  [[nodiscard]] bool fits(std::size_t state, std::size_t boundary) const { return fits_[state * columns_ + boundary] != 0; }

 private:
  std::size_t columns_;
  std::vector<double> busiest_, path_;  ///< by state, then boundary
  std::vector<double> energy_;          ///< by boundary
  std::vector<char> fits_;
};

}  // namespace hetplan::partition
