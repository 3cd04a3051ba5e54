// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/request_handlers.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace hetplan::serve {

HETPLAN_INLINE std::optional<seconds> server_view::expected_end_at(server_id s) const {
  std::optional<seconds> soonest;
  for (const auto where : standings) {
    for (const auto i : run_->own(s, request_->what, where)) {
      if (!works(i)) continue;
      const seconds end(run_->expected_end_s(i, *request_, s));
      if (!soonest || end < *soonest) soonest = end;
    }
  }
  return soonest;
}

HETPLAN_INLINE double server_view::free_rate_at(server_id s) const {
  double most = 0;
  for (const auto where : standings) {
    for (const auto i : run_->own(s, request_->what, where)) {
      if (works(i)) most = std::max(most, free_rate(i));
    }
  }
  return most;
}

namespace detail {

/// Returns the first instance with the most free rate, to one part in 10^9, that `takes` accepts; invalid if there is none.
template <class Takes>
instance_id with_most_free_rate(std::span<const standing> places, const server_view& here, const Takes& takes) {
  double most = 0;
  const auto each = [&](const auto& f) {
    for (const auto where : places) {
      for (const auto i : here.own(where)) {
        if (here.works(i) && takes(i)) f(i, here.free_rate(i));
      }
    }
  };
  each([&](instance_id, double rate) { most = std::max(most, rate); });
  instance_id first;
  each([&](instance_id i, double rate) {
    if (!first.valid() && rate > 0 && at_most(most, rate)) first = i;
  });
  return first;
}

/// Returns the first instance with the earliest answer in time; invalid if there is none.
HETPLAN_INLINE instance_id soonest(standing where, const pending_request& r, const server_view& here) {
  instance_id best;
  seconds best_end;
  for (const auto i : here.own(where)) {
    if (!here.works(i)) continue;
    const auto end = here.expected_end(i);
    if (!r.in_time(end) || (best.valid() && at_most(best_end.value(), end.value(), r.latency.value()))) continue;
    best = i;
    best_end = end;
  }
  return best;
}

}  // namespace detail

HETPLAN_INLINE std::optional<instance_id> own_capacity(const pending_request& r, const server_view& here) {
  const auto whole = [&](instance_id i) { return here.has_whole_rate(i); };
  for (const auto where : standings) {
    const auto best = r.is_stream ? detail::with_most_free_rate({&where, 1}, here, whole) : detail::soonest(where, r, here);
    if (best.valid()) return best;
  }
  return std::nullopt;
}

HETPLAN_INLINE std::optional<instance_id> most_free_rate(const server_view& here) {
  const auto i = detail::with_most_free_rate(standings, here, [](instance_id) { return true; });
  return i.valid() ? std::optional(i) : std::nullopt;
}

HETPLAN_INLINE decision in_part_or(request_outcome refusal, const pending_request& r, const server_view& here) {
  if (r.is_stream) {
    if (const auto i = most_free_rate(here)) return decision::serve(*i);
  }
  return decision::turn_down(refusal);
}

HETPLAN_INLINE decision serve_locally::handle(const pending_request& r, const server_view& here) const {
  if (r.timed_out()) return decision::turn_down(request_outcome::timed_out);
  if (const auto i = own_capacity(r, here)) return decision::serve(*i);
  return in_part_or(request_outcome::no_resources, r, here);
}

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

HETPLAN_INLINE decision pass_on_in_turn::handle(const pending_request& r, const server_view& here) {
  if (r.timed_out()) return decision::turn_down(request_outcome::timed_out);
  if (const auto i = own_capacity(r, here)) return decision::serve(*i);
  if (r.offloads() >= most_offloads_) return in_part_or(request_outcome::too_many_offloads, r, here);
  const auto others = here.others();
  if (others.empty()) return in_part_or(request_outcome::no_resources, r, here);
  if (turn_.size() <= r.here.index()) turn_.resize(r.here.index() + 1);
  return decision::pass_on(others[turn_[r.here.index()]++ % others.size()].server);
}

HETPLAN_INLINE central_handler::central_handler(seconds pair_time, int group) : pair_time_(pair_time), group_(group) {
  if (!std::isfinite(pair_time.value()) || pair_time.value() < 0)
    throw invalid_input("central_handler: pair_time = " + to_text(pair_time.value()) + " s; expected a finite time >= 0");
  if (group < 1) throw invalid_input("central_handler: group = " + std::to_string(group) + "; expected >= 1");
}

HETPLAN_INLINE decision central_handler::handle(const pending_request& r, const server_view& here) {
  if (r.timed_out()) return decision::turn_down(request_outcome::timed_out);
  if (r.offloads() > 0) {  // the scheduler sent it here
    if (const auto i = own_capacity(r, here)) return decision::serve(*i);
    return in_part_or(request_outcome::no_resources, r, here);
  }
  const auto ring = group_of(r, here);
  const seconds takes = pair_time_ * (static_cast<double>(ring.count) * static_cast<double>(ring.count));
  if (takes.value() > 0 && under_way_.insert(r.number).second) {
    const auto key = static_cast<std::size_t>(ring.first);
    if (round_end_.size() <= key) round_end_.resize(key + 1);
    // Requests that come during a round are decided in the next one.
    auto& end = round_end_[key];
    const auto has_come = [&](seconds at) { return at_most(at.value(), r.now.value(), takes.value()); };
    if (has_come(end)) {
      end = r.now + takes;
    } else if (has_come(end - takes)) {
      end += takes;
    }
    return decision::ask_again(end);
  }
  under_way_.erase(r.number);
  return decide(r, here);
}

HETPLAN_INLINE ring_sync::ring central_handler::group_of(const pending_request& r, const server_view& here) const {
  const auto ring = here.ring();
  const std::int32_t before = (r.here.value - ring.first) / group_ * group_;
  return {ring.first + before, std::min(group_, ring.count - before)};
}

HETPLAN_INLINE decision central_handler::decide(const pending_request& r, const server_view& here) const {
  const auto ring = group_of(r, here);
  std::optional<server_id> best;
  seconds best_end;
  double best_rate = 0;
  for (std::int32_t n = 0; n < ring.count; ++n) {
    const server_id s(ring.first + n);
    if (r.is_stream) {
      const double rate = here.free_rate_at(s);
      if (at_most(rate, best_rate)) continue;
      best_rate = rate;
      best = s;
    } else {
      const auto end = here.expected_end_at(s);
      if (!end || !r.in_time(*end) || (best && at_most(best_end.value(), end->value(), r.latency.value()))) continue;
      best_end = *end;
      best = s;
    }
  }
  if (!best) return decision::turn_down(request_outcome::no_resources);
  if (*best != r.here) return decision::pass_on(*best);
  if (const auto i = own_capacity(r, here)) return decision::serve(*i);
  return in_part_or(request_outcome::no_resources, r, here);
}

}  // namespace hetplan::serve
