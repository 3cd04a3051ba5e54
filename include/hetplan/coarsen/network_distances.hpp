// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How far devices are from one another: the time that one message takes.

#include <cstddef>
#include <vector>

#include <hetplan/cluster/cluster.hpp>

namespace HETPLAN_NAMESPACE::coarsen {

/// A distance for each pair, both ways the same; 0 from a thing to itself. Infinite: nothing joins them.
class distance_matrix {
 public:
  distance_matrix() = default;
  explicit distance_matrix(std::size_t size) : size_(size), values_(size * size) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] double operator()(std::size_t a, std::size_t b) const { return values_[a * size_ + b]; }
  void set(std::size_t a, std::size_t b, double distance) { values_[a * size_ + b] = values_[b * size_ + a] = distance; }

  friend bool operator==(const distance_matrix&, const distance_matrix&) = default;

 private:
  std::size_t size_ = 0;
  std::vector<double> values_;
};

/// Seconds by pair of devices: latency + message / peak bandwidth of their route, nobody else sending.
///
/// Of the two directions the slower one counts, and a pair that is joined in one direction only is infinitely far: activations go one
/// way and gradients the other, which way is not known before there is a plan, and a ring of a group takes both.
///
/// @param message  what goes over a boundary at once, of one microbatch.
/// Complexity      O(N^2) routes for N devices.
/// Throws          invalid_input (a message that is not finite or < 0).
/// Source          DeepCEE, section 3.2.1.
/// Deviations      alpha + message * beta; the printed alpha + beta / m adds seconds to seconds per byte. From the cluster's routes;
///                 measured distances may stand in a matrix of one's own.
[[nodiscard]] distance_matrix network_distances(const cluster& c, bytes message);

}  // namespace HETPLAN_NAMESPACE::coarsen

#ifndef HETPLAN_COMPILED
#include <hetplan/coarsen/network_distances.ipp>
#endif
