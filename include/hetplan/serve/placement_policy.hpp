// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placement policies, which decide from time to time which services run where.

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

namespace hetplan::serve {

/// The input of a placement policy.
struct placement_question {
  const edge_cloud& cloud;
  const std::vector<service>& services;
  const any_service_time& times;
  std::span<const request> requests;  ///< of the last window
  seconds window;                     ///< length of the window
  const cloud_damage& damage;
  const deployment& present;  ///< empty at the beginning
  std::int64_t number = 0;    ///< 0: the first deployment of a run, 1: its first change, ...
};

template <class P>
concept places_services = requires(P& p, const placement_question& q) {
  { p.place(q) } -> std::same_as<deployment>;
};

/// Decides which services run where: before the run (`serve_with`), and then every `cycle` or at the times of
/// `serving_options::changes`, in order of time. A policy may have state. Deterministic.
///
/// * The result is validated: a deployment that does not fit throws `invalid_input`. Instances on absent or broken parts are out.
/// * An instance that is also in the present deployment goes on; a new one must load its weights first: move only what must move.
///
/// Ships: `submodular_placement` (EPARA: step by step the instance that serves most; its options cover most published systems),
/// `complementary_placement` (USHER: as many instances as each server needs, compute-heavy beside memory-heavy ones),
/// `cache_placement` (the services last, most or least often requested at each server), `fixed_placement` (given deployments, in
/// turn), `any_placement_policy` (chosen at run time). Published systems, each with a `request_handler`: recipes/serving_systems.hpp.
///
/// Source  EPARA, section 3.3; semantics, section 11 (deployments that change).
template <class P>
concept placement_policy = places_services<P>;

template <class P>
consteval bool check_placement_policy() {
  static_assert(places_services<P>, "placement_policy needs: hetplan::serve::deployment place(const hetplan::serve::placement_question&)");
  return placement_policy<P>;
}

/// A type-erased placement_policy; copies share it and its state.
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
  /// Throws invalid_input if it is empty.
  [[nodiscard]] deployment place(const placement_question& q) {
    if (!policy_) throw invalid_input("any_placement_policy: holds no policy; expected one, such as submodular_placement{}");
    return policy_.call(&calls::place, q);
  }

 private:
  struct calls {
    deployment (*place)(void*, const placement_question&);
  };
  erased<calls> policy_;
};

}  // namespace hetplan::serve
