// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/devices.hpp>

#include <utility>

#include <hetplan/zoo/names.hpp>

namespace hetplan::zoo {

HETPLAN_INLINE device_entry find_device(std::string_view kind, link joined) {
  for (const detail::device_row& r : detail::device_rows) {
    if (r.kind != kind) continue;
    const bool radio = joined == link::wifi;
    hetplan::device d{.name = std::string(kind),
                      .kind = std::string(kind),
                      .memory = bytes(r.memory_gb * 1e9),
                      .compute = flops_per_second(r.compute_tflops * 1e12),
                      .memory_bandwidth = bytes_per_second(r.bandwidth_gb_per_s * 1e9),
                      .half_batch = r.half_batch,
                      .launch = seconds(r.launch_us * 1e-6),
                      .power = {.idle = watts(r.idle_w),
                                .active = watts(r.active_w),
                                .send = joules_per_byte(radio ? 4e-8 : 5e-9),
                                .receive = joules_per_byte(radio ? 3e-8 : 5e-9)}};
    if (r.budget_gb < r.memory_gb) d.memory_budget = bytes(r.budget_gb * 1e9);
    return {std::move(d), r.estimated};
  }
  throw_unknown("zoo::device", "device kind", kind, device_kinds());
}

HETPLAN_INLINE hetplan::device device(std::string_view kind, std::string name, link joined) {
  hetplan::device d = find_device(kind, joined).device;
  d.name = std::move(name);
  return d;
}

}  // namespace hetplan::zoo
