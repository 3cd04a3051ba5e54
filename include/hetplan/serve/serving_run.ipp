// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/serving_run.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include <hetplan/core/at_most.hpp>
#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::serve {

namespace detail {
inline constexpr double never_s = std::numeric_limits<double>::infinity();
inline constexpr int most_offloads = 63;
}  // namespace detail

HETPLAN_INLINE serving_run::serving_run(const edge_cloud& cloud, const std::vector<service>& services, any_service_time times,
                                        const request_stream& requests, deployment first, const serving_options& options)
    : cloud_((validate(cloud), &cloud)), services_((validate(services), &services)), times_(times),
      all_((validate(requests, cloud, services), &requests)),
      options_((validate(options.faults, cloud), validate(options, requests), options)), span_s_(shortest_latency(services).value()),
      begin_s_(first_period_s(options, requests, cloud.ring.period)), now_s_(begin_s_), flights_(span_s_),
      instances_(cloud, services, std::move(times)), knowledge_(cloud, options.faults, begin_s_),
      links_(cloud, options.faults, requests, span_s_), tracks_(requests.size()), recorder_(cloud, services, requests, options),
      turns_(turns(options.faults)) {
  damage_ = damage_at_first(options_.faults, cloud);
  for (std::size_t s = 0; s < cloud.size(); ++s) {
    if (damage_.absent[s] != 0) knowledge_.set_absent(server_id(s), true);
  }
  take_over(std::move(first));
  set_clock();
}

HETPLAN_INLINE double serving_run::next_fault_s() const {
  return next_turn_ < turns_.size() ? all_->since_first_s(turns_[next_turn_].at_s) : detail::never_s;
}

HETPLAN_INLINE double serving_run::next_change_s() const {
  const auto& c = options_.changes;
  if (static_cast<std::size_t>(changes_) < c.at.size()) return all_->since_first_s(c.at[static_cast<std::size_t>(changes_)].value());
  if (!(c.cycle.value() > 0) || next_arrival_ == all_->size()) return detail::never_s;
  return static_cast<double>(changes_ + 1) * c.cycle.value();
}

HETPLAN_INLINE void serving_run::set_clock() { clock_s_ = std::min({next_fault_s(), next_change_s(), knowledge_.next_publication_s()}); }

HETPLAN_INLINE void serving_run::play_clock() {
  now_s_ = clock_s_;
  if (static_cast<std::int64_t>(recorder_.history().publications) + changes_ >= options_.most_periods)
    return stop(std::to_string(options_.most_periods) + " publications and changes, the most that are played");
  if (has_come(next_fault_s(), now_s_)) {
    const auto& e = turns_[next_turn_++];
    apply(options_.faults[e.fault], e.ends);
  } else if (has_come(next_change_s(), now_s_)) {
    change_deployment();
  } else {
    publish();
  }
  set_clock();
}

HETPLAN_INLINE bool serving_run::nothing_left() {
  const double until_s = std::min(next_fault_s(), next_change_s());
  for (const auto i : instances_.ids()) touch(i, until_s);
  for (const auto i : instances_.retired()) touch(i, until_s);
  return recorder_.ended() == all_->size();
}

HETPLAN_INLINE void serving_run::skip_idle_periods(double until_s) {
  if (recorder_.ended() != next_arrival_ || !flights_.empty()) return;
  // What is published while nobody asks anything does not change.
  knowledge_.skip_until(std::min({until_s, next_fault_s(), next_change_s()}));
  set_clock();
}

HETPLAN_INLINE void serving_run::publish() {
  auto& history = recorder_.history();
  ++history.publications;
  knowledge_.open_period();
  const auto& all = instances_.holders();
  const bool looks = recorder_.wants_waiting(now_s_);
  std::vector<std::uint32_t> waiting(looks ? cloud_->size() : 0);
  const auto order = all.in_order_of_instances();
  const auto first = [&](std::size_t m) { return all.led(all.holders()[order[m]]).front(); };
  for (std::size_t m = 0; m < order.size(); ++m) {
    if (m + 24 < order.size()) {
      instances_.fetch(first(m + 24));
      knowledge_.fetch(order[m + 24]);
    }
    if (m + 16 < order.size()) instances_[first(m + 16)].fetch();
    if (m + 8 < order.size()) fetch_due(first(m + 8), now_s_);
    const std::size_t n = order[m];
    const auto& h = all.holders()[n];
    if (!is_there(h.server)) continue;
    for (const auto i : all.led(h)) {
      touch(i, now_s_);
      if (looks) waiting[h.server.index()] += static_cast<std::uint32_t>(instances_[i].waiting());
    }
    knowledge_.publish(n, h.server, instances_.state_of(h, now_s_));
  }
  history.events += all.holders().size();
  if (looks) recorder_.waiting(std::move(waiting), now_s_);
}

HETPLAN_INLINE void serving_run::apply(const serving_fault& f, bool ends) {
  const auto s = f.server;
  if (std::holds_alternative<server_fails>(f.what)) {
    if (knowledge_.has_failed(s)) return;
    knowledge_.fail(s);
    for (std::size_t g = 0; g < (*cloud_)[s].gpus.size(); ++g) damage_.broken_gpus.push_back({s, static_cast<int>(g)});
    for (std::size_t d = 0; d < (*cloud_)[s].devices.size(); ++d) damage_.gone_devices.push_back({s, static_cast<int>(d)});
    take_out(instances_.on_server(s));
  } else if (const auto* g = std::get_if<gpu_fails>(&f.what)) {
    damage_.broken_gpus.push_back({s, g->gpu});
    take_out(instances_.on_gpu({s, g->gpu}));
  } else if (const auto* d = std::get_if<device_leaves>(&f.what)) {
    damage_.gone_devices.push_back({s, d->device});
    take_out(instances_.on_device({s, d->device}));
  } else if (const auto* n = std::get_if<device_registers>(&f.what)) {
    if (!knowledge_.has_failed(s)) std::erase(damage_.gone_devices, gpu_slot{s, n->device});
  } else if (std::holds_alternative<ring_cut>(f.what)) {
    knowledge_.set_cut(s, !ends);
  } else if (std::holds_alternative<wrong_state>(f.what)) {
    knowledge_.set_wrong(s, !ends);
  } else if (!std::holds_alternative<slow_link>(f.what)) {  // links know theirs from the beginning
    comers_and_goers_.emplace_back(s, std::holds_alternative<server_joins>(f.what));
  }
}

HETPLAN_INLINE void serving_run::change_deployment() {
  ++changes_;
  for (const auto& [s, joins] : comers_and_goers_) {
    damage_.absent[s.index()] = joins ? 0 : 1;
    knowledge_.set_absent(s, !joins);
  }
  comers_and_goers_.clear();
  const auto back_s = std::exchange(looked_back_s_, now_s_);
  const placement_question q{
      *cloud_, *services_,           times_,  all_->between(seconds(back_s), seconds(now_s_)), seconds(now_s_ - back_s),
      damage_, instances_.present(), changes_};
  take_over(options_.changes.policy.place(q));
}

HETPLAN_INLINE void serving_run::take_over(deployment next) {
  for (const auto i : instances_.change(std::move(next), now_s_, damage_, rings())) retire(i);
  knowledge_.begin_deployment(instances_);
}

HETPLAN_INLINE void serving_run::retire(instance_id i) {
  touch(i, now_s_);
  if (!works(i)) return;
  send_back(i);
  instances_[i].life = instance_life::retired;
}

HETPLAN_INLINE void serving_run::take_out(const std::vector<instance_id>& some) {
  for (const auto i : some) {
    if (instances_[i].life == instance_life::out) continue;
    touch(i, now_s_);
    instances_[i].life = instance_life::out;
    send_back(i);  // first: what has nothing under way takes who waits
    instances_[i].fail(now_s_, ended_);
    touch(i, now_s_);
  }
}

HETPLAN_INLINE void serving_run::send_back(instance_id i) {
  for (const auto number : instances_[i].send_back())
    flights_.push({now_s_, number, flight::to::handler, tracks_.here(number, (*all_)[number].server).value});
}

HETPLAN_INLINE const pending_request* serving_run::next() {
  for (;;) {
    const double arrival_s = next_arrival_ < all_->size() ? all_->arrival_s(next_arrival_) : detail::never_s;
    const double flight_s = flights_.next_s();
    const double request_s = std::min(arrival_s, flight_s);
    if (has_come(clock_s_, request_s)) {
      if (request_s == detail::never_s && nothing_left()) return nullptr;
      if (recorder_.history().result.result == outcome::stopped) return nullptr;
      skip_idle_periods(request_s);
      play_clock();
      continue;
    }
    now_s_ = request_s;
    ++recorder_.history().events;
    const pending_request* r = nullptr;
    if (has_come(flight_s, arrival_s)) {
      r = land(flights_.pop());
    } else {
      const auto number = static_cast<request_number>(next_arrival_++);
      look_ahead();
      recorder_.entered((*all_)[number]);
      r = handle(number, true);
    }
    if (r != nullptr) return r;
  }
}

HETPLAN_INLINE void serving_run::look_ahead() const {
  // Each step needs what the one before it has fetched some arrivals ago.
  const auto& holders = instances_.holders();
  const auto coming = [&](std::size_t in, const auto& look) {
    if (next_arrival_ + in < all_->size()) look((*all_)[next_arrival_ + in]);
  };
  const auto own_of_coming = [&](std::size_t in, const auto& look) {
    coming(in, [&](const request& r) {
      for (const auto i : own(r.server, r.service, standing::local)) look(i, r);
    });
  };
  coming(24, [&](const request& r) { holders.fetch_places(r.server, r.service); });
  coming(18, [&](const request& r) { holders.fetch_ids(r.server, r.service); });
  own_of_coming(12, [&](instance_id i, const request&) { instances_.fetch(i); });
  own_of_coming(8, [&](instance_id i, const request&) { instances_[i].fetch(); });
  own_of_coming(4, [&](instance_id i, const request& r) { fetch_due(i, all_->since_first_s(r.arrival_s)); });
}

HETPLAN_INLINE const pending_request* serving_run::land(const flight& f) {
  if (f.what == flight::to::handler) return handle(f.number);
  const auto& r = (*all_)[f.number];
  if (f.what == flight::to::downlink) {
    flights_.push({links_.receive_s(server_id(f.where), now_s_, size_b(r)), f.number, flight::to::handler, f.where});
    return nullptr;
  }
  const instance_id i(f.where);
  touch(i, now_s_);
  auto& state = instances_[i];
  --state.coming;
  if (state.life != instance_life::works) return handle(f.number);
  state.join(f.number, now_s_, *all_, ended_);
  touch(i, now_s_);
  return nullptr;
}

HETPLAN_INLINE const pending_request* serving_run::handle(request_number number, bool enters) {
  const auto& r = (*all_)[number];
  const auto path = tracks_.path(number, r.server);
  const auto here = path.back();
  if (knowledge_.has_failed(here) || (enters && damage_.is_absent(here))) {
    end(number, request_outcome::lost, now_s_);
    return nullptr;
  }
  pending_ = {
      number, r.service, r.server, here, seconds(now_s_), service_of(r).latency, seconds(deadline_s(number)), service_of(r).is_stream(),
      path};
  return &pending_;
}

HETPLAN_INLINE void serving_run::end(request_number r, request_outcome o, double at_s, double credit, double latency_s) {
  const auto& what = (*all_)[r];
  recorder_.end(r, what, {o, at_s, tracks_.here(r, what.server), tracks_.offloads(r), credit}, latency_s);
  tracks_.end(r);
}

HETPLAN_INLINE void serving_run::carry_out(const pending_request& r, const decision& d) {
  const auto refuse = [&](const std::string& what) {
    throw invalid_model("request_handler: request " + std::to_string(r.number) + " at server \"" + (*cloud_)[r.here].name + "\": " + what);
  };
  switch (d.kind) {
    case decision::what::serve: {
      const auto is_own = [&](standing where) { return std::ranges::count(own(r.here, r.what, where), d.instance) > 0; };
      if (!instances_.has(d.instance) || !works(d.instance) || !std::ranges::any_of(standings, is_own))
        refuse("served by an instance that is none of its own");
      return serve(r, d.instance);
    }
    case decision::what::pass_on: {
      const auto known = d.server.valid() && d.server.index() < cloud_->size();
      if (!known || d.server == r.here || rings().ring_of(d.server) != rings().ring_of(r.here))
        refuse("passed on to no other server of its ring");
      if (r.offloads() >= detail::most_offloads) refuse("passed on more than " + std::to_string(detail::most_offloads) + " times");
      const auto& what = (*all_)[r.number];
      const double at_s = links_.send_s(r.here, d.server, now_s_, size_b(what));
      recorder_.passed_on(r.here, d.server);
      tracks_.go(r.number, what.server, d.server);
      return flights_.push({at_s, r.number, flight::to::downlink, d.server.value});
    }
    case decision::what::turn_down:
      if (d.outcome != request_outcome::timed_out && d.outcome != request_outcome::too_many_offloads &&
          d.outcome != request_outcome::no_resources)
        refuse("turned down as \"" + std::string(to_string(d.outcome)) + "\", which is no refusal");
      return end(r.number, d.outcome, now_s_);
    case decision::what::ask_again:
      if (!(d.at > r.now) || d.at.value() == detail::never_s)
        refuse("to be handled again at " + to_text(d.at.value()) + " s, which is not later");
      return flights_.push({d.at.value(), r.number, flight::to::handler, r.here.value});
  }
}

HETPLAN_INLINE void serving_run::serve(const pending_request& r, instance_id i) {
  auto& state = instances_[i];
  if (state.device >= 0 && !r.is_stream) {
    ++state.coming;
    const double way_s = links_.device_s(state.leader, state.device, size_b((*all_)[r.number]));
    return flights_.push({now_s_ + way_s, r.number, flight::to::device, i.value});
  }
  touch(i, now_s_);
  if (r.is_stream && state.free_rate(now_s_) <= 0)
    throw invalid_model("request_handler: request " + std::to_string(r.number) + ": a stream on an instance without a free rate");
  state.join(r.number, now_s_, *all_, ended_);
  touch(i, now_s_);
}

HETPLAN_INLINE instance_state& serving_run::touch(instance_id i, double until_s) {
  auto& state = instances_[i];
  state.advance(until_s, *all_, ended_);
  if (ended_.empty()) return state;
  for (const auto& e : ended_) fetch(e.number);
  for (const auto& e : ended_) settle(e, state);
  ended_.clear();
  return state;
}

HETPLAN_INLINE void serving_run::settle(const ended_request& e, const instance_state& i) {
  const auto& r = (*all_)[e.number];
  const bool stream = service_of(r).is_stream();
  const double frames = stream ? e.share * static_cast<double>(r.length) : 0;
  if (e.what == ended_request::how::timed_out) return end(e.number, request_outcome::timed_out, e.at_s);
  if (e.what == ended_request::how::failed) return end(e.number, request_outcome::failed, e.at_s, frames);
  if (stream) return end(e.number, e.share >= 1 ? request_outcome::served : request_outcome::in_part, e.at_s, frames);
  const double answer_b = service_of(r).response_size.value();
  double at_s = e.at_s + links_.device_s(i.leader, i.device, answer_b);
  at_s += links_.answer_s(tracks_.here(e.number, r.server), r.server, answer_b, at_s);
  const bool in_time = at_most(at_s, deadline_s(e.number), service_of(r).latency.value());
  end(e.number, in_time ? request_outcome::served : request_outcome::late, at_s, in_time ? 1 : 0, at_s - all_->arrival_s(e.number));
}

HETPLAN_INLINE double serving_run::size_b(const request& r) const {
  const auto& s = service_of(r);
  return s.request_size.value() + s.bytes_per_token.value() * static_cast<double>(r.tokens_in);
}

HETPLAN_INLINE double serving_run::expected_end_s(instance_id i, const pending_request& p, server_id at) {
  touch(i, now_s_);
  const auto& state = instances_[i];
  const auto& r = (*all_)[p.number];
  const double answer_b = service_of(r).response_size.value();
  return state.expected_end_s(now_s_, now_s_ + links_.device_s(state.leader, state.device, size_b(r))) +
         links_.device_s(state.leader, state.device, answer_b) + links_.answer_s(at, r.server, answer_b, now_s_);
}

HETPLAN_INLINE service_history serving_run::finish() {
  recorder_.history().changes = static_cast<std::uint64_t>(changes_);
  return recorder_.take(all_->size());
}

}  // namespace HETPLAN_NAMESPACE::serve
