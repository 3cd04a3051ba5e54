// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/placement_table.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/graph/planning_graph.hpp>

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
  std::vector<std::pair<std::size_t, std::size_t>> crossing;  // (producer, device at one end of the transfer)
  for (const auto& [from, to] : w.edges) {
    if (device[from] == device[to]) continue;
    crossing.emplace_back(from, device[from]);
    crossing.emplace_back(from, device[to]);
  }
  sort_distinct(crossing);
  for (const auto& [from, where] : crossing) {
    if (where < accelerators) load[where] += w.operators[from].transfer;
  }
  return load;
}

HETPLAN_INLINE std::optional<std::string> find_broken_rule(const placement_workload& w, std::span<const std::size_t> device) {
  const std::size_t devices = device_loads(w, device).size(), accelerators = static_cast<std::size_t>(w.accelerators);
  keyed<std::size_t> first_of_color;
  std::vector<bytes> taken(devices);
  for (std::size_t i = 0; i < device.size(); ++i) {
    const placed_operator& o = w.operators[i];
    if (o.color) {
      first_of_color.insert({*o.color}, i);
      const std::size_t first = *first_of_color.find({*o.color});
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

namespace detail {

[[noreturn]] HETPLAN_INLINE void refuse_table(const std::string& what) { throw invalid_input("placement table: " + what); }

/// Largest number of a table, so that sums and products of a few stay finite.
constexpr double largest_table_number = 1e100;

/// Throws invalid_input unless the list has the expected size and its numbers are in [0, largest_table_number], or infinite if allowed.
HETPLAN_INLINE void check_table_numbers(std::string_view what, const std::vector<double>& values, std::size_t expected,
                                        bool may_be_infinite) {
  if (values.size() != expected)
    refuse_table("expected " + std::to_string(expected) + " " + std::string(what) + ", got " + std::to_string(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool ok = (values[i] >= 0 && values[i] <= largest_table_number) || (may_be_infinite && values[i] > 0 && std::isinf(values[i]));
    if (!ok) {
      refuse_table(std::string(what) + ", number " + std::to_string(i) + ": expected a number in [0, " + to_text(largest_table_number) +
                   "]" + (may_be_infinite ? ", or infinity" : "") + ", got " + to_text(values[i]));
    }
  }
}

}  // namespace detail

HETPLAN_INLINE std::vector<double> shared_out_bytes(const placement_data& d) {
  std::vector<double> all = d.held_bytes;
  for (const tied_tensor& x : d.tied) {
    for (const std::size_t v : x.operators) all[v] += x.bytes / static_cast<double>(x.operators.size());
  }
  return all;
}

HETPLAN_INLINE placement_table::placement_table(placement_data given) : data_(std::move(given)) {
  check();
  index();
}

HETPLAN_INLINE double placement_table::output_s(std::size_t op, std::size_t from, std::size_t to) const {
  if (out_edges(op).empty()) return 0;
  if (data_.edge_time_s.empty()) return transfer_s(largest_out_[op], from, to);
  double longest = 0;
  for (const std::uint32_t e : out_edges(op)) longest = std::max(longest, transfer_s(e, from, to));
  return longest;
}

HETPLAN_INLINE void placement_table::check() const {
  const std::size_t n = size(), d = devices();
  if (n == 0) detail::refuse_table("expected at least one operator");
  if (d == 0) detail::refuse_table("expected at least one device");
  detail::check_table_numbers("seconds of operators on devices", data_.time_s, n * d, true);
  detail::check_table_numbers("bytes that operators hold", data_.held_bytes, n, false);
  for (std::size_t i = 0; i < data_.tied.size(); ++i) {
    const tied_tensor& x = data_.tied[i];
    const auto fall = std::adjacent_find(x.operators.begin(), x.operators.end(), std::greater_equal<>());
    if (!(x.bytes >= 0 && x.bytes <= detail::largest_table_number) || x.operators.size() < 2 || fall != x.operators.end() ||
        x.operators.back() >= n) {
      detail::refuse_table("tied tensor " + std::to_string(i) + ": expected bytes in [0, " + to_text(detail::largest_table_number) +
                           "] and two or more of " + std::to_string(n) + " operators, ascending; got " + to_text(x.bytes) + " and " +
                           std::to_string(x.operators.size()) + " operators");
    }
  }
  if (!data_.working_bytes.empty()) detail::check_table_numbers("bytes that operators work with", data_.working_bytes, n, false);
  detail::check_table_numbers("bytes of devices", data_.capacity_bytes, d, true);
  if (!data_.edge_time_s.empty()) {
    detail::check_table_numbers("seconds of edges between devices", data_.edge_time_s, data_.edges.size() * d * d, true);
  }
  if (data_.pairs.size() != d * d) {
    detail::refuse_table("expected " + std::to_string(d * d) + " pairs of devices, got " + std::to_string(data_.pairs.size()));
  }
  for (std::size_t p = 0; p < data_.pairs.size(); ++p) {
    const device_pair& pair = data_.pairs[p];
    const auto fail = [&](const std::string& what) {
      detail::refuse_table("pair of devices " + std::to_string(p / d) + " -> " + std::to_string(p % d) + ": " + what);
    };
    const auto in_range = [](double x) { return x >= 0 && x <= detail::largest_table_number; };
    if (!in_range(pair.latency_s) || !(in_range(pair.s_per_byte) || (pair.s_per_byte > 0 && !pair.joined()))) {
      fail("expected latency_s in [0, " + to_text(detail::largest_table_number) + "], got " + to_text(pair.latency_s) +
           ", and s_per_byte in it or infinite, got " + to_text(pair.s_per_byte));
    }
    if (std::adjacent_find(pair.resources.begin(), pair.resources.end(), std::greater_equal<>()) != pair.resources.end())
      fail("expected resources in ascending order");
    if (!pair.busy_s_per_byte.empty()) {
      detail::check_table_numbers("seconds per byte that resources are busy", pair.busy_s_per_byte, pair.resources.size(), false);
    }
    if (!pair.resources.empty() && pair.resources.back() >= resources()) fail("names resource " + std::to_string(pair.resources.back()));
  }
  for (std::size_t e = 0; e < data_.edges.size(); ++e) {
    const operator_edge& edge = data_.edges[e];
    if (edge.from >= n || edge.to >= n || !(edge.bytes >= 0 && edge.bytes <= detail::largest_table_number)) {
      detail::refuse_table("edge " + std::to_string(e) + ": expected two of " + std::to_string(n) + " operators and bytes in [0, " +
                           to_text(detail::largest_table_number) + "], got " + std::to_string(edge.from) + " -> " +
                           std::to_string(edge.to) + ", " + to_text(edge.bytes));
    }
  }
}

HETPLAN_INLINE void placement_table::index() {
  const std::size_t n = size();
  std::vector<std::pair<std::size_t, std::size_t>> ends;
  ends.reserve(data_.edges.size());
  for (const operator_edge& e : data_.edges) ends.emplace_back(e.from, e.to);
  order_ = topological_order(n, ends);
  const auto named = [&](std::size_t op) { return "\"" + escaped(data_.operators[op]) + "\""; };
  if (order_.size() < n) {
    const auto [from, to] = edge_on_cycle(n, ends, order_);
    detail::refuse_table("expected no cycle, got one through " + named(from) + " -> " + named(to));
  }
  sort_stably(ends);
  if (const auto twice = std::adjacent_find(ends.begin(), ends.end()); twice != ends.end()) {
    detail::refuse_table("expected every edge once, got " + named(twice->first) + " -> " + named(twice->second) + " again");
  }
  const auto rows = [&](std::size_t operator_edge::*end, std::vector<std::size_t>& first, std::vector<std::uint32_t>& all) {
    first.assign(n + 1, 0);
    for (const operator_edge& e : data_.edges) ++first[e.*end + 1];
    for (std::size_t i = 0; i < n; ++i) first[i + 1] += first[i];
    all.resize(data_.edges.size());
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (std::size_t e = 0; e < data_.edges.size(); ++e) all[next[data_.edges[e].*end]++] = static_cast<std::uint32_t>(e);
  };
  rows(&operator_edge::to, first_in_, in_);
  rows(&operator_edge::from, first_out_, out_);
  for (std::size_t op = 0; op < n; ++op) {
    double fastest = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < devices(); ++k) fastest = std::min(fastest, time_s(op, k));
    fastest_s_.push_back(fastest);
    const auto out = out_edges(op);
    const auto smaller = [&](std::uint32_t a, std::uint32_t b) { return data_.edges[a].bytes < data_.edges[b].bytes; };
    largest_out_.push_back(out.empty() ? 0 : *std::max_element(out.begin(), out.end(), smaller));
    all_held_bytes_ += held_bytes(op);
  }
  shared_out_bytes_ = place::shared_out_bytes(data_);
  if (!data_.tied.empty()) {
    first_tied_.assign(n + 1, 0);
    for (const tied_tensor& x : data_.tied) {
      all_held_bytes_ += x.bytes;
      for (const std::size_t op : x.operators) ++first_tied_[op + 1];
    }
    for (std::size_t i = 0; i < n; ++i) first_tied_[i + 1] += first_tied_[i];
    tied_.resize(first_tied_[n]);
    std::vector<std::size_t> next(first_tied_.begin(), first_tied_.end() - 1);
    for (std::size_t i = 0; i < data_.tied.size(); ++i) {
      for (const std::size_t op : data_.tied[i].operators) tied_[next[op]++] = static_cast<std::uint32_t>(i);
    }
  }
  // Rounded sums depend on their order, so operators that fill a device exactly could fit in one order and not in another.
  constexpr double slack = 1e-12;
  const auto whole = [](double bytes) { return bytes == std::floor(bytes); };
  const auto whole_tensor = [&](const tied_tensor& x) { return whole(x.bytes); };
  const bool exact = std::all_of(data_.tied.begin(), data_.tied.end(), whole_tensor) &&
                     std::all_of(data_.held_bytes.begin(), data_.held_bytes.end(), whole) &&
                     std::all_of(data_.working_bytes.begin(), data_.working_bytes.end(), whole);
  capacity_bytes_ = data_.capacity_bytes;
  for (double& c : capacity_bytes_) c *= exact ? 1 : 1 + slack;
}

}  // namespace hetplan::place
