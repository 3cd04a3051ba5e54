// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who serves a request, decided where it is: the door for handlers.

#include <concepts>

#include <hetplan/serve/pending_request.hpp>
#include <hetplan/serve/server_view.hpp>

namespace HETPLAN_NAMESPACE::serve {

template <class H>
concept handles_requests = requires(H& h, const pending_request& r, const server_view& here) {
  { h.handle(r, here) } -> std::same_as<decision>;
};

/// Decides about one request after the other, in the order of time. It may remember what it was shown; nothing else must enter into its
/// answer, so that the same run ends the same.
///
/// The run refuses (invalid_model) an instance that is not one of the server's own for the service or does not work, the server itself or
/// one outside its ring, an ask_again that is not later than now, a request that is passed on more than 63 times, and an outcome that is
/// none of a refusal.
/// Source  EPARA, section 3.2; semantics, section 11 (handling).
template <class H>
concept request_handler = handles_requests<H>;

template <class H>
consteval bool check_request_handler() {
  static_assert(handles_requests<H>,
                "request_handler needs: hetplan::serve::decision handle(const hetplan::serve::pending_request&, const "
                "hetplan::serve::server_view& here)");
  return request_handler<H>;
}

}  // namespace HETPLAN_NAMESPACE::serve
