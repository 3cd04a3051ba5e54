// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/placement_workload.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/topological_order.hpp>

namespace hetplan::place {

HETPLAN_INLINE void check_placement_workload(const placement_workload& w) {
  const auto fail = [](const std::string& what) { throw invalid_input("placement workload: " + what); };
  const auto check = [&](std::size_t i, const char* field, double v) {
    if (!(v >= 0) || std::isinf(v)) fail("operator " + std::to_string(i) + ": " + field + " = " + to_text(v) + "; expected finite >= 0");
  };
  if (w.operators.empty()) fail("no operator; expected at least one");
  for (std::size_t i = 0; i < w.operators.size(); ++i) {
    const placed_operator& o = w.operators[i];
    check(i, "accelerator_time", o.accelerator_time.value());
    check(i, "cpu_time", o.cpu_time.value());
    check(i, "size", o.size.value());
    check(i, "transfer", o.transfer.value());
  }
  for (const auto& [field, count] : {std::pair{"accelerators", w.accelerators}, std::pair{"cpus", w.cpus}}) {
    if (count < 0 || count > max_placement_devices) {
      fail(std::string(field) + " = " + std::to_string(count) + "; expected from 0 to " + std::to_string(max_placement_devices));
    }
  }
  if (w.accelerators == 0 && w.cpus == 0) fail("no accelerator and no CPU; expected at least one device");
  if (!(w.accelerator_memory.value() >= 0)) fail("accelerator_memory = " + to_text(w.accelerator_memory.value()) + "; expected >= 0");
  for (const auto& [from, to] : w.edges) {
    const std::string edge = "edge " + std::to_string(from) + " -> " + std::to_string(to);
    if (from >= w.operators.size() || to >= w.operators.size())
      fail(edge + "; expected operators below " + std::to_string(w.operators.size()));
    if (w.operators[from].backward && !w.operators[to].backward) fail(edge + " leads from a backward to a forward operator");
  }
  if (const auto order = topological_order(w.operators.size(), w.edges); order.size() < w.operators.size()) {
    const auto [from, to] = edge_on_cycle(w.operators.size(), w.edges, order);
    fail("edge " + std::to_string(from) + " -> " + std::to_string(to) + " is on a cycle; expected a graph without");
  }
}

HETPLAN_INLINE std::vector<seconds> device_loads(const placement_workload& w, std::span<const std::size_t> device) {
  const auto accelerators = static_cast<std::size_t>(w.accelerators), devices = accelerators + static_cast<std::size_t>(w.cpus);
  if (device.size() != w.operators.size()) {
    throw invalid_input("device_loads: " + std::to_string(device.size()) + " devices; expected one for each of " +
                        std::to_string(w.operators.size()) + " operators");
  }
  std::vector<seconds> load(devices);
  for (std::size_t i = 0; i < device.size(); ++i) {
    if (device[i] >= devices) {
      throw invalid_input("device_loads: operator " + std::to_string(i) + ": device " + std::to_string(device[i]) + "; expected below " +
                          std::to_string(devices));
    }
    load[device[i]] += device[i] < accelerators ? w.operators[i].accelerator_time : w.operators[i].cpu_time;
  }
  std::vector<std::pair<std::size_t, std::size_t>> crossing;  // producer, device that takes part in the transfer
  for (const auto& [from, to] : w.edges) {
    if (device[from] == device[to]) continue;
    crossing.emplace_back(from, device[from]);
    crossing.emplace_back(from, device[to]);
  }
  std::sort(crossing.begin(), crossing.end());
  crossing.erase(std::unique(crossing.begin(), crossing.end()), crossing.end());
  for (const auto& [from, where] : crossing) {
    if (where < accelerators) load[where] += w.operators[from].transfer;
  }
  return load;
}

HETPLAN_INLINE std::optional<std::string> find_broken_rule(const placement_workload& w, std::span<const std::size_t> device) {
  const std::size_t devices = device_loads(w, device).size(), accelerators = static_cast<std::size_t>(w.accelerators);
  std::map<long long, std::size_t> first_of_color;
  std::vector<bytes> taken(devices);
  for (std::size_t i = 0; i < device.size(); ++i) {
    const placed_operator& o = w.operators[i];
    if (o.color) {
      const std::size_t first = first_of_color.emplace(*o.color, i).first->second;
      if (device[first] != device[i])
        return "operators " + std::to_string(first) + " and " + std::to_string(i) + " have color " + std::to_string(*o.color) +
               " and are on two devices";
    }
    if (device[i] < accelerators && !o.on_accelerator)
      return "operator " + std::to_string(i) + " is on an accelerator, which cannot run it";
    taken[device[i]] += o.size;
  }
  for (std::size_t d = 0; d < accelerators; ++d) {
    if (taken[d] > w.accelerator_memory)
      return "accelerator " + std::to_string(d) + " takes " + to_text(taken[d].value()) + " bytes of " +
             to_text(w.accelerator_memory.value());
  }
  std::vector<std::pair<std::size_t, std::size_t>> sends;
  for (const auto& [from, to] : w.edges) {
    if (!w.operators[to].backward && device[from] != device[to]) sends.emplace_back(device[from], device[to]);
  }
  if (const auto order = topological_order(devices, sends); order.size() < devices) {
    const auto [from, to] = edge_on_cycle(devices, sends, order);
    return "devices " + std::to_string(from) + " and " + std::to_string(to) + " feed each other";
  }
  return std::nullopt;
}

}  // namespace hetplan::place
