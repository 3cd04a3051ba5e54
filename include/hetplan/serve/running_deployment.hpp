// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The instances of a run: those of the deployment that holds, and what is left of those before.

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/core/large_pages.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/instance_state.hpp>
#include <hetplan/serve/placement_policy.hpp>
#include <hetplan/serve/ring_sync.hpp>
#include <hetplan/serve/service_demand.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// Ids count over all deployments of a run; an instance that is in the next one keeps its id.
///
/// Complexity  O(instances log instances + servers x services) a change.
/// Source  EPARA, sections 3.3 and 4.2; semantics, section 11 (deployments that change).
class running_deployment {
 public:
  running_deployment(const edge_cloud& cloud, const std::vector<service>& services, any_service_time times);

  [[nodiscard]] instance_state& operator[](instance_id i) { return states_[i.index()]; }
  [[nodiscard]] const instance_state& operator[](instance_id i) const { return states_[i.index()]; }
  /// Fetches an instance into the cache.
  void fetch(instance_id i) const {
    const auto* first = reinterpret_cast<const char*>(&states_[i.index()]);
    for (std::size_t at = 0; at < sizeof(instance_state); at += 64) prefetch(first + at);
  }
  [[nodiscard]] bool has(instance_id i) const { return i.valid() && i.index() < states_.size(); }
  [[nodiscard]] const service_holders& holders() const { return *holders_; }
  [[nodiscard]] const deployment& present() const { return present_; }
  [[nodiscard]] std::span<const instance_id> ids() const { return ids_; }

  /// Instances of deployments before that may still have work under way.
  [[nodiscard]] std::span<const instance_id> retired() const { return retired_ids_; }

  /// The next deployment holds from now on. Throws invalid_input where it breaks a rule. Answers who is in it no more: to be retired.
  [[nodiscard]] std::vector<instance_id> change(deployment next, double now_s, const cloud_damage& damage, const ring_sync& rings);

  /// Instances that a fault takes out.
  [[nodiscard]] std::vector<instance_id> on_server(server_id s) const;
  [[nodiscard]] std::vector<instance_id> on_gpu(gpu_slot g) const;
  [[nodiscard]] std::vector<instance_id> on_device(gpu_slot d) const;

  /// What the instances of each holder can do together, a second.
  [[nodiscard]] std::vector<holder_capacity> capacities() const;
  /// What a holder has to publish; its instances have been advanced to now.
  [[nodiscard]] holder_state state_of(const holder& h, double now_s) const;

 private:
  template <class Is>
  [[nodiscard]] std::vector<instance_id> those(const Is& is) const;
  void forget_idle();
  [[nodiscard]] const instance_times& times_of(const instance& i);
  [[nodiscard]] instance_state make_state(const instance& i, double ready_s);

  const edge_cloud* cloud_;
  const std::vector<service>* services_;
  any_service_time times_;
  deployment present_;
  std::vector<instance_id> ids_;  ///< of present_
  std::vector<instance> retired_;
  std::vector<instance_id> retired_ids_;
  std::vector<instance_state, large_pages<instance_state>> states_;
  std::map<std::array<int, 5>, std::unique_ptr<instance_times>> tables_;  ///< by what of an instance is not its place
  std::optional<service_holders> holders_;
};

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/running_deployment.ipp>
#endif
