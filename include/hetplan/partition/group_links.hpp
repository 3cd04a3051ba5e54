// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Peak traffic between groups of a device space.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/cluster/exchange.hpp>
#include <hetplan/partition/device_space.hpp>
#include <hetplan/plan/pipeline_steps.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/step_law.hpp>

namespace hetplan::partition {

/// What links cost between any two groups. Where all pairs of devices are joined alike no group matters.
///
/// Complexity  O(classes^2 * resources on a route^2) to build, O(parts of both groups) to ask.
/// Source      Dora, section 4.1: every pair has its peak bandwidth; Asteroid, section 3.2: the slowest pair is charged for
///             its groups (peak_exchange). Own: by classes instead of devices, which exchange_test allows.
class group_links {
 public:
  group_links(const device_space& space, const network& net, const plan& blank)
      : space_(space), size_(blank.microbatch_size), microbatches_(blank.microbatches), training_(blank.workload.mode == mode::training) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const std::size_t n = space.classes.size();
    by_class_.resize(n * n);
    best_ = {{inf, inf}, {inf, inf}, true};
    bool any = false;
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (a == b && space.classes[a].size() < 2) continue;
        const device_id one[] = {space.classes[a].front()}, other[] = {space.classes[b][a == b ? 1 : 0]};
        const exchange_cost x = by_class_[a * n + b] = peak_exchange(net, one, other);
        if (!any) alike_ = x;
        any = true;
        uniform_ = uniform_ && x == alike_;
        best_.forward = {std::min(best_.forward.latency_s, x.forward.latency_s), std::min(best_.forward.s_per_byte, x.forward.s_per_byte)};
        best_.backward = {std::min(best_.backward.latency_s, x.backward.latency_s),
                          std::min(best_.backward.s_per_byte, x.backward.s_per_byte)};
        best_.half_duplex = best_.half_duplex && x.half_duplex;
      }
    }
    if (!any) best_ = {};
  }

  /// Does every link cost the same?
  [[nodiscard]] bool uniform() const { return uniform_; }
  /// Stands for a group in comparisons: 0 where no group matters.
  [[nodiscard]] std::uint32_t key(std::size_t group) const { return uniform_ ? 0 : static_cast<std::uint32_t>(group); }
  [[nodiscard]] exchange_cost between(std::size_t group, std::size_t other) const {
    if (uniform_) return alike_;
    exchange_cost all;
    for (const auto& a : space_.groups[group]) {
      for (const auto& b : space_.groups[other]) all.cover(by_class_[a.of_class * space_.classes.size() + b.of_class]);
    }
    return all;
  }
  /// A link that all microbatches of the job cross with so many bytes per sample, gradients in training.
  [[nodiscard]] link_times time(const exchange_cost& x, double forward_bytes, double gradient_bytes) const {
    const auto t = time_link(x, size_, microbatches_, forward_bytes, training_ ? gradient_bytes : 0);
    return {t.total_s, t.backward_s, t.own_s};
  }
  /// No link costs less.
  [[nodiscard]] const exchange_cost& best() const { return best_; }

 private:
  const device_space& space_;
  int size_, microbatches_;
  bool training_;
  std::vector<exchange_cost> by_class_;
  exchange_cost alike_, best_;
  bool uniform_ = true;
};

}  // namespace hetplan::partition
