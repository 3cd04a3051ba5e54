// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The network sharing that a network policy makes: fluids in tiers, max-min fair inside a tier.

#include <cstdint>
#include <span>
#include <vector>

#include <hetplan/problem/network_sharing.hpp>
#include <hetplan/simulate/fluid.hpp>
#include <hetplan/simulate/network_policy.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace HETPLAN_NAMESPACE {

/// A fluid_network whose tiers are the policy's. Refers to the policy.
template <network_policy Policy>
class fluid_sharing {
 public:
  /// @param tells_all  update tells every changed rate, those of very many equal transfers too, which costs their number.
  fluid_sharing(const network& net, const Policy& policy, bool tells_all = true)
      : policy_(policy), access_(checked_access(policy.access(), "network policy")), fluid_(net.resources()) {
    if (access_ == route_access::unlimited) fluid_.stop_sharing();
    if (tells_all) fluid_.report_crowds();
  }

  [[nodiscard]] route_access access() const { return access_; }
  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    if (flow_of_.size() <= number) flow_of_.resize(number + 1);
    flow_of_[number] = fluid_.start(now_s, t.volume_bytes, route, policy_.tier(t), number);
  }
  void set_capacity(std::size_t r, double capacity) { fluid_.set_capacity(r, capacity); }
  template <class Changed>
  void update(double now_s, Changed&& changed) {
    fluid_.update(now_s, changed);
  }
  [[nodiscard]] double next_end() { return fluid_.next_end(); }
  template <class Finished>
  void finish_until(double time_s, Finished&& finished) {
    fluid_.finish_until(time_s, finished);
  }
  /// Bytes that a transfer under way has not moved by now.
  [[nodiscard]] double left(std::uint32_t number, double now_s) const { return fluid_.left(flow_of_[number], now_s); }

 private:
  const Policy& policy_;
  route_access access_;
  fluid_network fluid_;
  std::vector<fluid_network::flow_id> flow_of_;  ///< by number, of those under way
};

static_assert(check_network_sharing<fluid_sharing<fair_share>>());

}  // namespace HETPLAN_NAMESPACE
