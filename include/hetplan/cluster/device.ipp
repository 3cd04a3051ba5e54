// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/device.hpp>

#include <algorithm>

#include <hetplan/core/error.hpp>

namespace hetplan {

HETPLAN_INLINE bool device::computes_in(hetplan::precision p) const {
  if (compute_by_precision.empty()) return compute.value() > 0;
  return any_substitute(p, [&](hetplan::precision q) {
    return std::any_of(compute_by_precision.begin(), compute_by_precision.end(), [&](const auto& rate) { return rate.first == q; });
  });
}

HETPLAN_INLINE flops_per_second device::compute_in(hetplan::precision p) const {
  if (compute_by_precision.empty()) return compute;
  flops_per_second found;
  const auto finds = [&](hetplan::precision q) {
    for (const auto& [known, rate] : compute_by_precision) {
      if (known == q) found = rate;
    }
    return found.value() > 0;
  };
  if (any_substitute(p, finds)) return found;
  throw invalid_input("device \"" + name + "\": compute has no rate for " + std::string(to_string(p)) +
                      ", nor for a precision that can stand in for it; expected one");
}

HETPLAN_INLINE const memory_tier* device::find_tier(std::string_view of_name) const {
  for (const memory_tier& t : tiers) {
    if (t.name == of_name) return &t;
  }
  return nullptr;
}

HETPLAN_INLINE const double* attained_share::find(std::string_view format) const {
  if (by_format.empty()) return &of_all;
  const double* others = nullptr;
  for (const auto& [name, share] : by_format) {
    if (name == format) return &share;
    if (name == other) others = &share;
  }
  return others;
}

HETPLAN_INLINE double share_for(const attained_share& s, std::string_view format, const device& d, std::string_view field) {
  if (const double* share = s.find(format)) return *share;
  std::string known;
  for (const auto& [name, share] : s.by_format) known += (known.empty() ? "" : ", ") + name;
  throw invalid_input("device \"" + d.name + "\": " + std::string(field) + " is given for the weight formats " + known +
                      "; expected one for \"" + std::string(format) + "\", the model's weight_format");
}

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
  require(std::isfinite(d.half_rows) && d.half_rows >= 0, "half_rows", d.half_rows, "a finite number >= 0");
  require(d.half_rows == 0 || d.half_batch == 0, "half_rows", d.half_rows, "half_rows or half_batch, not both");
  const auto share = [&](double s, const char* field) { require(s > 0 && s <= 1, field, s, "a share in (0, 1]"); };
  const auto shares = [&](const attained_share& s, const char* field) {
    share(s.of_all, field);
    for (const auto& [format, of_format] : s.by_format) share(of_format, field);
  };
  shares(d.efficiency, "efficiency");
  shares(d.memory_efficiency, "memory_efficiency");
  share(d.cache_efficiency, "cache_efficiency");
  for (const auto& [p, rate] : d.compute_by_precision) require(is_finite(rate) && rate.value() > 0, "compute", rate.value(), "a rate > 0");
  amount(d.launch, "launch");
  amount(d.overhead, "overhead");
  amount(d.send_overhead, "send_overhead");
  amount(d.memory_overhead, "memory_overhead");
  require(d.memory_overhead < d.usable_memory(), "memory_overhead", d.memory_overhead.value(), "less than the memory that plans may use");
  require(d.accelerators >= 1, "accelerators", d.accelerators, "an integer >= 1");
  if (d.interconnect) {
    require(is_finite(*d.interconnect) && d.interconnect->value() > 0, "interconnect", d.interconnect->value(), "a rate > 0");
  }
  amount(d.power.idle, "power.idle");
  require(is_finite(d.power.active) && d.power.active >= d.power.idle, "power.active", d.power.active.value(), "watts >= idle");
  if (d.power.memory)
    require(is_finite(*d.power.memory) && *d.power.memory >= d.power.idle, "power.memory", d.power.memory->value(), "watts >= idle");
  amount(d.power.send, "power.send");
  amount(d.power.receive, "power.receive");
  if (d.energy_budget) amount(*d.energy_budget, "energy_budget");
  require(d.max_busy > 0 && d.max_busy <= 1, "max_busy", d.max_busy, "a share in (0, 1]");
  for (const memory_tier& t : d.tiers) {
    if (t.name.empty()) throw invalid_input("device \"" + d.name + "\": a tier has an empty name");
    if (d.find_tier(t.name) != &t) throw invalid_input("device \"" + d.name + "\": tier \"" + t.name + "\" appears twice");
    const std::string of = "tier \"" + t.name + "\": ";
    require(is_finite(t.memory) && t.memory.value() > 0, (of + "memory").c_str(), t.memory.value(), "bytes > 0");
    require(is_finite(t.bandwidth) && t.bandwidth.value() > 0, (of + "bandwidth").c_str(), t.bandwidth.value(), "a rate > 0");
  }
}

}  // namespace hetplan
