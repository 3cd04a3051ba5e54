// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/devices.hpp>

#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/precision.hpp>
#include <hetplan/zoo/models.hpp>

namespace hetplan::zoo {

namespace detail {

HETPLAN_INLINE attained_share share_of(const format_shares& s) {
  if (s.f16 == s.q8 && s.q8 == s.q4 && s.q4 == s.other) return s.f16;
  return attained_share({{"f16", s.f16}, {"q8", s.q8}, {"q4", s.q4}, {std::string(attained_share::other), s.other}});
}

HETPLAN_INLINE void set_compute(hetplan::device& d, const device_peaks& tflops) {
  const auto rate = [](double of) { return flops_per_second(of * 1e12); };
  if (tflops.any > 0) {
    d.compute = rate(tflops.any);
    return;
  }
  const std::pair<precision, double> peaks[] = {{precision::fp32, tflops.fp32}, {precision::tf32, tflops.tf32},
                                                {precision::bf16, tflops.bf16}, {precision::fp16, tflops.fp16},
                                                {precision::fp8, tflops.fp8},   {precision::int8, tflops.int8}};
  for (const auto& [p, peak] : peaks) {
    if (peak > 0) d.compute_by_precision.emplace_back(p, rate(peak));
  }
  d.compute = d.compute_in(precision::bf16);  // as of a device in a file
}

}  // namespace detail

HETPLAN_INLINE device_entry find_device(std::string_view kind, link joined) {
  const auto row = std::ranges::find(detail::device_rows, kind, &detail::device_row::kind);
  if (row == detail::device_rows.end()) throw_unknown("zoo::device", "device kind", kind, device_kinds());
  const auto attained = std::ranges::find(detail::attained_rows, row->attains.empty() ? kind : row->attains, &detail::attained_row::kind);
  HETPLAN_ASSERT(attained != detail::attained_rows.end());
  const bool radio = joined == link::wifi;
  hetplan::device d{.name = std::string(kind),
                    .kind = std::string(kind),
                    .memory = bytes(row->memory_gb * 1e9),
                    .memory_bandwidth = bytes_per_second(row->bandwidth_gb_per_s * 1e9),
                    .efficiency = detail::share_of(attained->efficiency),
                    .memory_efficiency = detail::share_of(attained->memory_efficiency),
                    .cache_efficiency = attained->cache_efficiency,
                    .half_rows = attained->half_rows,
                    .launch = seconds(attained->launch_us * 1e-6),
                    .send_overhead = seconds(attained->send_overhead_us * 1e-6),
                    .memory_overhead = bytes(row->memory_overhead_gb * 1e9),
                    .power = {.idle = watts(row->idle_w),
                              .active = watts(row->active_w),
                              .send = joules_per_byte(radio ? 4e-8 : 5e-9),
                              .receive = joules_per_byte(radio ? 3e-8 : 5e-9)}};
  detail::set_compute(d, row->tflops);
  if (row->budget_gb < row->memory_gb) d.memory_budget = bytes(row->budget_gb * 1e9);
  if (row->memory_w > 0) d.power.memory = watts(row->memory_w);
  if (row->interconnect_gb_per_s > 0) d.interconnect = bytes_per_second(row->interconnect_gb_per_s * 1e9);
  return {std::move(d), row->estimated, row->data_sheet, attained->kind, attained->fitted_on};
}

HETPLAN_INLINE hetplan::device device(std::string_view kind, std::string name, link joined) {
  hetplan::device d = find_device(kind, joined).device;
  d.name = std::move(name);
  return d;
}

}  // namespace hetplan::zoo
