// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What could be placed: every service on every server, and across the servers of a ring.

#include <cstddef>
#include <optional>
#include <vector>

#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/placement_policy.hpp>
#include <hetplan/serve/ring_sync.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// Where an instance may stand.
enum class placement_site { gpus, device, across };

/// A service on GPUs of one kind of a server, on a device of it, or across its ring (then a server leads, or any if none is named).
struct placement_candidate {
  std::size_t ring = 0;
  service_id what;
  server_id server;
  placement_site site = placement_site::gpus;
  std::size_t pool = 0;
};

/// The candidates, with an allocation for each service and pool of GPUs. Equal pools share theirs; what answers nobody in time is none.
///
/// Complexity  O(pools of different kinds x services) allocations, O(GPUs) else.
/// Source  EPARA, section 3.3, algorithm 1 (X and its logical server).
class placement_candidates {
 public:
  placement_candidates(const edge_cloud& cloud, const std::vector<service>& services, const any_service_time& times,
                       const parallelism_operators& operators);
  // A temporary is gone at the end of the line.
  placement_candidates(const edge_cloud&, const std::vector<service>&& the_services_must_outlive_it, const any_service_time&,
                       const parallelism_operators&) = delete;

  [[nodiscard]] std::size_t rings() const { return rings_.rings(); }
  [[nodiscard]] ring_sync::ring ring(std::size_t r) const { return rings_[r]; }
  [[nodiscard]] std::size_t services() const { return services_; }
  [[nodiscard]] const gpu_pool& pool(std::size_t p) const { return pools_[p].what; }
  /// None where the service does not run on such GPUs.
  [[nodiscard]] const allocation* allocated(std::size_t pool, service_id l) const {
    const auto& a = pools_[pool].allocations[l.index()];
    return a ? &*a : nullptr;
  }
  /// Of one server and service: its GPUs before its devices.
  [[nodiscard]] std::vector<placement_candidate> at(server_id s, service_id l) const;
  /// Of one ring and service: on servers; or across the ring.
  [[nodiscard]] std::vector<placement_candidate> within(std::size_t ring, service_id l) const;
  [[nodiscard]] std::vector<placement_candidate> across(std::size_t ring, service_id l) const;
  /// Every allocation that some candidate has.
  [[nodiscard]] std::vector<const allocation*> all() const;

 private:
  struct pool_entry {
    gpu_pool what;
    std::vector<std::optional<allocation>> allocations;  ///< by service
  };
  struct place {
    std::size_t pool;
    placement_site site;
  };
  [[nodiscard]] std::size_t pool_of(const gpu_pool& p);

  const std::vector<service>* of_;
  std::size_t services_;
  ring_sync rings_;
  std::vector<pool_entry> pools_;
  std::vector<std::vector<place>> on_server_;
  std::vector<std::vector<place>> in_ring_;
};

// Which GPUs an instance gets.

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
#include <hetplan/serve/placement_candidates.ipp>
#endif
