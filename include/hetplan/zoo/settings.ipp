// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/settings.hpp>

#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/zoo/models.hpp>

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

HETPLAN_INLINE hetplan::cluster cluster(std::string_view name) {
  std::string n(name);
  if (n == "smart-home-1") {
    return {std::move(n),
            std::vector{device("rtx4060ti", "desktop0"), device("rtx4060ti", "desktop1"), device("rtx4050", "laptop0"),
                        device("rtx4050", "laptop1"), device("rtx4050", "laptop2")},
            shared_medium{900_Mbit_per_s, 2_ms}};
  }
  if (n == "smart-home-2") {
    return {std::move(n),
            std::vector{device("rtx4050", "laptop0"), device("rtx4050", "laptop1"), device("snapdragon-8-elite", "xiaomi0"),
                        device("snapdragon-8-elite", "xiaomi1"), device("snapdragon-8-elite", "galaxy0")},
            shared_medium{600_Mbit_per_s, 2_ms}};
  }
  if (n == "traffic-monitor") {
    return {std::move(n),
            std::vector{device("genio-720", "camera0", link::wire), device("genio-720", "camera1", link::wire),
                        device("genio-520", "camera2", link::wire), device("genio-520", "camera3", link::wire)},
            ring{200_Mbit_per_s, 0.5_ms, duplex::full}};
  }
  if (n == "edge-cluster") {
    return {std::move(n),
            std::vector{device("a40", "server0", link::wire), device("a40", "server1", link::wire), device("v100", "server2", link::wire),
                        device("v100", "server3", link::wire)},
            ring{4_Gbit_per_s, 0.1_ms, duplex::full}};
  }
  throw_unknown("zoo::cluster", "cluster", name, cluster_names());
}

}  // namespace hetplan::zoo
