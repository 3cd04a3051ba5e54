// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Devices in two levels: regions that are near to each other on the network, and in each of them classes of devices that compute alike.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/device.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::coarsen {

// How much devices compute, in one number each.

/// Work that every device is timed with.
struct benchmark {
  std::vector<work> calls;  ///< one behind the other; their layers must outlive it
  double weight = 1;        ///< what one run of it counts
};

/// By device: the sum over benchmarks of weight / time, p_c.
///
/// @param cost     whose times count: that of the problem.
/// Complexity      devices * calls questions to the cost model.
/// Throws          invalid_input (no benchmark, a weight that is negative or not finite, weights that are all 0, a benchmark that takes
///                 no time); invalid_model (a time that is negative or not finite).
/// Source          DeepCEE, section 3.2.1.
[[nodiscard]] std::vector<double> compute_scores(std::span<const device> devices, const any_cost_model& cost,
                                                 std::span<const benchmark> benchmarks);

/// The model as the only benchmark, one microbatch forward and, in training, backward: samples per second. Its layers are no benchmarks of
/// their own, for a sum of w_i / t_i is led by those that take next to no time.
///
/// @param batch  samples of the microbatch, > 0.
/// Complexity    devices * layers questions.   Throws  as above; invalid_input (a batch that is not finite or <= 0).
/// Source        DeepCEE, section 3.2.1; which benchmark is ours.
[[nodiscard]] std::vector<double> compute_scores(std::span<const device> devices, const any_cost_model& cost, const planning_graph& model,
                                                 mode mode = mode::training, double batch = 1);

/// Where there is nothing to time: the peak rate of one accelerator, in FLOP/s.
///
/// Throws  invalid_input (a device whose rate is not known).   Source  ours.
[[nodiscard]] std::vector<double> compute_scores(std::span<const device> devices);

// How far devices are from one another: the time that one message takes.

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

// Agglomerative clustering by mean distances: the nearest two groups that may merge do, until none may.

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

}  // namespace hetplan::coarsen

#ifndef HETPLAN_SEPARATE
#include <hetplan/coarsen/device_groups.ipp>
#endif
