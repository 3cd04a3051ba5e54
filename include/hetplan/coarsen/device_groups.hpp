// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Devices in two levels: regions that are near to each other on the network, and in each of them classes of devices that compute alike.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/coarsen/average_linkage.hpp>
#include <hetplan/coarsen/network_distances.hpp>

namespace HETPLAN_NAMESPACE::coarsen {

/// A first-level group.
struct device_region {
  std::vector<device_id> devices;               ///< ascending
  std::vector<std::vector<device_id>> classes;  ///< the second-level groups, each ascending, by their first devices
  double inner_s = 0;                           ///< mean distance of its pairs; 0 of a single device

  friend bool operator==(const device_region&, const device_region&) = default;
};

/// What a planner across regions reads, and what a picture of it is drawn from.
struct device_groups {
  std::vector<device_region> regions;  ///< by their first devices
  std::vector<std::size_t> region_of;  ///< by device
  distance_matrix distances;           ///< of devices [s]
  std::vector<double> scores;          ///< by device
  /// The merge tree: those inside regions, nearest first, `merges_inside` of them, then those of regions. Where some pair of devices has
  /// no route it may be a forest.
  std::vector<merge> merges;

  [[nodiscard]] std::size_t merges_inside() const { return region_of.size() - regions.size(); }
  /// The mean distance of a device of one region from a device of another one [s]; infinite where some pair has no route.
  [[nodiscard]] double distance_s(std::size_t region, std::size_t other) const;
  /// Of those at a finite distance the nearest, of equally near ones the first.
  [[nodiscard]] std::optional<std::size_t> nearest_region(std::size_t region) const;

  friend bool operator==(const device_groups&, const device_groups&) = default;
};

struct group_options {
  double network_threshold = 1;    ///< theta: how much farther than inside may groups be that are one region
  double compute_threshold = 0.1;  ///< how much more may the faster of two like devices compute
};

/// Average linkage twice. Regions: while d(A, B) <= (1 + theta) min(inner(A), inner(B)) the nearest such pair merges; d is the mean
/// distance between A and B, inner(A) the mean distance inside A, of a single device the distance to its nearest. Classes of a region:
/// while the mean relative difference of scores, |p - q| / min(p, q), is within its threshold.
///
/// Regions are found as they are if their inner distances are within a factor 1 + theta of each other and any distance to another region
/// is above 1 + theta times those of the two. So is a region of one device; but two such become one unless each has something that is
/// nearer by that factor, for nothing else says what is near to them. A faster network inside servers makes each a region.
///
/// @param distances  from network_distances, or measured; infinite where nothing joins two devices.
/// @param scores     by device: compute_scores, or measured; > 0.
/// Complexity        O(N^2 log N) time, O(N^2) memory for N devices.
/// Determinism       ties (nine digits): the pair whose first devices are smaller.
/// Throws            invalid_input (other sizes, a distance that is NaN or < 0, a score that is not finite or <= 0, a threshold that is
///                   not finite or < 0, regions that no pair of devices joins to the rest).
/// Source            DeepCEE, section 3.2.2 and Fig 5.
/// Deviations        what it calls "the difference is below a threshold" is relative, to the closer of the two groups: with the wider one
///                   no region of one device is ever found. Pairs are taken nearest first.
[[nodiscard]] device_groups group_devices(const distance_matrix& distances, std::span<const double> scores,
                                          const group_options& options = {});

/// The same of a cluster, by network_distances; errors name the devices.
[[nodiscard]] device_groups group_devices(const cluster& c, bytes message, std::span<const double> scores,
                                          const group_options& options = {});

}  // namespace HETPLAN_NAMESPACE::coarsen

#ifndef HETPLAN_COMPILED
#include <hetplan/coarsen/device_groups.ipp>
#endif
