// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which services stand where, decided from time to time: the door for placement policies.

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/any_service_time.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/service.hpp>
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

/// Decides on deployments, in the order of time; it may remember. Deterministic. What it answers is validated; instances on what is absent
/// or broken are out from the beginning.
/// Source  EPARA, section 3.3; semantics, section 11 (deployments that change).
template <class P>
concept placement_policy = places_services<P>;

template <class P>
consteval bool check_placement_policy() {
  static_assert(places_services<P>, "placement_policy needs: hetplan::serve::deployment place(const hetplan::serve::placement_question&)");
  return placement_policy<P>;
}

}  // namespace hetplan::serve
