// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What becomes of a stream of requests: the judge of handlers and placements.

#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/placement_policy.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/serving_options.hpp>
#include <hetplan/serve/serving_run.hpp>

namespace hetplan::serve {

/// Plays requests through a cloud: each is handled by its server as soon as it is there, from a deployment to begin with.
///
/// Observers are told serving_progress every 2^16 requests that are handled; `stop` ends the run with what there is (stopped).
/// Complexity   see serving_run; a handler's decisions on top.
/// Throws       invalid_input before any work (see validate of each noun), and where a deployment of the policy breaks a rule;
///              invalid_model where a service time is not finite and above 0, or a decision is none.
/// Determinism  same input, same history; a handler's own numbers come from its seed.
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

// A whole serving system: who places, and who handles.

/// Good for one run: policy and handler remember.
struct serving_system {
  std::string name;
  any_placement_policy placement;
  any_request_handler handler;
  parallelism_operators operators = {};  ///< that the policy allocates with
};

/// What a system made of a cloud.
struct served {
  deployment first;  ///< that of the beginning
  service_history history;
};

/// Places services for what is expected in the first `window`, then plays the requests, placing anew every `cycle` if it is above 0.
///
/// @param expected  requests that the first placement knows: of a day before, or (as in the paper's offline mode) those that will come; all
///                  of them within the window.
/// Throws           invalid_input before any work: see serve_requests and validate_fit; a system without policy or handler; options
///                  that say who places, since the system does; more that is expected than the window is long.
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
