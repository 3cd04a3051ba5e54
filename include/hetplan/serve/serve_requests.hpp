// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The simulation of a stream of requests under a handler and placements.

#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/serving_options.hpp>
#include <hetplan/serve/serving_run.hpp>

namespace hetplan::serve {

/// Simulates requests on a cloud from an initial deployment on. Each request is handled by its server as soon as it is there.
///
/// Observers get serving_progress every 2^16 handled requests; `stop` ends the run with the history so far (stopped).
/// Complexity   see serving_run, plus the handler's decisions.
/// Throws       invalid_input before any work (validate of each argument), and for a deployment of the policy that breaks a rule;
///              invalid_model for a service time that is not finite and above 0, or an invalid decision.
/// Determinism  the same input gives the same history; random numbers of a handler come from its seed.
/// Source       EPARA, section 5.2 (event-driven simulator); semantics, section 11.
template <request_handler H, observer<serving_progress>... Observers>
[[nodiscard]] service_history serve_requests(const edge_cloud& cloud, const std::vector<service>& services, any_service_time times,
                                             const request_stream& requests, deployment first, H& handler,
                                             const serving_options& options = {}, Observers&&... observers) {
  static_assert(check_request_handler<H>());
  serving_run run(cloud, services, std::move(times), requests, std::move(first), options);
  std::uint64_t handled = 0;
  while (const auto* r = run.next()) {
    run.carry_out(*r, handler.handle(*r, server_view(run, *r)));
    if constexpr (sizeof...(Observers) > 0) {
      if ((++handled & 0xffffU) == 0 && notify(run.progress(), observers...) == control::stop) {
        run.stop("an observer said so");
        break;
      }
    }
  }
  return run.finish();
}

/// A serving system: placement policy and request handler. It has state, so it is good for one run.
struct serving_system {
  std::string name;
  any_placement_policy placement;
  any_request_handler handler;
  parallelism_operators operators = {};  ///< operators of the policy's allocations
};

/// The result of a serving system.
struct served {
  deployment first;  ///< the initial deployment
  service_history history;
};

/// Places services for the requests expected in the first `window`, then simulates the requests, placing anew every `cycle` (0: never).
/// @param expected  requests known to the first placement, within the window: of an earlier day or (the paper's offline mode) the actual
///                  ones.
/// Throws           invalid_input before any work: see serve_requests and validate_fit; a system without policy or handler; options that
///                  define placements, since the system does; expected requests beyond the window.
/// Source           EPARA, sections 3.3 and 3.4.
template <observer<serving_progress>... Observers>
[[nodiscard]] served serve_with(serving_system system, const edge_cloud& cloud, const std::vector<service>& services,
                                any_service_time times, const request_stream& requests, const request_stream& expected, seconds window,
                                seconds cycle = {}, serving_options options = {}, Observers&&... observers) {
  if (options.changes.policy || options.changes.cycle.value() > 0 || !options.changes.at.empty())
    throw invalid_input("serve_with: the options say how deployments change; expected none, since the system " + system.name + " does");
  if (!system.placement || !system.handler)
    throw invalid_input("serve_with: the system \"" + system.name + "\" has no placement policy, or no request handler");
  if (!at_most(expected.span(), window))
    throw invalid_input("serve_with: window = " + to_text(window.value()) + " s; expected at least the " +
                        to_text(expected.span().value()) + " s from the first to the last of the expected requests");
  validate(cloud);
  validate(services);
  validate_fit(cloud, services);
  validate(expected, cloud, services);
  validate(requests, cloud, services);
  validate(options.faults, cloud);
  if (cycle != seconds()) options.changes = {.cycle = cycle, .policy = system.placement};
  validate(options, requests);
  const cloud_damage damage = damage_at_first(options.faults, cloud);
  const deployment nothing;
  const auto first = system.placement.place({cloud, services, times, {expected.begin(), expected.end()}, window, damage, nothing});
  return {first, serve_requests(cloud, services, std::move(times), requests, first, system.handler, options, observers...)};
}

}  // namespace hetplan::serve
