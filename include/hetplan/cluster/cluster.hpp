// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Clusters: devices and the network between them, parts of clusters, and views for planners that ignore something.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/cluster/topology.hpp>

namespace hetplan {

/// Immutable set of devices with unique names, and the network that joins them.
///
///     const cluster home("home", {laptop, phone}, shared_medium{600_Mbit_per_s, 2_ms});
///
/// Throws  invalid_input (an invalid device, a repeated name, no device, a tier of an unknown resource); invalid_model (an invalid
/// network).
class cluster {
 public:
  template <class M>
  cluster(std::string name, std::vector<device> devices, const M& net) : name_(std::move(name)), devices_(std::move(devices)) {
    static_assert(check_network_model<M>());
    number_devices();
    if constexpr (network_model<M>) network_ = hetplan::network(net, std::span<const device>(devices_));
    find_tier_resources();
  }
  /// Makes a cluster of one device, which needs no network.
  cluster(std::string name, device only) : name_(std::move(name)), devices_{std::move(only)} {
    number_devices();
    find_tier_resources();
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t size() const { return devices_.size(); }
  [[nodiscard]] std::span<const device> devices() const { return devices_; }
  [[nodiscard]] const device& operator[](device_id d) const { return devices_[d.index()]; }
  [[nodiscard]] const hetplan::network& network() const { return network_; }
  /// Returns true if a device has tiers below its memory.
  [[nodiscard]] bool has_tiers() const;

  /// Returns the cluster with other devices in the same places of the network, which stays as it is.
  ///
  /// @param devices  As many as in this cluster.
  /// Throws invalid_input (another number of devices, an invalid device, a repeated name).
  [[nodiscard]] cluster with_devices(std::vector<device> devices) const;

  /// Returns the device of that name. Throws invalid_input if there is none.
  [[nodiscard]] device_id find(std::string_view name) const;

  friend bool operator==(const cluster&, const cluster&) = default;

 private:
  void number_devices();
  void find_tier_resources();

  std::string name_;
  std::vector<device> devices_;
  hetplan::network network_;
};

/// Part of a cluster, and the ids of its devices in part and whole. Resources keep their ids.
struct cluster_part {
  cluster devices;
  std::vector<device_id> original;  ///< by id in the part: the id in the whole
  std::vector<device_id> renamed;   ///< by id in the whole: the id in the part, invalid where it is left out
};

/// Returns the part of a cluster that remains when devices are away, on a network with other capacities.
///
/// @param keep        By device of the whole: true if it is in the part; at least one is.
/// @param capacities  By resource, finite >= 0; a capacity of 0 removes the routes over the resource.
/// Throws  invalid_input (no device is kept, a size does not match).   Complexity  O(devices^2 + resources).
/// Source  semantics, section 10.
[[nodiscard]] cluster_part part_of(const cluster& whole, std::span<const char> keep, std::span<const bytes_per_second> capacities);

/// Returns the view of a planner that ignores memory limits: every device has more memory than any plan takes (1 EB). Plans of
/// the view are plans of the cluster, but may not fit there.
///
/// Source  PipeDream, Dapple and HetPipe as Asteroid, section 5.2, describes them.
[[nodiscard]] cluster without_memory_limits(const cluster& c);

/// Returns the view of a planner that balances work and ignores communication: transfers take no time, and devices read their tiers alone.
/// Plans of the view are plans of the cluster if it joins all pairs of devices.
///
/// Source  GPipe's partition as Asteroid, section 5.5, describes it.
[[nodiscard]] cluster without_network_costs(const cluster& c);

/// Returns the median device of a cluster by compute rate, the slower of two middle ones; ties: the smaller id.
/// Complexity  O(N log N).  Source  own.
[[nodiscard]] device_id median_device(const cluster& c);

/// Returns the view of a planner for clusters of equal machines. Each device is a copy of one of them, with the least memory of
/// all, as a single stated memory must exist on every device, and no tiers. Each pair has a full-duplex wire of the mean peak bandwidth and
/// the mean latency of the pairs that are joined at finite rates.
///
/// Plans of the view are plans of the cluster if all pairs of devices are joined and each device has the accelerators that its
/// tensors are split among: devices keep their ids and names.
///
/// @param like  Device that all others copy.
/// Complexity   O(N^2).
/// Source       what Alpa, PipeDream and Dapple assume (Asteroid, section 5.1); the choice of the copied device is ours.
[[nodiscard]] cluster homogeneous(const cluster& c, device_id like);
/// Returns the homogeneous view with copies of the median device.
[[nodiscard]] inline cluster homogeneous(const cluster& c) { return homogeneous(c, median_device(c)); }

// View of a cluster in which every pair of devices has its peak bandwidth to itself.

/// Returns the view of a planner that knows the bandwidths between pairs and ignores contention; devices read their tiers alone.
///
/// Plans of the view are plans of the cluster: devices keep their ids and names. A plan's latency on the view is no bound, but
/// no schedule on the cluster ends before the best schedule of the same plan on the view with full-duplex wires.
///
/// @param wires  full: one per direction; half: one for both, as fast as the slower direction, so that traffic in both
///               directions adds up, as in Asteroid, eq. 6.
/// Complexity    O(N^2) for N devices.  Source: the "D2D" setting of Dora, section 2.2 and Fig 2.
[[nodiscard]] cluster uncontended(const cluster& c, duplex wires = duplex::full);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cluster/cluster.ipp>
#endif
