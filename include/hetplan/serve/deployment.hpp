// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for which services stand where.

#include <compare>
#include <optional>
#include <vector>

#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// A GPU of a server, by number; or a device that is registered with it, by number.
struct gpu_slot {
  server_id server;
  int number = 0;
  friend auto operator<=>(const gpu_slot&, const gpu_slot&) = default;
};

/// A service that is ready to run, with the operators that EPARA configures: BS is `batch`, MF `frames`, DP `groups`; MP is the
/// variant's, and MT as many instances as share a GPU.
struct instance {
  service_id what;
  int variant = 0;
  std::vector<gpu_slot> gpus = {};      ///< as many as the variant asks for, times groups; the first one's server leads
  std::optional<gpu_slot> device = {};  ///< or it is on a registered device
  int batch = 1;                        ///< the largest
  int frames = 1;                       ///< of each stream in a batch
  int groups = 1;                       ///< data-parallel groups among which the frames of a stream take turns

  [[nodiscard]] server_id leader() const { return device ? device->server : gpus.front().server; }
  [[nodiscard]] bool spans_servers() const;
  friend auto operator<=>(const instance&, const instance&) = default;
  friend bool operator==(const instance&, const instance&) = default;
};

/// Instances in an order that settles ties.
///
/// Source  EPARA, sections 3.1 and 3.3; semantics, section 11.
struct deployment {
  std::vector<instance> instances = {};
  friend bool operator==(const deployment&, const deployment&) = default;
};

/// What is left on every GPU of a cloud beside a deployment.
struct gpu_room {
  double compute = 1;
  double memory_b = 0;
  friend bool operator==(const gpu_room&, const gpu_room&) = default;
};
class cloud_room {
 public:
  explicit cloud_room(const edge_cloud& cloud);

  /// Does one more such GPU's part fit? Shares that add up to 1 but for rounding do.
  [[nodiscard]] bool fits(const gpu_room& r, const service_variant& v) const;
  void take(const instance& i, const service_variant& v);
  /// Nothing fits there any more.
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

/// Throws invalid_input where a service fits nowhere: of none of its variants there is a GPU or device with enough memory.
void validate_fit(const edge_cloud& cloud, const std::vector<service>& services);

/// Throws invalid_input, which names the instance: a service, variant, server, GPU or device that is not there, another number or kind of
/// GPUs than the variant's, a GPU twice, a batch larger than its times are known for, frames or groups below 1 (or not 1 where nothing
/// streams), or a GPU that is given more than it has.
/// Complexity  O(instances + GPUs).
void validate(const deployment& d, const edge_cloud& cloud, const std::vector<service>& services, const any_service_time& times);

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/deployment.ipp>
#endif
