// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How good a set of alternatives is, in one number: the volume that it dominates.

#include <span>
#include <vector>

#include <hetplan/mix/pareto_set.hpp>

namespace hetplan::mix {

/// The volume of all points that some given point covers and that cover the reference. Larger is better: it grows with
/// every point that no other one covers. Points that are not better than the reference everywhere contribute nothing.
///
/// @param points     any order, dominated ones and repetitions allowed; 2 or 3 coordinates, smaller is better.
/// @param reference  finite, as many coordinates.
/// Units             the product of the coordinates'.
/// Complexity        O(n log n): a sweep along the last coordinate over a staircase of the others.
/// Throws            invalid_input for another number of coordinates, a point with NaN or -infinity, a reference that is
///                   not finite.
/// Determinism       points are sorted first, so their order does not matter, not even to the last digit.
/// Source            the measure of Zitzler and Thiele (1998); the sweep is the usual one for three dimensions.
[[nodiscard]] double hypervolume(std::span<const std::vector<double>> points, std::span<const double> reference);
template <class Item>
[[nodiscard]] double hypervolume(const pareto_set<Item>& set, std::span<const double> reference) {
  std::vector<std::vector<double>> points;
  for (const auto& e : set.entries()) points.push_back(e.point);
  return hypervolume(points, reference);
}

}  // namespace hetplan::mix

#ifndef HETPLAN_COMPILED
#include <hetplan/mix/hypervolume.ipp>
#endif
