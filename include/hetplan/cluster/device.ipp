// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/device.hpp>

#include <hetplan/core/error.hpp>

namespace hetplan {

HETPLAN_INLINE void check_device(const device& d) {
  const auto require = [&](bool ok, const char* field, double given, const char* expected) {
    if (!ok) {
      throw invalid_input("device \"" + d.name + "\": " + field + " = " + to_text(given) + "; expected " + expected);
    }
  };
  const auto amount = [&](auto q, const char* field) { require(is_finite(q) && q.value() >= 0, field, q.value(), "a finite number >= 0"); };
  if (d.name.empty()) throw invalid_input("a device has an empty name");
  require(is_finite(d.memory) && d.memory.value() > 0, "memory", d.memory.value(), "bytes > 0");
  require(d.usable_memory().value() > 0 && d.usable_memory() <= d.memory, "memory_budget", d.usable_memory().value(),
          "bytes > 0 and at most the memory");
  amount(d.compute, "compute");
  require(d.memory_bandwidth.value() > 0, "memory_bandwidth", d.memory_bandwidth.value(), "a rate > 0");
  require(std::isfinite(d.half_batch) && d.half_batch >= 0, "half_batch", d.half_batch, "a finite number >= 0");
  amount(d.launch, "launch");
  require(d.accelerators >= 1, "accelerators", d.accelerators, "an integer >= 1");
  if (d.interconnect) {
    require(is_finite(*d.interconnect) && d.interconnect->value() > 0, "interconnect", d.interconnect->value(), "a rate > 0");
  }
  amount(d.power.idle, "power.idle");
  require(is_finite(d.power.active) && d.power.active >= d.power.idle, "power.active", d.power.active.value(), "watts >= idle");
  amount(d.power.send, "power.send");
  amount(d.power.receive, "power.receive");
  if (d.energy_budget) amount(*d.energy_budget, "energy_budget");
  require(d.max_busy > 0 && d.max_busy <= 1, "max_busy", d.max_busy, "a share in (0, 1]");
}

}  // namespace hetplan
