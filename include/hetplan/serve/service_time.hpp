// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How long a service computes: the door for service times.

#include <concepts>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/service.hpp>

namespace hetplan::serve {

/// A service as it runs: which one, and as which of its variants.
struct service_run {
  const service& what;
  const service_variant& as;
  service_id id;
  int variant = 0;
};

/// A batch as it begins.
struct batch_load {
  int requests = 1;
  double tokens_in = 0;  ///< of all of them together
};

template <class M>
concept tells_pass = requires(const M& m, const service_run& r, const batch_load& b) {
  { m.pass(r, b) } -> std::same_as<seconds>;  // > 0, finite, pure
};
template <class M>
concept tells_step = requires(const M& m, const service_run& r, int requests) {
  { m.step(r, requests) } -> std::same_as<seconds>;  // > 0, finite, pure; asked of services that generate tokens
};
template <class M>
concept tells_largest_batch = requires(const M& m, const service_run& r) {
  { m.largest_batch(r) } -> std::same_as<int>;  // >= 1; the others are asked for no more
};

/// How long a service computes on the GPUs of a variant: `pass`, one pass over a batch: all of the work, or the prefill of a service that
/// generates tokens; `step`, one token more for each of a batch.
///
/// A batch of n requests with x tokens in and y out takes pass(n, x) + (y - 1) step(n): the pass brings the first token.
/// Neither decreases when the batch grows.
/// Source  EPARA, section 5.2; semantics, section 11 (service times).
template <class M>
concept service_time = tells_pass<M> && tells_step<M> && tells_largest_batch<M>;

template <class M>
consteval bool check_service_time() {
  static_assert(tells_pass<M>,
                "service_time needs: hetplan::seconds pass(const hetplan::serve::service_run&, const hetplan::serve::batch_load&) const");
  static_assert(tells_step<M>, "service_time needs: hetplan::seconds step(const hetplan::serve::service_run&, int requests) const");
  static_assert(tells_largest_batch<M>, "service_time needs: int largest_batch(const hetplan::serve::service_run&) const");
  return service_time<M>;
}

}  // namespace hetplan::serve
