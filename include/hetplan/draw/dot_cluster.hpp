// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A cluster for Graphviz: devices, and how resources lie between them.

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/draw/dot_writer.hpp>

namespace HETPLAN_NAMESPACE::draw {

namespace detail {

/// Finds out what is a wire (a resource that alone joins exactly one pair) and what is shared.
class cluster_picture {
 public:
  explicit cluster_picture(const cluster& c);

  [[nodiscard]] std::string draw(const dot_options& options);

 private:
  struct wire {
    device_id from, to;
    bool both_ways = false, is_wire = false;
  };

  static std::string device_node(device_id d) { return dot_writer::id('d', d.index()); }
  static std::string resource_node(std::size_t r) { return dot_writer::id('r', r); }

  template <class F>
  void for_each_route(F&& f) const {
    for (const device& a : cluster_.devices()) {
      for (const device& b : cluster_.devices()) {
        if (a.id == b.id) continue;
        if (const route* r = cluster_.network().find(a.id, b.id)) f(a.id, b.id, *r);
      }
    }
  }

  /// The chain of a route; routes over wires show themselves.
  void connect(device_id a, device_id b, const route& r);

  /// Where (almost) every one of three or more resources leads to every other, a switch is what is meant.
  void join_through_switch(dot_writer& out);

  const cluster& cluster_;
  std::vector<wire> wires_;  ///< by resource
  std::set<std::size_t> used_;
  std::set<std::pair<std::string, std::string>> links_;
};

}  // namespace detail

/// A cluster: devices with compute and memory; a resource that joins one pair alone is an edge with its
/// capacity, every other one (a shared medium, an uplink) a node that routes pass through.
///
/// Complexity  O(devices^2 * route length * log).
[[nodiscard]] inline std::string dot(const cluster& c, const dot_options& options = {}) { return detail::cluster_picture(c).draw(options); }

}  // namespace HETPLAN_NAMESPACE::draw

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/dot_cluster.ipp>
#endif
