// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where a plan runs: devices and the network between them.

#include <set>
#include <span>
#include <string>
#include <string_view>
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
  template <network_model M>
  cluster(std::string name, std::vector<device> devices, const M& net) : name_(std::move(name)), devices_(std::move(devices)) {
    number_devices();
    network_ = hetplan::network(net, std::span<const device>(devices_));
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
  [[nodiscard]] cluster with_devices(std::vector<device> devices) const {
    if (devices.size() != size()) {
      throw invalid_input("cluster \"" + name_ + "\": with_devices got " + std::to_string(devices.size()) + " devices; expected " +
                          std::to_string(size()));
    }
    cluster other = *this;
    other.devices_ = std::move(devices);
    other.number_devices();
    return other;
  }

  /// Throws invalid_input if no device has that name.
  [[nodiscard]] device_id find(std::string_view name) const {
    for (const device& d : devices_) {
      if (d.name == name) return d.id;
    }
    throw invalid_input("cluster \"" + name_ + "\" has no device \"" + std::string(name) + "\"");
  }

  friend bool operator==(const cluster&, const cluster&) = default;

 private:
  void number_devices() {
    if (devices_.empty()) throw invalid_input("cluster \"" + name_ + "\": expected at least one device");
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      device& d = devices_[i];
      d.id = device_id(i);
      if (d.kind.empty()) d.kind = d.name;
      check_device(d);
      if (!seen.insert(d.name).second) throw invalid_input("cluster \"" + name_ + "\": device \"" + d.name + "\" appears twice");
    }
  }

  std::string name_;
  std::vector<device> devices_;
  hetplan::network network_;
};

}  // namespace hetplan
