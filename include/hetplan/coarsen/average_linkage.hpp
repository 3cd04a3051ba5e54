// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Agglomerative clustering by mean distances: the nearest two groups that may merge do, until none may.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <hetplan/coarsen/network_distances.hpp>

namespace HETPLAN_NAMESPACE::coarsen {

/// Two nodes of a merge tree that become one. Nodes are numbered: first the things, by index, then the merges, in their order.
struct merge {
  std::size_t left = 0, right = 0;  ///< left holds the smaller first thing
  double height = 0;                ///< the mean distance of a thing of one from a thing of the other

  friend bool operator==(const merge&, const merge&) = default;
};

/// Groups of things that grow by merging, each known by its first thing.
///
///     average_linkage grown(distances);
///     grown.merge_while([](double distance, double, double) { return distance <= 0.01; });
///
/// Distances that agree to nine digits tie, for what is added up in another order differs in the last: first then goes the pair whose
/// first things are smaller.
///
/// Source  UPGMA (Sokal and Michener 1958) with the update of Lance and Williams (1967), on sums, so that equal distances stay equal.
class average_linkage {
 public:
  /// May two groups merge, of that mean distance? And of these inner distances: the mean of a group's pairs; of a single thing, the
  /// distance to its nearest.
  using rule = std::function<bool(double distance, double inner, double other_inner)>;

  explicit average_linkage(const distance_matrix& distances);

  /// Merges the nearest pair that may until none may. Groups that are infinitely far from each other, as those with a pair that nothing
  /// joins, never merge. Called again with another rule, it goes on from where it stands.
  ///
  /// Complexity   O(N^2 log N) time and O(N^2) memory for N things; only pairs that may merge are kept.
  void merge_while(const rule& may);

  /// Things by group, ascending; groups by their first things.
  [[nodiscard]] std::vector<std::vector<std::size_t>> groups() const;
  /// The mean distance of a group's pairs; 0 of a single thing.
  [[nodiscard]] std::vector<double> spreads() const;
  [[nodiscard]] const std::vector<merge>& merges() const { return merges_; }

 private:
  struct candidate {
    double distance;  ///< to nine digits
    std::uint32_t a, b, version_a, version_b;

    friend bool operator<(const candidate& x, const candidate& y) {  // the largest is the best
      if (x.distance != y.distance) return x.distance > y.distance;
      return x.a != y.a ? x.a > y.a : x.b > y.b;
    }
  };

  [[nodiscard]] double distance(std::size_t a, std::size_t b) const;
  [[nodiscard]] double spread(std::size_t a) const;
  [[nodiscard]] double inner(std::size_t a) const { return count_[a] == 1 ? nearest_[a] : spread(a); }
  /// Of two groups, a < b. False where they may not merge.
  bool offer(std::size_t a, std::size_t b, const rule& may);
  void join(std::size_t a, std::size_t b);

  std::size_t size_;
  std::vector<double> sum_;        ///< by pair of groups: all distances between them
  std::vector<double> own_;        ///< by group: all distances inside
  std::vector<double> nearest_;    ///< by thing
  std::vector<double> count_;      ///< by group: its things
  std::vector<std::size_t> node_;  ///< by group
  std::vector<std::size_t> head_;  ///< by thing: one of its group with a smaller index, or itself
  std::vector<std::uint32_t> version_, alive_;
  std::vector<merge> merges_;
  std::vector<candidate> heap_;
};

}  // namespace HETPLAN_NAMESPACE::coarsen

#ifndef HETPLAN_COMPILED
#include <hetplan/coarsen/average_linkage.ipp>
#endif
