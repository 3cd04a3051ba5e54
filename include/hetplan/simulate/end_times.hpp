// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The earliest of many times that change.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace HETPLAN_NAMESPACE::detail {

/// When each flow ends [s], in a tournament: a node has the earlier time of its two children.
///
/// Complexity  O(1) for the earliest, O(log flows) for a change, less where the earliest stay so. Memory O(flows).
class end_times {
 public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  [[nodiscard]] double earliest() const { return node_[1]; }
  void set(std::uint32_t flow, double time);
  /// Takes the flows that end by then, a finite time.
  void take_until(double time, std::vector<std::uint32_t>& ended);

 private:
  void grow(std::size_t flows);

  std::size_t leaves_ = 1;                  ///< a power of two; those of node n are 2 n and 2 n + 1
  std::vector<double> node_{never, never};  ///< the first is not used
};

}  // namespace HETPLAN_NAMESPACE::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/end_times.ipp>
#endif
