// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which services stand where, decided from time to time: the door for placement policies.

#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/serve/serving_faults.hpp>

namespace hetplan::serve {

/// What a policy may look at.
struct placement_question {
  const edge_cloud& cloud;
  const std::vector<service>& services;
  const any_service_time& times;
  std::span<const request> requests;  ///< of the time that is looked back at
  seconds window;                     ///< its length
  const cloud_damage& damage;
  const deployment& present;  ///< empty at the beginning
  std::int64_t number = 0;    ///< 0: the first deployment of a run, 1: its first change, ...
};

template <class P>
concept places_services = requires(P& p, const placement_question& q) {
  { p.place(q) } -> std::same_as<deployment>;
};

/// Which services stand where, now and from time to time: asked in the order of time, before the run (`serve_with`) and then every
/// `cycle`, or at the times of `serving_options::changes`. It may remember. Deterministic.
///
/// * What it answers is validated: what does not fit throws `invalid_input`. Instances on what is absent or broken are out from the
///   beginning.
/// * An instance that is in the present deployment, too, goes on; a new one must load its weights first. Leave in place what need not
///   move.
///
/// Ships: `submodular_placement` (EPARA: step by step the instance that serves most; its options are most of the published systems),
/// `complementary_placement` (USHER: as many instances as each server is asked for, what needs compute beside what needs memory),
/// `cache_placement` (what was asked for at each server, last, most or least often), `fixed_placement` (what it was given, in turn),
/// `any_placement_policy` (chosen at run time). The published systems by name, each a policy and a `request_handler`:
/// recipes/serving_systems.hpp.
///
/// Source  EPARA, section 3.3; semantics, section 11 (deployments that change).
template <class P>
concept placement_policy = places_services<P>;

template <class P>
consteval bool check_placement_policy() {
  static_assert(places_services<P>, "placement_policy needs: hetplan::serve::deployment place(const hetplan::serve::placement_question&)");
  return placement_policy<P>;
}

// A placement_policy chosen at run time.

/// Holds any placement_policy; copies share it and what it remembers.
/// Source  ours.
class any_placement_policy {
 public:
  any_placement_policy() = default;
  template <class P>
    requires(!std::same_as<P, any_placement_policy>)
  any_placement_policy(P policy) {
    static_assert(check_placement_policy<P>());
    if constexpr (placement_policy<P>) policy_ = {std::move(policy), {.place = [](void* p, auto... a) { return as<P>(p).place(a...); }}};
  }

  explicit operator bool() const { return bool(policy_); }
  /// Throws invalid_input where it holds none.
  [[nodiscard]] deployment place(const placement_question& q) {
    if (!policy_) throw invalid_input("any_placement_policy: holds no policy; expected one, such as submodular_placement{}");
    return policy_->place(policy_.get(), q);
  }

 private:
  struct calls {
    deployment (*place)(void*, const placement_question&);
  };
  erased<calls> policy_;
};

}  // namespace hetplan::serve
