// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/cluster.hpp>

#include <set>

#include <hetplan/core/error.hpp>

namespace hetplan {

HETPLAN_INLINE cluster cluster::with_devices(std::vector<device> devices) const {
  if (devices.size() != size()) {
    throw invalid_input("cluster \"" + name_ + "\": with_devices got " + std::to_string(devices.size()) + " devices; expected " +
                        std::to_string(size()));
  }
  cluster other = *this;
  other.devices_ = std::move(devices);
  other.number_devices();
  return other;
}

HETPLAN_INLINE device_id cluster::find(std::string_view name) const {
  for (const device& d : devices_) {
    if (d.name == name) return d.id;
  }
  throw invalid_input("cluster \"" + name_ + "\" has no device \"" + std::string(name) + "\"");
}

HETPLAN_INLINE void cluster::number_devices() {
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

}  // namespace hetplan
