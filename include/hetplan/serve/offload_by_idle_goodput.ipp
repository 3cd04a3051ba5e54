// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/offload_by_idle_goodput.hpp>

#include <string>

#include <hetplan/core/at_most.hpp>
#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::serve {

HETPLAN_INLINE std::optional<server_id> draw_by_idle_goodput(std::span<const known_server> others, seconds latency, double draw) {
  const auto weight = [&](const known_server& o) {
    const bool begins_in_time = at_most(o.wait.value(), (o.age + latency).value(), latency.value());
    return !begins_in_time || o.idle <= relative_tolerance * o.capacity ? 0 : o.idle;
  };
  double sum = 0;
  for (const auto& o : others) sum += weight(o);
  if (!(sum > 0)) return std::nullopt;
  const double limit = draw * sum;
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
  if (const auto to = draw_by_idle_goodput(here.others(), latency, draw(seed, r.number, r.offloads()))) return decision::pass_on(*to);
  return in_part_or(request_outcome::no_resources, r, here);
}

}  // namespace HETPLAN_NAMESPACE::serve
