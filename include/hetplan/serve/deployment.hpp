// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Deployments: instances of services on GPUs and devices.

#include <compare>
#include <optional>
#include <vector>

#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// A GPU or a registered device of a server, by number.
struct gpu_slot {
  server_id server;
  int number = 0;
  friend auto operator<=>(const gpu_slot&, const gpu_slot&) = default;
};

/// A service on GPUs, configured by EPARA's operators: BS is `batch`, MF `frames`, DP `groups`; MP is in the variant, MT is the
/// number of instances that share a GPU.
struct instance {
  service_id what;
  int variant = 0;
  std::vector<gpu_slot> gpus = {};      ///< as many as the variant needs, times groups; the first one's server leads
  std::optional<gpu_slot> device = {};  ///< registered device in place of GPUs
  int batch = 1;                        ///< the largest batch
  int frames = 1;                       ///< of each stream in a batch
  int groups = 1;                       ///< data-parallel groups that take the frames of a stream in turn

  [[nodiscard]] server_id leader() const { return device ? device->server : gpus.front().server; }
  [[nodiscard]] bool spans_servers() const;
  friend auto operator<=>(const instance&, const instance&) = default;
  friend bool operator==(const instance&, const instance&) = default;
};

/// Instances in an order that breaks ties.
/// Source  EPARA, sections 3.1 and 3.3; semantics, section 11.
struct deployment {
  std::vector<instance> instances = {};
  friend bool operator==(const deployment&, const deployment&) = default;
};

/// The share of compute and the memory left on a GPU.
struct gpu_room {
  double compute = 1;
  double memory_b = 0;
  friend bool operator==(const gpu_room&, const gpu_room&) = default;
};
class cloud_room {
 public:
  explicit cloud_room(const edge_cloud& cloud);

  /// True if the part of one more such GPU fits; shares may sum to 1 up to rounding.
  [[nodiscard]] bool fits(const gpu_room& r, const service_variant& v) const;
  void take(const instance& i, const service_variant& v);
  /// Closes a GPU, on which nothing fits then.
  void close_gpu(gpu_slot s) { gpus_[first_gpu_[s.server.index()] + static_cast<std::size_t>(s.number)] = {0, 0}; }
  void close_device(gpu_slot s) { devices_[first_device_[s.server.index()] + static_cast<std::size_t>(s.number)] = {0, 0}; }
  [[nodiscard]] const gpu_room& gpu(gpu_slot s) const { return gpus_[first_gpu_[s.server.index()] + static_cast<std::size_t>(s.number)]; }
  [[nodiscard]] const gpu_room& device(gpu_slot s) const {
    return devices_[first_device_[s.server.index()] + static_cast<std::size_t>(s.number)];
  }

 private:
  std::vector<std::size_t> first_gpu_, first_device_;
  std::vector<gpu_room> gpus_, devices_;
};

/// Throws invalid_input for a service without any GPU or device with memory for one of its variants.
void validate_fit(const edge_cloud& cloud, const std::vector<service>& services);

/// Throws invalid_input that names the instance: an unknown service, variant, server, GPU or device; another number or kind of GPUs than
/// the variant's; a repeated GPU; a batch beyond the known times; frames or groups below 1 (or not 1 without streams); an overloaded GPU.
/// Complexity  O(instances + GPUs).
void validate(const deployment& d, const edge_cloud& cloud, const std::vector<service>& services, const any_service_time& times);

/// What cannot be used: absent servers, and GPUs and devices of present servers.
struct cloud_damage {
  std::vector<char> absent;  ///< by server; empty: none is absent
  std::vector<gpu_slot> broken_gpus = {};
  std::vector<gpu_slot> gone_devices = {};

  [[nodiscard]] bool is_absent(server_id s) const { return !absent.empty() && absent[s.index()] != 0; }
};

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/deployment.ipp>
#endif
