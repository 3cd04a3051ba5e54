// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a server can do with a request itself: the step that handlers share.

#include <optional>

#include <hetplan/serve/request_handler.hpp>

namespace hetplan::serve {

/// The instance that a server serves a request with, if its own capacity is enough: the soonest of those whose answer is expected within
/// the SLO (for a stream: with the most free rate, and all that it wants), first among those on its own GPUs, then among those that span
/// servers, then among registered devices. Complexity  O(its instances of the service). Determinism  on a tie the first of the deployment.
/// Source  EPARA, section 3.2 and figure 6; semantics, section 11 (handling, step 2).
[[nodiscard]] std::optional<instance_id> own_capacity(const pending_request& r, const server_view& here);

/// The instance with the most free rate, if any has some: where a stream that nobody else takes is served in part.
[[nodiscard]] std::optional<instance_id> most_free_rate(const server_view& here);

/// Turned down; but a stream is served in part where there is some rate.
[[nodiscard]] decision in_part_or(request_outcome refusal, const pending_request& r, const server_view& here);

/// A request_handler that passes nothing on: AlpaServe, and every system that plans for one place.
struct serve_locally {
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here) const;
};
static_assert(check_request_handler<serve_locally>());

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/handle_locally.ipp>
#endif
