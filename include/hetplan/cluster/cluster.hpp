// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where a plan runs: devices and the network between them.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>

namespace hetplan {

/// An immutable set of devices with unique names and the network that joins them.
///
///     const cluster home("home", {laptop, phone}, shared_medium{600_Mbit_per_s, 2_ms});
///
/// Throws  invalid_input (a device breaks a rule, a name twice, none at all); invalid_model (the network does).
class cluster {
 public:
  template <class M>
  cluster(std::string name, std::vector<device> devices, const M& net) : name_(std::move(name)), devices_(std::move(devices)) {
    static_assert(check_network_model<M>());
    number_devices();
    if constexpr (network_model<M>) network_ = hetplan::network(net, std::span<const device>(devices_));
  }
  /// A single device needs no network.
  cluster(std::string name, device only) : name_(std::move(name)), devices_{std::move(only)} { number_devices(); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t size() const { return devices_.size(); }
  [[nodiscard]] std::span<const device> devices() const { return devices_; }
  [[nodiscard]] const device& operator[](device_id d) const { return devices_[d.index()]; }
  [[nodiscard]] const hetplan::network& network() const { return network_; }

  /// Other devices in the same places of the network, which stays as it is.
  ///
  /// @param devices  as many as here.
  /// Throws invalid_input (another number of devices, a device breaks a rule, a name twice).
  [[nodiscard]] cluster with_devices(std::vector<device> devices) const;

  /// Throws invalid_input if no device has that name.
  [[nodiscard]] device_id find(std::string_view name) const;

  friend bool operator==(const cluster&, const cluster&) = default;

 private:
  void number_devices();

  std::string name_;
  std::vector<device> devices_;
  hetplan::network network_;
};

// A view: some of a cluster's devices, on a network with other capacities.

/// A part of a cluster and how its devices are numbered here and there. Resources keep their ids.
struct cluster_part {
  cluster devices;
  std::vector<device_id> original;  ///< by id in the part: the id in the whole
  std::vector<device_id> renamed;   ///< by id in the whole: the id in the part, invalid where it is left out
};

/// Source  semantics, section 10: what is left of a cluster when devices are away.
/// @param keep        by device of the whole: is it in the part; at least one is.
/// @param capacities  by resource, finite >= 0; one at 0 takes its routes away.
/// Throws  invalid_input (no device is kept, a size does not match).   Complexity  O(devices^2 + resources).
[[nodiscard]] cluster_part part_of(const cluster& whole, std::span<const char> keep, std::span<const bytes_per_second> capacities);

// Views for planners that do not look at something: memory, or what the network takes.

/// What a planner sees that does not ask whether a plan fits: every device has more memory than any plan takes (1 EB).
///
/// Plans of the view are plans of the cluster, but may not fit there.
/// Source  PipeDream, Dapple and HetPipe as Asteroid, section 5.2, describes them.
[[nodiscard]] cluster without_memory_limits(const cluster& c);

/// What a planner sees that balances work and overlooks what moves: transfers take no time at all.
///
/// Plans of the view are plans of the cluster where all pairs of devices are joined.
/// Source  GPipe's partition as Asteroid, section 5.5, describes it.
[[nodiscard]] cluster without_network_costs(const cluster& c);

// A view: all devices alike, on wires of their own that are all alike.

/// The device in the middle of a cluster by compute rate, the slower of two middles; ties: the smaller id.
///
/// Complexity  O(N log N).  Source  own.
[[nodiscard]] device_id median_device(const cluster& c);

/// What a planner for clusters of equal machines sees: each device is a copy of one of them, with the least memory of all, since
/// whoever may state one memory only states one that all have; each pair has a full-duplex wire of the mean peak bandwidth
/// and the mean latency of the pairs that are joined at finite rates.
///
/// Plans of the view are plans of the cluster where all pairs of devices are joined and each has the accelerators that it
/// splits tensors among: devices keep their ids and names.
///
/// @param like  the device that all look like.
/// Complexity   O(N^2).
/// Source       what Alpa, PipeDream and Dapple assume (Asteroid, section 5.1); which device stands for all is ours.
[[nodiscard]] cluster homogeneous(const cluster& c, device_id like);
/// Each device like the median one.
[[nodiscard]] inline cluster homogeneous(const cluster& c) { return homogeneous(c, median_device(c)); }

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cluster/cluster.ipp>
#endif
