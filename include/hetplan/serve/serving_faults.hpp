// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for what goes wrong in an edge cloud, and who comes and goes.

#include <limits>
#include <variant>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>

namespace hetplan::serve {

/// It takes along its instances, those of its devices, and those that have a GPU there.
struct server_fails {
  friend bool operator==(const server_fails&, const server_fails&) = default;
};
/// It takes along the instances that have it, with all of their GPUs.
struct gpu_fails {
  int gpu = 0;
  friend bool operator==(const gpu_fails&, const gpu_fails&) = default;
};
struct device_leaves {
  int device = 0;
  friend bool operator==(const device_leaves&, const device_leaves&) = default;
};
/// It is there from then on: a deployment that begins later may use it. A device that registers first of all is not there before.
struct device_registers {
  int device = 0;
  friend bool operator==(const device_registers&, const device_registers&) = default;
};
/// No publication passes between this server and the next of the list.
struct ring_cut {
  seconds until;
  friend bool operator==(const ring_cut&, const ring_cut&) = default;
};
struct slow_link {
  seconds until;
  double factor = 1;  ///< of the bandwidth
  friend bool operator==(const slow_link&, const slow_link&) = default;
};
/// A silent error: it publishes that it is idle.
struct wrong_state {
  seconds until;
  friend bool operator==(const wrong_state&, const wrong_state&) = default;
};
/// With the next change of the deployment. A server that joins is absent before.
struct server_joins {
  friend bool operator==(const server_joins&, const server_joins&) = default;
};
struct server_leaves {
  friend bool operator==(const server_leaves&, const server_leaves&) = default;
};

struct serving_fault {
  seconds at;
  server_id server;
  std::variant<server_fails, gpu_fails, device_leaves, device_registers, ring_cut, slow_link, wrong_state, server_joins, server_leaves>
      what;
  friend bool operator==(const serving_fault&, const serving_fault&) = default;
};

/// What is not to be used: by number of the server, and GPUs and devices of those that are there.
struct cloud_damage {
  std::vector<char> absent;  ///< by server; empty: all are there
  std::vector<gpu_slot> broken_gpus = {};
  std::vector<gpu_slot> gone_devices = {};

  [[nodiscard]] bool is_absent(server_id s) const { return !absent.empty() && absent[s.index()] != 0; }
};

/// When a fault begins, or is over.
struct fault_turn {
  double at_s = 0;
  std::size_t fault = 0;
  bool ends = false;
};
/// All of them in order of time, those of one instant in list order.
[[nodiscard]] std::vector<fault_turn> turns(const std::vector<serving_fault>& faults);

/// What is not there at the beginning: servers and devices of which the first that is heard is that they join, or register.
[[nodiscard]] cloud_damage damage_at_first(const std::vector<serving_fault>& faults, const edge_cloud& cloud);

/// Throws invalid_input: times that descend or are not finite, a server, GPU or device that is not there, an end that is not after its
/// beginning, a factor that is not above 0, a server that joins or leaves twice in a row, a device that registers so.
/// Source  EPARA, sections 4.2 and 5.3.3; semantics, section 11.
void validate(const std::vector<serving_fault>& faults, const edge_cloud& cloud);

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/serving_faults.ipp>
#endif
