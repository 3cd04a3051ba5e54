// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/widest_routes.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <boost/property_map/property_map.hpp>

namespace hetplan::detail {

/// Direct route as an edge of the graph.
struct hop {
  double width = 0;  ///< bytes per second
  double latency_s = 0;
};
using hop_graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, boost::no_property, hop>;
using hop_edge = boost::graph_traits<hop_graph>::edge_descriptor;

struct indirect_routes::edges {
  hop_graph graph;
};

/// Length of a path, by which equally wide paths are compared: hops, then latency.
struct hop_distance {
  int hops = 0;
  double latency_s = 0;

  friend bool operator==(const hop_distance&, const hop_distance&) = default;
  friend bool operator<(const hop_distance& a, const hop_distance& b) {
    return std::tie(a.hops, a.latency_s) < std::tie(b.hops, b.latency_s);
  }
  friend hop_distance operator+(const hop_distance& a, const hop_distance& b) { return {a.hops + b.hops, a.latency_s + b.latency_s}; }
};

/// Edge filter for routes of at least this width.
struct wide_enough {
  const hop_graph* graph = nullptr;
  double width = 0;

  bool operator()(const hop_edge& e) const { return (*graph)[e].width >= width; }
};

HETPLAN_INLINE indirect_routes::indirect_routes(network direct, std::size_t devices) : direct_(std::move(direct)), devices_(devices) {
  auto all = std::make_shared<edges>(edges{hop_graph(devices)});
  for (std::size_t a = 0; a < devices; ++a) {
    for (std::size_t b = 0; b < devices; ++b) {
      const route* r = direct_.find(device_id(a), device_id(b));
      if (r == nullptr) continue;
      add_edge(a, b, hop{direct_.peak_bandwidth(device_id(a), device_id(b)).value(), r->latency.value()}, all->graph);
    }
  }
  edges_ = std::move(all);
}

HETPLAN_INLINE std::optional<route> indirect_routes::operator()(device_id from, device_id to) const {
  if (const route* r = direct_.find(from, to)) return *r;
  if (last_from_ != from) {
    last_ = paths_from(from);
    last_from_ = from;
  }
  const std::vector<device_id>& path = last_[to.index()];
  if (path.empty()) return std::nullopt;
  route all;
  device_id at = from;
  for (const device_id next : path) {
    const route& part = *direct_.find(std::exchange(at, next), next);
    all.latency += part.latency;
    all.via.insert(all.via.end(), part.via.begin(), part.via.end());  // the network adds the weights of repeated resources
  }
  return all;
}

HETPLAN_INLINE indirect_routes::paths indirect_routes::paths_from(device_id from) const {
  const hop_graph& graph = edges_->graph;
  const std::size_t source = from.index();
  paths found(devices_);
  const auto by_device = [](auto& values) { return boost::make_iterator_property_map(values.begin(), boost::identity_property_map()); };
  const auto no_predecessors = boost::dummy_property_map();
  const boost::identity_property_map numbers;

  std::vector<double> width(devices_);
  boost::dijkstra_shortest_paths(
      graph, source, no_predecessors, by_device(width), get(&hop::width, graph), numbers, std::greater<double>(),
      [](double path, double next) { return std::min(path, next); }, 0.0, std::numeric_limits<double>::infinity(),
      boost::default_dijkstra_visitor());
  // Subpaths of a widest path need not be widest: above the bottleneck hops count. So hops are counted anew for each bottleneck.
  std::vector<std::size_t> targets;
  for (std::size_t t = 0; t < devices_; ++t) {
    if (t != source && width[t] > 0 && direct_.find(from, device_id(t)) == nullptr) targets.push_back(t);
  }
  std::stable_sort(targets.begin(), targets.end(), [&](std::size_t a, std::size_t b) { return width[a] > width[b]; });
  std::vector<hop_distance> distance(devices_);
  const auto length_of = [&](const hop_edge& e) { return hop_distance{1, graph[e].latency_s}; };
  const auto lengths = boost::make_function_property_map<hop_edge>(length_of);
  constexpr hop_distance far{std::numeric_limits<int>::max(), 0};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const double least = width[targets[i]];
    if (i == 0 || width[targets[i - 1]] != least) {
      const boost::filtered_graph<hop_graph, wide_enough> wide(graph, wide_enough{&graph, least});
      boost::dijkstra_shortest_paths(wide, source, no_predecessors, by_device(distance), lengths, numbers, std::less<hop_distance>(),
                                     std::plus<hop_distance>(), far, hop_distance{}, boost::default_dijkstra_visitor());
    }
    std::vector<device_id>& path = found[targets[i]];
    for (std::size_t at = targets[i]; at != source;) {
      path.emplace_back(at);
      std::size_t before = devices_;
      for (auto [e, end] = in_edges(at, graph); e != end; ++e) {
        const std::size_t u = boost::source(*e, graph);
        if (graph[*e].width >= least && distance[u] != far && distance[u] + length_of(*e) == distance[at]) before = std::min(before, u);
      }
      at = before;
    }
    std::reverse(path.begin(), path.end());
  }
  return found;
}

}  // namespace hetplan::detail
