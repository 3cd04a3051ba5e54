// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Device groups of two levels: regions of devices near each other on the network, and in them classes of devices with similar compute.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/device.hpp>
#include <hetplan/core/min_queue.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::coarsen {

/// Benchmark that times every device.
struct benchmark {
  std::vector<work> calls;  ///< run one after the other; their layers must outlive the benchmark
  double weight = 1;        ///< weight of one run
};

/// Returns the compute score p_c of each device: the sum over benchmarks of weight / time.
///
/// @param cost     Cost model of the problem, whose times count.
/// Complexity      devices * calls of the benchmarks, in calls of the cost model.
/// Throws          invalid_input (no benchmark, a weight that is negative or not finite, only weights of 0, a benchmark that takes no
///                 time); invalid_model (a time that is negative or not finite).
/// Source          DeepCEE, section 3.2.1.
[[nodiscard]] std::vector<double> compute_scores(std::span<const device> devices, const any_cost_model& cost,
                                                 std::span<const benchmark> benchmarks);

/// Returns the samples per second of each device, the compute scores with the model as the only benchmark: one microbatch forward and, in
/// training, backward. Layers are no benchmarks of their own, as a sum of w_i / t_i is dominated by those that take almost no time.
///
/// @param batch  Samples of the microbatch, > 0.
/// Complexity    devices * layers calls.   Throws  as above; invalid_input (a batch that is not finite or <= 0).
/// Source        DeepCEE, section 3.2.1; the choice of benchmark is ours.
[[nodiscard]] std::vector<double> compute_scores(std::span<const device> devices, const any_cost_model& cost, const planning_graph& model,
                                                 mode mode = mode::training, double batch = 1);

/// Returns the peak rate of one accelerator of each device [FLOP/s], the compute score if there is nothing to time.
/// Throws  invalid_input (a device of unknown rate).   Source  ours.
[[nodiscard]] std::vector<double> compute_scores(std::span<const device> devices);

/// Symmetric matrix of distances; 0 on the diagonal, infinite for pairs that are not joined.
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

/// Returns the seconds of one message between each pair of devices: latency + message / peak bandwidth, without other traffic.
///
/// The slower direction counts, and a pair joined in one direction only is infinitely far. Activations go one way and gradients the other,
/// in directions unknown before there is a plan, and the ring of a group uses both.
///
/// @param message  Bytes of one microbatch that cross a boundary at once.
/// Complexity      O(N^2) routes for N devices.
/// Throws          invalid_input (a message that is not finite or < 0).
/// Source          DeepCEE, section 3.2.1.
/// Deviations      alpha + message * beta; the printed alpha + beta / m adds seconds to seconds per byte. Distances come from the
///                 cluster's routes; a user's matrix may hold measured ones.
[[nodiscard]] distance_matrix network_distances(const cluster& c, bytes message);

/// Merge of two nodes of a merge tree. Nodes are numbered: first the items, by index, then the merges, in order.
struct merge {
  std::size_t left = 0, right = 0;  ///< left holds the smaller first item
  double height = 0;                ///< mean distance between the items of the two nodes

  friend bool operator==(const merge&, const merge&) = default;
};

/// Agglomerative clustering by mean distance: groups of items merge, the nearest allowed pair first. A group is known by its first item.
///
///     average_linkage grown(distances);
///     grown.merge_while([](double distance, double, double) { return distance <= 0.01; });
///
/// Distances that agree to nine digits tie (sums in another order differ in the last ones); then smaller first items go first.
///
/// Source  UPGMA (Sokal and Michener 1958) with the update of Lance and Williams (1967), on sums, so that equal distances stay equal.
class average_linkage {
 public:
  /// Returns whether two groups may merge, given their mean distance and their inner distances. The inner distance of a group is the mean
  /// over its pairs; of a single item, the distance to its nearest one.
  using rule = std::function<bool(double distance, double inner, double other_inner)>;

  explicit average_linkage(const distance_matrix& distances);

  /// Merges the nearest allowed pair until none is allowed. Groups at an infinite distance, as with a pair that is not joined, never
  /// merge. A further call with another rule continues from the groups reached.
  ///
  /// Complexity   O(N^2 log N) time and O(N^2) memory for N items; only pairs that may merge are kept.
  void merge_while(const rule& may);

  /// Returns the items of each group, ascending; groups ordered by first item.
  [[nodiscard]] std::vector<std::vector<std::size_t>> groups() const;
  /// Returns the mean distance of each group's pairs; 0 for a single item.
  [[nodiscard]] std::vector<double> spreads() const;
  [[nodiscard]] const std::vector<merge>& merges() const { return merges_; }

 private:
  struct candidate {
    double distance;  ///< rounded to nine digits
    std::uint32_t a, b, version_a, version_b;

    friend bool operator>(const candidate& x, const candidate& y) {
      if (x.distance != y.distance) return x.distance > y.distance;
      return x.a != y.a ? x.a > y.a : x.b > y.b;
    }
  };

  [[nodiscard]] double distance(std::size_t a, std::size_t b) const;
  [[nodiscard]] double spread(std::size_t a) const;
  [[nodiscard]] double inner(std::size_t a) const { return count_[a] == 1 ? nearest_[a] : spread(a); }
  /// Adds groups a < b to the candidates. Returns false if they may not merge.
  void offer(std::size_t a, std::size_t b, const rule& may);
  void join(std::size_t a, std::size_t b);

  std::size_t size_;
  std::vector<double> sum_;        ///< by pair of groups: sum of the distances between them
  std::vector<double> own_;        ///< by group: sum of the distances inside
  std::vector<double> nearest_;    ///< by item: distance to its nearest
  std::vector<double> count_;      ///< by group: number of items
  std::vector<std::size_t> node_;  ///< by group: node of the merge tree
  std::vector<std::size_t> head_;  ///< by item: an item of its group with a smaller index, or itself
  std::vector<std::uint32_t> version_, alive_;
  std::vector<merge> merges_;
  min_queue<candidate> candidates_;
};

/// First-level group of devices.
struct device_region {
  std::vector<device_id> devices;               ///< ascending
  std::vector<std::vector<device_id>> classes;  ///< second-level groups, each ascending, ordered by first device
  double inner_s = 0;                           ///< mean distance of its pairs [s]; 0 for a single device

  friend bool operator==(const device_region&, const device_region&) = default;
};

/// Device groups, as read by planners across regions and by drawings.
struct device_groups {
  std::vector<device_region> regions;  ///< ordered by first device
  std::vector<std::size_t> region_of;  ///< by device
  distance_matrix distances;           ///< between devices [s]
  std::vector<double> scores;          ///< by device
  /// Merge tree: first the `merges_inside()` merges inside regions, nearest first, then those of regions. It may be a forest if some pair
  /// of devices has no route.
  std::vector<merge> merges;

  [[nodiscard]] std::size_t merges_inside() const { return region_of.size() - regions.size(); }
  /// Returns the mean distance between the devices of two regions [s]; infinite if some pair has no route.
  [[nodiscard]] double distance_s(std::size_t region, std::size_t other) const;
  /// Returns the nearest region at a finite distance; of equally near ones the first.
  [[nodiscard]] std::optional<std::size_t> nearest_region(std::size_t region) const;

  friend bool operator==(const device_groups&, const device_groups&) = default;
};

struct group_options {
  double network_threshold = 1;    ///< theta: how much farther apart than inside groups may be to form one region
  double compute_threshold = 0.1;  ///< how much more compute the faster of two devices of a class may have
};

/// Groups devices by average linkage in two levels. Regions: while d(A, B) <= (1 + theta) min(inner(A), inner(B)), the nearest such pair
/// merges; d is the mean distance between A and B, inner(A) the mean distance inside A, or of a single device the distance to its nearest.
/// Classes of a region: groups merge while the mean relative difference of scores, |p - q| / min(p, q), is within its threshold.
///
/// True regions are found if their inner distances are within a factor 1 + theta of each other and any distance to another region is above
/// 1 + theta times those of the two. This includes regions of one device; but two of them merge unless each has something nearer by that
/// factor, as nothing else tells what is near to them. A faster network inside servers makes each server a region.
///
/// @param distances  From network_distances, or measured; infinite for two devices that are not joined.
/// @param scores     By device: compute_scores, or measured; > 0.
/// Complexity        O(N^2 log N) time, O(N^2) memory for N devices.
/// Determinism       ties (nine digits): the pair whose first devices are smaller.
/// Throws            invalid_input (other sizes, a distance that is NaN or < 0, a score that is not finite or <= 0, a threshold that is
///                   not finite or < 0, regions that no pair of devices joins to the rest).
/// Source            DeepCEE, section 3.2.2 and Fig 5.
/// Deviations        the paper's "difference below a threshold" is relative, to the closer of the two groups: relative to the wider one,
///                   no region of one device is ever found. Pairs are taken nearest first.
[[nodiscard]] device_groups group_devices(const distance_matrix& distances, std::span<const double> scores,
                                          const group_options& options = {});

/// Groups the devices of a cluster by network_distances; errors name the devices.
[[nodiscard]] device_groups group_devices(const cluster& c, bytes message, std::span<const double> scores,
                                          const group_options& options = {});

}  // namespace hetplan::coarsen

#ifndef HETPLAN_SEPARATE
#include <hetplan/coarsen/device_groups.ipp>
#endif
