// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which GPUs an instance gets.

#include <optional>
#include <vector>

#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/placement_candidates.hpp>
#include <hetplan/serve/placement_policy.hpp>
#include <hetplan/serve/ring_sync.hpp>

namespace hetplan::serve {

/// Which of the GPUs that have room: the fullest, or that which an instance leaves the most even in compute and memory.
enum class gpu_fit { best, most_even };

/// Finds GPUs for one instance after the other, in what the instances before have left.
///
/// Complexity  O(GPUs of the server, or of the ring).
/// Source  EPARA, section 3.3: on a server GPUs are found as hosts are for virtual machines. Here: best fit, the GPU with the least compute
///         left that is enough, then the least memory, then the smallest number; so whole GPUs stay for those that need several.
class gpu_choice {
 public:
  gpu_choice(const edge_cloud& cloud, const std::vector<service>& services, const cloud_damage& damage, const deployment& present,
             gpu_fit fit = gpu_fit::best);
  // A temporary is gone at the end of the line; the other two are read here.
  gpu_choice(const edge_cloud&& the_cloud_must_outlive_it, const std::vector<service>&, const cloud_damage&, const deployment&,
             gpu_fit = gpu_fit::best) = delete;
  gpu_choice(const edge_cloud&, const std::vector<service>&& the_services_must_outlive_it, const cloud_damage&, const deployment&,
             gpu_fit = gpu_fit::best) = delete;

  /// On GPUs of one server, or on one of its devices; none where there are not enough.
  [[nodiscard]] std::optional<instance> on_server(const placement_candidate& c, const allocation& a, const gpu& unit) const {
    return c.site == placement_site::device ? on_device(c.server, a, unit) : on_gpus(c.server, a, unit);
  }
  /// On GPUs of a ring, those of the leader and the nearest ones first.
  [[nodiscard]] std::optional<instance> across(server_id leader, ring_sync::ring ring, const allocation& a, const gpu& unit) const;
  /// Takes the instance's room. One that stands like this in the present deployment is taken as that one, and keeps its weights.
  void take(const instance& i, const allocation& a);

 private:
  struct fitting_gpu {
    gpu_slot slot;
    gpu_room left;
  };
  [[nodiscard]] std::optional<instance> on_gpus(server_id s, const allocation& a, const gpu& unit) const;
  [[nodiscard]] std::optional<instance> on_device(server_id s, const allocation& a, const gpu& unit) const;
  [[nodiscard]] const service_variant& variant(const allocation& a) const;
  [[nodiscard]] bool is_free(const gpu_room& left, const allocation& a, const gpu& unit) const;
  /// GPUs of a server that an instance could have, best fit first.
  [[nodiscard]] std::vector<gpu_slot> fitting(server_id s, const allocation& a, const gpu& unit) const;
  /// An instance of the present deployment that is the same but for its place, and whose place is free.
  [[nodiscard]] const instance* standing(server_id leader, const allocation& a, const gpu& unit, placement_site where) const;

  const edge_cloud* cloud_;
  const std::vector<service>* services_;
  cloud_room room_;
  gpu_fit fit_;
  std::vector<std::vector<instance>> present_;  ///< by leader: those not taken yet
};

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/gpu_choice.ipp>
#endif
