// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the blocks that are still to be placed cost at least, on the devices that are still to be had.

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::partition {

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
/// Complexity O(boundaries x (states x classes x B + groups)).
class completion_bounds {
 public:
  completion_bounds(const search_tables& t, const device_space& space, const std::vector<std::size_t>& boundaries, const plan& blank,
                    bool serial)
      : columns_(boundaries.size()), busiest_(space.states() * columns_, 0), path_(busiest_), energy_(columns_, 0) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const std::size_t n = space.classes.size(), blocks = t.sequence.size();
    const double size = blank.microbatch_size;
    const double samples = size * blank.microbatches * blank.workload.steps();
    const auto most = static_cast<std::size_t>(std::min(blank.microbatch_size, t.table.max_share()));
    // Seconds per sample of a block on a class with shares up to m: 1 / r.
    std::vector<double> by_share(blocks * n * most), weight(n, 0);
    const auto per_sample = [&](std::size_t b, std::size_t c, std::size_t m) -> double& { return by_share[(b * n + c) * most + m - 1]; };
    for (std::size_t c = 0; c < n; ++c) {
      const device_id d = space.classes[c].front();
      for (std::size_t m = 1; m <= most; ++m) {
        for (int g = 1; g <= t.table.degrees(d); ++g) {
          const double* sums = t.table.totals(d, static_cast<int>(m), g);
          for (std::size_t b = 0; b < blocks; ++b) {
            double& best = per_sample(b, c, m);
            if (g == 1) best = m > 1 ? per_sample(b, c, m - 1) : inf;
            best = std::min(best, std::max(0.0, sums[b + 1] - sums[b]) / static_cast<double>(m));
          }
        }
      }
      for (std::size_t b = 0; b < blocks; ++b) weight[c] += per_sample(b, c, most);
      weight[c] = weight[c] > 0 ? 1 / weight[c] : 0;
    }
    std::vector<double> cheapest(blocks, inf);
    for (std::size_t b = 0; b < blocks; ++b) {
      for (std::size_t c = 0; c < n; ++c) {
        cheapest[b] = std::min(cheapest[b], t.slopes[space.classes[c].front().index()].busy_W * per_sample(b, c, most));
      }
    }
    for (std::size_t i = 1; i < columns_; ++i) {
      energy_[i] = energy_[i - 1];
      for (std::size_t b = boundaries[i - 1]; b < boundaries[i]; ++b) energy_[i] += samples * cheapest[b];
    }
    stage_.assign(space.groups.size() * columns_, 0);
    for (std::size_t g = 0; g < space.groups.size(); ++g) {
      std::size_t members = 0;
      for (const auto& p : space.groups[g]) members += static_cast<std::size_t>(p.devices);
      const std::size_t largest = most >= members ? most - members + 1 : 1;
      for (std::size_t i = 1; i < columns_; ++i) {
        double& sum = stage_[g * columns_ + i] = stage_[g * columns_ + i - 1];
        for (std::size_t b = boundaries[i - 1]; b < boundaries[i]; ++b) {
          double rate = 0;
          for (const auto& p : space.groups[g]) rate += p.devices / per_sample(b, p.of_class, largest);
          sum += size / rate;
        }
      }
    }
    for (std::size_t s = 0; s < space.states(); ++s) {
      double total_weight = 0;
      std::vector<std::size_t> there;
      for (std::size_t c = 0; c < n; ++c) {
        if (space.left[s][c] == 0) continue;
        there.push_back(c);
        total_weight += space.left[s][c] * weight[c];
      }
      for (std::size_t i = 1; i < columns_; ++i) {
        const std::size_t at = s * columns_ + i;
        busiest_[at] = busiest_[at - 1];
        path_[at] = path_[at - 1];
        for (std::size_t b = boundaries[i - 1]; b < boundaries[i] && !there.empty(); ++b) {
          double least = inf;
          for (const std::size_t c : there) least = std::min(least, weight[c] * per_sample(b, c, most));
          if (total_weight > 0) busiest_[at] += size * least / total_weight;
          if (!serial) continue;
          double fastest = 0;  // rate of the best group
          for (std::size_t k = 1; k <= most; ++k) {
            const std::size_t largest = most - k + 1;
            std::sort(there.begin(), there.end(), [&](std::size_t x, std::size_t y) {
              return std::pair(per_sample(b, x, largest), x) < std::pair(per_sample(b, y, largest), y);
            });
            double rate = 0;
            int room = static_cast<int>(k);
            for (const std::size_t c : there) {
              const int taken = std::min(room, space.left[s][c]);
              if (taken > 0) rate += taken / per_sample(b, c, largest);
              room -= taken;
            }
            fastest = std::max(fastest, rate);
            if (room > 0) break;
          }
          path_[at] += size / fastest;
        }
      }
    }
  }

  [[nodiscard]] double busiest_s(std::size_t state, std::size_t boundary) const { return busiest_[state * columns_ + boundary]; }
  [[nodiscard]] double path_s(std::size_t state, std::size_t boundary) const { return path_[state * columns_ + boundary]; }
  /// A stage between two boundaries on a group, at best rates.
  [[nodiscard]] double stage_s(std::size_t group, std::size_t first, std::size_t last) const {
    return stage_[group * columns_ + last] - stage_[group * columns_ + first];
  }
  [[nodiscard]] double energy_J(std::size_t boundary) const { return energy_[boundary]; }

 private:
  std::size_t columns_;
  std::vector<double> busiest_, path_;  ///< by state, then boundary
  std::vector<double> energy_;          ///< by boundary
  std::vector<double> stage_;           ///< by group, then boundary: prefix sums
};

}  // namespace hetplan::partition
