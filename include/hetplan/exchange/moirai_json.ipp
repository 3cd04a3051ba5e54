// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/moirai_json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/exchange/dnn_partitioning_json.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/place/place_operators.hpp>

namespace hetplan::exchange {

namespace detail {

/// Returns the numbers of a list. Throws invalid_input unless there are `count` of them.
[[nodiscard]] HETPLAN_INLINE std::vector<double> numbers_of(const io::json_node& list, std::size_t count, const std::string& of_what) {
  std::vector<double> all;
  const std::string expected = std::to_string(count) + " numbers, " + of_what;
  for (const io::json_node x : list.elements(expected)) all.push_back(x.number(io::range::at_least_zero));
  if (all.size() != count) list.fail_with("expected " + expected + ", got " + std::to_string(all.size()));
  return all;
}

HETPLAN_INLINE void join_all_pairs(place::placement_data& t) {
  for (std::size_t p = 0; p < t.devices.size() * t.devices.size(); ++p) {
    place::device_pair& pair = t.pairs.emplace_back();
    if (p / t.devices.size() != p % t.devices.size()) pair.resources = {t.resources++};
  }
}

}  // namespace detail

HETPLAN_INLINE place::placement_table read_moirai(const io::json_document& d) {
  const foreign_object root{io::json_node(d)};
  constexpr int most = 1'000'000;
  const auto n = static_cast<std::size_t>(root.at("n", "the number of operators").integer(1, most));
  const auto devices = static_cast<std::size_t>(root.at("devices", "the number of devices").integer(1, 1024));
  place::placement_data t;
  for (std::size_t i = 0; i < n; ++i) t.operators.push_back("op" + std::to_string(i));
  for (std::size_t k = 0; k < devices; ++k) t.devices.push_back("device" + std::to_string(k));
  const auto lists = [&](std::string_view key, std::size_t count, const std::string& of_what) {
    const io::json_node list = root.at(key, "a list " + of_what);
    const auto all = list.elements("a list " + of_what);
    if (list.size() != count)
      list.fail_with("expected " + std::to_string(count) + " lists, one " + of_what + ", got " + std::to_string(list.size()));
    return all;
  };
  const io::json_node edges = root.at("edges", "a list of edges");
  std::set<std::pair<std::size_t, std::size_t>> known;
  for (const io::json_node e : edges.elements("a list of edges")) {
    std::vector<std::size_t> ends;
    for (const io::json_node end : e.elements("two operators"))
      ends.push_back(static_cast<std::size_t>(end.integer(0, static_cast<int>(n) - 1)));
    if (ends.size() != 2) e.fail_with("expected two operators, got " + std::to_string(ends.size()));
    if (!known.emplace(ends[0], ends[1]).second) e.fail_with("expected every edge once, got this one again");
    t.edges.push_back({ends[0], ends[1], 0});
  }
  for (const io::json_node row : lists("op_time_ms", n, "for each operator")) {
    for (const double ms : detail::numbers_of(row, devices, "one for each device")) t.time_s.push_back(ms / 1000);
  }
  for (const io::json_node matrix : lists("edge_time_ms", t.edges.size(), "for each edge")) {
    const auto rows = matrix.elements("a list for each device");
    if (matrix.size() != devices)
      matrix.fail_with("expected " + std::to_string(devices) + " lists, one for each device, got " + std::to_string(matrix.size()));
    for (const io::json_node row : rows) {
      for (const double ms : detail::numbers_of(row, devices, "one for each device")) t.edge_time_s.push_back(ms / 1000);
    }
  }
  t.held_bytes = detail::numbers_of(root.at("memory", "a number for each operator"), n, "one for each operator");
  t.capacity_bytes = detail::numbers_of(root.at("capacity", "a number for each device"), devices, "one for each device");
  detail::join_all_pairs(t);
  try {
    return place::placement_table(std::move(t));
  } catch (const invalid_input& e) {
    io::json_node(d).fail_with(e.what());
  }
}

HETPLAN_INLINE place::placement_table read_dnn_partitioning_latency(const io::json_document& d) {
  const dnn_partitioning_workload w = read_dnn_partitioning(d);
  const io::json_node root(d);
  const auto& operators = w.workload.operators;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (operators[i].backward)
      root.fail_with("expected one inference, got node " + std::to_string(w.ids[i]) + ", which is a backward node");
  }
  const place::placement_units units = place::make_placement_units(w.workload);
  const auto accelerators = static_cast<std::size_t>(w.workload.accelerators), cpus = static_cast<std::size_t>(w.workload.cpus);
  const std::size_t devices = accelerators + cpus;
  place::placement_data t;
  double held = 0;
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (std::size_t k = 0; k < devices; ++k) t.time_s.push_back(k < accelerators ? units.accelerator_s[u] : units.cpu_s[u]);
    t.held_bytes.push_back(units.size_bytes[u]);
    held += units.size_bytes[u];
  }
  t.operators.resize(units.size());
  std::map<std::pair<std::size_t, std::size_t>, double> carried;  // by pair of units; an output counts once per reading unit
  std::set<std::pair<std::size_t, std::size_t>> known;            // operator and reading unit
  for (std::size_t i = 0; i < operators.size(); ++i) {
    std::string& name = t.operators[units.unit_of[i]];
    if (name.empty()) name = std::to_string(w.ids[i]) + (operators[i].name.empty() ? "" : " " + operators[i].name);
  }
  for (const auto& [from, to] : w.workload.edges) {
    const std::size_t a = units.unit_of[from], b = units.unit_of[to];
    if (a != b && known.emplace(from, b).second) carried[{a, b}] += operators[from].transfer.value();
  }
  for (const auto& [ends, cost] : carried) t.edges.push_back({ends.first, ends.second, cost});
  for (std::size_t k = 0; k < devices; ++k) {
    t.devices.push_back((k < accelerators ? "accelerator" : "cpu") + std::to_string(k < accelerators ? k : k - accelerators));
    t.capacity_bytes.push_back(k < accelerators ? w.workload.accelerator_memory.value() : held);
  }
  t.resources = 2 * accelerators;  // links out of and into each accelerator
  for (std::size_t a = 0; a < devices; ++a) {
    for (std::size_t b = 0; b < devices; ++b) {
      place::device_pair& p = t.pairs.emplace_back();
      if (a == b) continue;
      if (a < accelerators) p.resources.push_back(a);
      if (b < accelerators) p.resources.push_back(accelerators + b);
      p.s_per_byte = static_cast<double>(p.resources.size());
    }
  }
  return place::placement_table(std::move(t));
}

HETPLAN_INLINE table_model model_of(const place::placement_table& t, const std::string& name) {
  if (!t.tied().empty()) throw invalid_input("model \"" + name + "\": expected no tied tensors, got " + std::to_string(t.tied().size()));
  const std::size_t devices = t.devices(), pairs = devices * devices, edges = t.edges().size();
  const auto time_s = [&](std::size_t e, std::size_t p) { return t.transfer_s(e, p / devices, p % devices); };
  std::vector<double> total(pairs, 0), rate(pairs, 0), amount(edges, 0);
  for (std::size_t p = 0; p < pairs; ++p) {
    for (std::size_t e = 0; e < edges; ++e) total[p] += time_s(e, p);
  }
  const auto reference = static_cast<std::size_t>(std::max_element(total.begin(), total.end()) - total.begin());
  double squares = 0, rates = 0, worst = 0;
  for (std::size_t e = 0; e < edges; ++e) squares += time_s(e, reference) * time_s(e, reference);
  for (std::size_t p = 0; p < pairs && squares > 0; ++p) {
    for (std::size_t e = 0; e < edges; ++e) rate[p] += time_s(e, p) * time_s(e, reference) / squares;
    rates += rate[p] * rate[p];
  }
  for (std::size_t e = 0; e < edges && rates > 0; ++e) {
    double longest = 0, off = 0;
    for (std::size_t p = 0; p < pairs; ++p) amount[e] += time_s(e, p) * rate[p] / rates;
    for (std::size_t p = 0; p < pairs; ++p) {
      longest = std::max(longest, time_s(e, p));
      off = std::max(off, std::abs(time_s(e, p) - amount[e] * rate[p]));
    }
    if (longest > 0) worst = std::max(worst, off / longest);
  }

  // Devices with equal times for all operators are of one kind.
  std::vector<std::size_t> kind(devices);
  for (std::size_t k = 0; k < devices; ++k) {
    const auto alike = [&](std::size_t other) {
      for (std::size_t i = 0; i < t.size(); ++i) {
        if (t.time_s(i, k) != t.time_s(i, other)) return false;
      }
      return true;
    };
    kind[k] = k;
    for (std::size_t other = 0; other < k; ++other) {
      if (alike(other)) {
        kind[k] = other;
        break;
      }
    }
  }
  constexpr double slowest_pair = 1e9;
  planning_graph_builder model(name);
  std::vector<layer_id> layer;
  for (std::size_t i = 0; i < t.size(); ++i) {
    layer_spec spec{
        .name = t.data().operators[i], .kind = "operator", .weight = bytes(t.held_bytes(i)), .activation = bytes(t.working_bytes(i))};
    for (std::size_t k = 0; k < devices; ++k) {
      if (kind[k] != k) continue;
      if (!std::isfinite(t.time_s(i, k))) {
        throw invalid_input("model \"" + name + "\": operator \"" + t.data().operators[i] + "\" cannot run on device \"" +
                            t.data().devices[k] + "\"; a profile cannot say that");
      }
      spec.profiles.push_back(
          proportional_beyond({.device_kind = t.data().devices[k], .batch = {1}, .forward_s = {t.time_s(i, k)}, .backward_s = {}}));
    }
    layer.push_back(model.add_layer(std::move(spec)));
  }
  for (std::size_t e = 0; e < edges; ++e) model.add_edge(layer[t.edges()[e].from], layer[t.edges()[e].to], bytes(amount[e] * slowest_pair));

  double held = 0;
  for (std::size_t i = 0; i < t.size(); ++i) held += t.held_bytes(i) + t.working_bytes(i);
  std::vector<device> all;
  for (std::size_t k = 0; k < devices; ++k) {
    const double memory = std::min(t.capacity_bytes(k), std::max(1.0, held));
    all.push_back({.name = t.data().devices[k], .kind = t.data().devices[kind[k]], .memory = bytes(memory)});
  }
  route_table net;
  for (std::size_t p = 0; p < pairs; ++p) {
    const std::string &from = t.data().devices[p / devices], &to = t.data().devices[p % devices];
    if (p / devices == p % devices) continue;
    route way;
    if (rate[p] > 0) {
      way.via = {{resource_id(net.listed.size()), 1}};
      net.listed.push_back({from + "->" + to, bytes_per_second(slowest_pair / rate[p])});
    }
    net.rules.push_back({from, to, std::move(way)});
  }
  cluster c = devices > 1 ? cluster(name, std::move(all), net) : cluster(name, std::move(all.front()));
  return {std::move(model).build(), std::move(c), worst};
}

}  // namespace hetplan::exchange
