// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/offload_by_idle_goodput.hpp>

#include <string>

#include <hetplan/core/at_most.hpp>
#include <hetplan/core/error.hpp>

namespace hetplan::serve {

namespace detail {

HETPLAN_INLINE bool begins_in_time(const known_server& o, seconds latency) {
  return at_most(o.wait.value(), (o.age + latency).value(), latency.value());
}
HETPLAN_INLINE double idle_in_time(const known_server& o, seconds latency) {
  return begins_in_time(o, latency) && o.idle > relative_tolerance * o.capacity ? o.idle : 0;
}

}  // namespace detail

HETPLAN_INLINE std::optional<server_id> draw_by_idle_goodput(std::span<const known_server> others, seconds latency, bool anyway,
                                                             double draw) {
  const auto sum_of = [&](const auto& weight) {
    double sum = 0;
    for (const auto& o : others) sum += weight(o);
    return sum;
  };
  const auto idle = [&](const known_server& o) { return detail::idle_in_time(o, latency); };
  const auto able = [&](const known_server& o) { return anyway && detail::begins_in_time(o, latency) ? o.whole : 0; };
  const double all_idle = sum_of(idle);
  const auto weight = [&](const known_server& o) { return all_idle > 0 ? idle(o) : able(o); };
  const double limit = draw * (all_idle > 0 ? all_idle : sum_of(able));
  double so_far = 0;
  std::optional<server_id> last;
  for (const auto& o : others) {
    const double w = weight(o);
    if (w <= 0) continue;
    so_far += w;
    last = o.server;
    if (so_far > limit) break;
  }
  return last;
}

HETPLAN_INLINE decision offload_by_idle_goodput::handle(const pending_request& r, const server_view& here) const {
  if (services == nullptr)
    throw invalid_input(
        "offload_by_idle_goodput: services = nothing; expected the services whose requests it handles, such as "
        "offload_by_idle_goodput{&services}");
  if (r.what.index() >= services->size())
    throw invalid_input("offload_by_idle_goodput: services = " + std::to_string(services->size()) +
                        " services, but a request is for service " + std::to_string(r.what.value) +
                        "; expected all services whose requests it handles");
  if (r.timed_out()) return decision::turn_down(request_outcome::timed_out);
  if (const auto i = own_capacity(r, here)) return decision::serve(*i);
  if (r.offloads() >= most_offloads) return in_part_or(request_outcome::too_many_offloads, r, here);
  const auto latency = (*services)[r.what.index()].latency;
  for (int n = 0; n < attempts; ++n) {
    const auto o = here.other_at(draw(seed, r.number, r.offloads(), n));
    if (o && o->into < detail::idle_in_time(o->known, latency)) return decision::pass_on(o->known.server);
  }
  const bool anyway = !r.is_stream || !most_free_rate(here);
  const double last = draw(seed, r.number, r.offloads(), attempts);
  if (const auto to = draw_by_idle_goodput(here.others(), latency, anyway, last)) return decision::pass_on(*to);
  return in_part_or(request_outcome::no_resources, r, here);
}

}  // namespace hetplan::serve
