// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What becomes of a stream of requests: the judge of handlers and placements.

#include <utility>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/serve/request_handler.hpp>
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

}  // namespace hetplan::serve
