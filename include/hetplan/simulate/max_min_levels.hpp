// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Max-min fair rates of one tier, brought up to date where they change.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/simulate/max_min.hpp>

namespace HETPLAN_NAMESPACE::detail {

/// The level of each resource: the rate of the flows that it limits [B/s], infinite where it limits none. The rate of a flow is
/// the smallest level on its route.
///
/// A level is settled where it follows from the others': flows that another resource limits more take their part, the rest share what
/// is left. Where all are settled, every flow crosses a full resource on which nobody is faster: the rates are max-min fair, and there
/// are no others. So only resources that are not settled are worked on, smallest level first: no level depends on larger ones.
///
/// Complexity   of update: O(d log d) for a resource of d flows, each time a smaller level beside it changes. Nothing else is
///              looked at. Memory O(resources).
/// Determinism  equal levels in order of resources. The rates are those of max_min::fill but for rounding.
/// Source       the condition: Bertsekas and Gallager, "Data Networks", 2nd ed. 1992, sec. 6.5.2 (a bottleneck for every session);
///              the order of work is ours.
class max_min_levels {
 public:
  static constexpr double none = std::numeric_limits<double>::infinity();

  explicit max_min_levels(std::size_t resources) : level_(resources, none), next_(resources, none), seen_(resources, 0) {}

  /// A level that is known from elsewhere.
  void set(std::size_t r, double level) { level_[r] = next_[r] = level; }

  [[nodiscard]] double rate(const fluid_flow& x) const {
    double rate = none;
    for (const resource_use& u : x.via) rate = std::min(rate, level_[u.resource.index()]);
    return rate;
  }

  /// Settles all levels after changes at some resources, or gives up when that has taken more than `most` looks at a flow.
  /// Gives up: false, and the levels of all resources that flows connect with these are unknown.
  [[nodiscard]] bool update(std::span<const std::uint32_t> changed, const std::vector<fluid_flow>& flows,
                            const std::vector<fluid_resource>& resources, std::size_t most);

  /// The resources of which the last update may have changed flows; some more than once.
  [[nodiscard]] std::span<const std::uint32_t> reached() const { return reached_; }

 private:
  using entry = std::pair<double, std::uint32_t>;  ///< the smaller of the two levels of a resource that is not settled
  struct part {
    double rate, weight;
  };

  void look_at(std::uint32_t r, const std::vector<fluid_flow>& flows, const fluid_resource& s);
  [[nodiscard]] double level_beside_others(std::uint32_t r, const std::vector<fluid_flow>& flows, const fluid_resource& s);

  std::vector<double> level_, next_;  ///< by resource: as the others know it, and as it follows from theirs
  std::vector<entry> queue_;          ///< a heap, smallest first; what no longer holds is skipped
  std::vector<part> limited_;         ///< what flows take that others limit
  std::vector<std::uint32_t> reached_, beside_;
  std::vector<char> seen_;
  std::size_t looks_ = 0;
};

}  // namespace HETPLAN_NAMESPACE::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/max_min_levels.ipp>
#endif
