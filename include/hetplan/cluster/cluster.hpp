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

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cluster/cluster.ipp>
#endif
