// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/mix/criterion.hpp>

#include <string>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan::mix {

HETPLAN_INLINE double device_energy::value(const evaluation& e) const {
  if (!device.valid() || device.index() >= e.devices.size()) {
    throw invalid_input("device_energy: device " + std::to_string(device.value) + " of an evaluation with " +
                        std::to_string(e.devices.size()) + " devices; expected one of them");
  }
  return e.devices[device.index()].energy.value();
}

HETPLAN_INLINE double bytes_moved::value(const evaluation& e) const {
  bytes total;
  for (const bytes b : e.resource_bytes) total += b;
  return total.value();
}

}  // namespace hetplan::mix
