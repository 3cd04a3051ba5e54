// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/serving_run.hpp>

#include <cmath>
#include <iterator>
#include <variant>

namespace hetplan::serve {

namespace detail {

HETPLAN_INLINE bool is_broken(const instance& i, const cloud_damage& damage) {
  const auto gone = [&](const gpu_slot& g, const std::vector<gpu_slot>& among) {
    return damage.is_absent(g.server) || std::ranges::find(among, g) != among.end();
  };
  if (i.device) return gone(*i.device, damage.gone_devices);
  return std::ranges::any_of(i.gpus, [&](const gpu_slot& g) { return gone(g, damage.broken_gpus); });
}

}  // namespace detail

HETPLAN_INLINE running_deployment::running_deployment(const edge_cloud& cloud, const std::vector<service>& services, any_service_time times)
    : cloud_(&cloud), services_(&services), times_(std::move(times)) {}

HETPLAN_INLINE instance_state running_deployment::make_state(const instance& i, double ready_s) {
  const auto& s = (*services_)[i.what.index()];
  auto& table = tables_[{i.what.value, i.variant, i.batch, i.frames, i.groups}];
  if (!table) table = std::make_unique<instance_times>(times_, *services_, i);
  const auto& times = *table;
  const auto work = [&]() -> decltype(instance_state::work) {
    if (s.is_stream()) return stream_set(times, s.rate, ready_s);
    if (s.batches == batching::continuous) return running_set(times, ready_s);
    return batch_queue(times, ready_s);
  };
  return {work(), ready_s, i.leader(), i.device ? i.device->number : -1};
}

HETPLAN_INLINE std::vector<instance_id> running_deployment::change(deployment next, double now_s, const cloud_damage& damage,
                                                                   const ring_sync& rings) {
  validate(next, *cloud_, *services_, times_);
  std::map<instance, std::vector<instance_id>> before;  // identical instances share an entry
  for (std::size_t k = ids_.size(); k > 0; --k) {
    if ((*this)[ids_[k - 1]].life != instance_life::out) before[present_.instances[k - 1]].push_back(ids_[k - 1]);
  }

  const bool first = !holders_;
  std::vector<instance_id> ids;
  ids.reserve(next.instances.size());
  for (const auto& i : next.instances) {
    if (const auto same = before.find(i); same != before.end() && !same->second.empty()) {
      ids.push_back(same->second.back());
      same->second.pop_back();
      continue;
    }
    const auto load = (*cloud_)[i.leader()].load_bandwidth;
    const double load_s = first || !load ? 0 : (*services_)[i.what.index()].weights.value() / load->value();
    ids.emplace_back(states_.size());
    states_.push_back(make_state(i, now_s + load_s));
    if (detail::is_broken(i, damage)) states_.back().life = instance_life::out;
  }
  forget_idle();
  std::vector<instance_id> left;
  for (const auto& [spec, some] : before) {
    for (const auto id : some) {
      left.push_back(id);
      retired_.push_back(spec);
      retired_ids_.push_back(id);
    }
  }
  std::ranges::sort(left);

  present_ = std::move(next);
  ids_ = std::move(ids);
  holders_.emplace(present_, ids_, cloud_->size(), services_->size(), rings);
  return left;
}

HETPLAN_INLINE void running_deployment::forget_idle() {
  std::size_t kept = 0;
  for (std::size_t k = 0; k < retired_.size(); ++k) {
    if (!(*this)[retired_ids_[k]].busy()) continue;
    if (kept != k) retired_[kept] = std::move(retired_[k]);  // a self-move would clear its GPUs
    retired_ids_[kept++] = retired_ids_[k];
  }
  retired_.resize(kept);
  retired_ids_.resize(kept);
}

template <class Is>
std::vector<instance_id> running_deployment::those(const Is& is) const {
  std::vector<instance_id> found;
  for (std::size_t k = 0; k < ids_.size(); ++k) {
    if (is(present_.instances[k])) found.push_back(ids_[k]);
  }
  for (std::size_t k = 0; k < retired_.size(); ++k) {
    if (is(retired_[k])) found.push_back(retired_ids_[k]);
  }
  return found;
}

HETPLAN_INLINE std::vector<holder_capacity> running_deployment::capacities() const {
  // Throughput is averaged over so many batches, or SLOs if they are longer: a shorter mean shows which batch has just ended.
  constexpr double batches = 4;
  std::vector<holder_capacity> sums;
  sums.reserve(holders_->holders().size());
  for (const auto& h : holders_->holders()) {
    holder_capacity sum;
    double at_a_time = 0;
    for (const auto i : holders_->led(h)) {
      const auto& times = (*this)[i].times();
      sum.per_s += times.capacity();
      at_a_time += times.typical_batch();
    }
    const auto& s = (*services_)[h.what.index()];
    if (!s.is_stream()) sum.horizon_s = batches * std::max(at_a_time / sum.per_s, s.latency.value());
    sums.push_back(sum);
  }
  return sums;
}

HETPLAN_INLINE holder_state running_deployment::state_of(const holder& h, double now_s) const {
  holder_state p{.wait_s = std::numeric_limits<double>::infinity()};
  for (const auto i : holders_->led(h)) {
    const auto& state = (*this)[i];
    p.done += state.done();
    p.rate += state.rate();
    if (state.life != instance_life::works) continue;
    p.wait_s = std::min(p.wait_s, std::max(0.0, state.expected_start_s(now_s, now_s) - now_s));
    if (at_most(state.ready_s, now_s, state.times().latency_s())) p.capacity += state.times().capacity();
  }
  return p;
}

HETPLAN_INLINE server_links::server_links(const edge_cloud& cloud, const std::vector<serving_fault>& faults, const request_stream& clock,
                                          double span_s)
    : cloud_(&cloud), span_s_(span_s) {
  links_.reserve(cloud.size());
  for (const auto& s : cloud.servers) links_.push_back({s.uplink.value(), s.downlink.value(), s.latency.value()});
  for (const auto& f : faults) {
    const auto* slow = std::get_if<slow_link>(&f.what);
    if (slow == nullptr) continue;
    auto& l = links_[f.server.index()];
    if (l.slow < 0) {
      l.slow = static_cast<std::int32_t>(slow_.size());
      slow_.emplace_back();
    }
    slow_[static_cast<std::size_t>(l.slow)].push_back(
        {clock.since_first_s(f.at.value()), clock.since_first_s(slow->until.value()), slow->factor});
  }
}

HETPLAN_INLINE double server_links::factor(const link& l, double at_s) const {
  double f = 1;
  if (l.slow < 0) return f;
  for (const auto& t : slow_[static_cast<std::size_t>(l.slow)]) {
    if (at_most(t.from_s, at_s, span_s_) && !at_most(t.until_s, at_s, span_s_)) f *= t.factor;
  }
  return f;
}

HETPLAN_INLINE double server_links::send_s(server_id from, server_id to, double now_s, double size_b) {
  auto& l = links_[from.index()];
  const double begin_s = std::max(now_s, l.up_free_s);
  l.up_free_s = begin_s + size_b / (l.up * factor(l, begin_s));
  return l.up_free_s + l.latency_s + links_[to.index()].latency_s;
}

HETPLAN_INLINE double server_links::receive_s(server_id to, double now_s, double size_b) {
  auto& l = links_[to.index()];
  const double begin_s = std::max(now_s, l.down_free_s);
  l.down_free_s = begin_s + size_b / (l.down * factor(l, begin_s));
  return l.down_free_s;
}

HETPLAN_INLINE double server_links::answer_s(server_id from, server_id to, double size_b, double at_s) const {
  if (from == to) return 0;
  const auto& a = links_[from.index()];
  const auto& b = links_[to.index()];
  return a.latency_s + b.latency_s + size_b / std::min(a.up * factor(a, at_s), b.down * factor(b, at_s));
}

HETPLAN_INLINE ring_knowledge::ring_knowledge(const edge_cloud& cloud, const std::vector<serving_fault>& faults, double first_s)
    : rings_(cloud), period_s_(cloud.ring.period.value()), first_s_(first_s),
      kept_(faults.empty() ? rings_.history_when_whole() : rings_.history()), failed_from_(cloud.size(), -1), wrong_(cloud.size()) {}

HETPLAN_INLINE void ring_knowledge::begin_deployment(const running_deployment& d) {
  auto capacities = d.capacities();
  capacity_up_to_.resize(capacities.size());
  const auto& all = d.holders();
  double sum = 0;
  for (std::size_t n = 0; n < capacities.size(); ++n) {
    const auto& h = all.holders()[n];
    const bool goes_on =
        n > 0 && h.what == all.holders()[n - 1].what && rings_.ring_of(h.server) == rings_.ring_of(all.holders()[n - 1].server);
    sum = (goes_on ? sum : 0) + capacities[n].per_s;
    capacity_up_to_[n] = sum;
  }
  published_.emplace(std::move(capacities), next_, kept_, period_s_);
}

HETPLAN_INLINE void ring_knowledge::open_period() { published_->open(next_++); }

HETPLAN_INLINE void ring_knowledge::skip_until(double next_s) {
  const double periods = (next_s - first_s_) / period_s_ - static_cast<double>(rings_.history() + 2);
  if (periods > static_cast<double>(next_) && periods < 0x1p60) next_ = static_cast<std::int64_t>(periods);
}

HETPLAN_INLINE void ring_knowledge::fail(server_id s) {
  failed_from_[s.index()] = next_;
  any_failed_ = true;
  rings_.set_out(s, true, next_);
}

HETPLAN_INLINE std::span<const known_server> ring_knowledge::known(const pending_request& r, const service_holders& holders) {
  known_.clear();
  if (!rings_.is_in(r.here, next_ - 1)) return known_;
  const auto all = holders.holders(rings_.ring_of(r.here), r.what);
  const auto behind = std::ranges::upper_bound(all, r.here, {}, &holder::server);
  // Two rounds: the first prefetches distant parts of a large table at once, the second reads them.
  seen_.clear();
  const auto look_at = [&](std::span<const holder> some) {
    for (const auto& h : some) {
      const auto j = period_heard_of(r, h);
      if (!j) continue;
      const auto number = holders.number(h);
      published_->fetch(number, *j);
      seen_.emplace_back(h.server, number, *j);
    }
  };
  look_at({behind, all.end()});
  look_at({all.begin(), behind});
  for (const auto& h : seen_) known_.push_back(what_is_known(h.server, h.number, h.period));
  return known_;
}

HETPLAN_INLINE std::optional<server_at_share> ring_knowledge::at_share(const pending_request& r, const service_holders& holders,
                                                                       double share) const {
  const auto all = holders.holders(rings_.ring_of(r.here), r.what);
  if (all.empty() || !rings_.is_in(r.here, next_ - 1)) return std::nullopt;
  const auto first = capacity_up_to_.begin() + static_cast<std::ptrdiff_t>(holders.number(all.front()));
  const auto last = first + static_cast<std::ptrdiff_t>(all.size()) - 1;
  const double at = share * *last;
  const auto there = std::upper_bound(first, last, at);
  const auto& h = all[static_cast<std::size_t>(there - first)];
  const auto period = period_heard_of(r, h);
  if (!period) return std::nullopt;
  return server_at_share{what_is_known(h.server, holders.number(h), *period), at - (there == first ? 0 : *std::prev(there))};
}

HETPLAN_INLINE std::optional<std::int64_t> ring_knowledge::period_heard_of(const pending_request& r, const holder& h) const {
  if (std::ranges::find(r.path, h.server) != r.path.end()) return std::nullopt;
  if (has_failed(h.server)) {
    const auto from = failed_from_[h.server.index()];
    const auto d = rings_.distance(r.here, h.server, std::max<std::int64_t>(0, from - 1));
    if (d && next_ - 1 >= from + *d) return std::nullopt;
  }
  return rings_.known_period(r.here, h.server, next_ - 1);
}

HETPLAN_INLINE known_server ring_knowledge::what_is_known(server_id s, std::size_t holder, std::int64_t period) const {
  const auto known = published_->known(holder, period, next_ - 1);
  return {s, known.whole, known.capacity, known.idle, seconds(known.wait_s), seconds(known.age_s)};
}

HETPLAN_INLINE history_recorder::history_recorder(const edge_cloud& cloud, const std::vector<service>& services, const request_stream& all,
                                                  const serving_options& o)
    : services_(&services), all_(&all), span_s_(all.span().value()), has_ended_(all.size()), detailed_(cloud.size() <= most_detailed) {
  bin_s_ = o.bin.value() > 0 ? o.bin.value() : std::max(span_s_ / 100, 1e-9);
  history_.bin = seconds(bin_s_);
  history_.begin = all.first_arrival();
  history_.services.resize(services.size());
  history_.servers.resize(cloud.size());
  history_.offloads.resize(8);
  history_.offered.reserve(static_cast<std::size_t>(span_s_ / bin_s_) + 2);
  if (detailed_) by_server_.resize(cloud.size() * services.size());
  if (o.detail == history_detail::records) history_.records.resize(all.size());
}

HETPLAN_INLINE std::size_t history_recorder::bin_of(double time_s) const {
  const double whole = std::floor(std::min(time_s / bin_s_, 1e15));
  return static_cast<std::size_t>(at_most((whole + 1) * bin_s_, time_s) ? whole + 1 : whole);
}

HETPLAN_INLINE void history_recorder::end(request_number r, const request& what, const request_record& how, double latency_s) {
  auto& totals = history_.services[what.service.index()];
  ++totals.ended[static_cast<std::size_t>(how.outcome)];
  totals.asked += asked(what);
  totals.credit += how.credit;
  if (latency_s >= 0) {
    const auto& s = (*services_)[what.service.index()];
    totals.latency.add(latency_s);
    if (how.ttft_s >= 0) totals.ttft.add(how.ttft_s);
    if (how.between_s >= 0) totals.time_between_tokens.add(how.between_s);
    const double deadline_s = all_->arrival_s(r) + s.latency.value();
    if (s.limits_answer && !at_most(how.end_s, deadline_s, s.latency.value())) ++totals.broke.latency;
    if (!s.keeps_ttft(how.ttft_s)) ++totals.broke.ttft;
    if (!s.keeps_time_between_tokens(how.between_s)) ++totals.broke.time_between_tokens;
  }
  auto& server = history_.servers[how.server.index()];
  server.credit += how.credit;
  ++server.ended;
  if (detailed_) by_server_[how.server.index() * history_.services.size() + what.service.index()] += how.credit;
  const auto hops = static_cast<std::size_t>(how.offloads);
  if (hops >= history_.offloads.size()) history_.offloads.resize(hops + 1);
  ++history_.offloads[hops];
  if (how.credit > 0) {
    // The last bin holds everything later: a long stream must not make millions of bins.
    const auto bin = std::min(bin_of(how.end_s), static_cast<std::size_t>(2 * span_s_ / bin_s_ + 100));
    if (bin >= history_.goodput.size()) history_.goodput.resize(bin + 1, std::vector<double>(history_.services.size()));
    history_.goodput[bin][what.service.index()] += how.credit;
  }
  credit_ += how.credit;
  if (how.credit > 0) last_end_s_ = std::max(last_end_s_, how.end_s);
  ++ended_;
  HETPLAN_ASSERT(!has_ended_[r]);
  has_ended_[r] = true;
  if (history_.records.empty()) return;
  history_.records[r] = how;
  history_.records[r].end_s = std::max(what.arrival_s, history_.begin.value() + how.end_s);  // the sum may be rounded down
}

HETPLAN_INLINE void history_recorder::open_offered(double arrival_s) {
  const auto bin = bin_of(arrival_s);
  history_.offered.resize(bin + 1, std::vector<double>(history_.services.size()));
  offered_until_s_ = static_cast<double>(bin + 1) * bin_s_;
}

HETPLAN_INLINE void history_recorder::add_up_flows() {
  std::ranges::sort(flows_, [](const offload_flow& a, const offload_flow& b) { return a.from != b.from ? a.from < b.from : a.to < b.to; });
  std::size_t kept = 0;
  for (std::size_t k = 0; k < flows_.size(); ++k) {
    if (kept > 0 && flows_[kept - 1].from == flows_[k].from && flows_[kept - 1].to == flows_[k].to) {
      flows_[kept - 1].requests += flows_[k].requests;
    } else {
      flows_[kept++] = flows_[k];
    }
  }
  flows_.resize(kept);
  flows_added_up_ = kept;
}

HETPLAN_INLINE void history_recorder::waiting(std::vector<std::uint32_t> by_server, double now_s) {
  const auto bin = bin_of(now_s);
  while (history_.waiting.size() < bin) history_.waiting.emplace_back(history_.servers.size());
  history_.waiting.push_back(std::move(by_server));
  next_waiting_s_ = static_cast<double>(bin + 1) * bin_s_;
}

HETPLAN_INLINE service_history history_recorder::take(std::uint64_t requests) {
  add_up_flows();
  history_.flows = std::move(flows_);
  const auto width = static_cast<std::ptrdiff_t>(history_.services.size());
  for (auto row = by_server_.begin(); row != by_server_.end(); row += width) history_.credit_by_server.emplace_back(row, row + width);
  history_.duration = seconds(std::max(last_end_s_, span_s_));
  while (history_.offloads.size() > 1 && history_.offloads.back() == 0) history_.offloads.pop_back();
  HETPLAN_ASSERT(history_.result.result == outcome::stopped || ended_ == requests);
  return std::move(history_);
}

namespace detail {
inline constexpr double never_s = std::numeric_limits<double>::infinity();
inline constexpr int most_offloads = 63;
}  // namespace detail

HETPLAN_INLINE serving_run::serving_run(const edge_cloud& cloud, const std::vector<service>& services, any_service_time times,
                                        const request_stream& requests, deployment first, const serving_options& options)
    : cloud_((validate(cloud), &cloud)), services_((validate(services), &services)), times_(times),
      all_((validate(requests, cloud, services), &requests)),
      options_((validate(options.faults, cloud), validate(options, requests), options)), span_s_(shortest_latency(services).value()),
      begin_s_(first_period_s(options, requests, cloud.ring.period)), now_s_(begin_s_), instances_(cloud, services, std::move(times)),
      knowledge_(cloud, options.faults, begin_s_), links_(cloud, options.faults, requests, span_s_), tracks_(requests.size()),
      recorder_(cloud, services, requests, options), turns_(turns(options.faults)) {
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
  // Publications do not change while there are no requests.
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
    take_out(instances_.those(
        [s](const instance& i) { return i.leader() == s || std::ranges::find(i.gpus, s, &gpu_slot::server) != i.gpus.end(); }));
  } else if (const auto* g = std::get_if<gpu_fails>(&f.what)) {
    damage_.broken_gpus.push_back({s, g->gpu});
    take_out(instances_.those([&](const instance& i) { return std::ranges::find(i.gpus, damage_.broken_gpus.back()) != i.gpus.end(); }));
  } else if (const auto* d = std::get_if<device_leaves>(&f.what)) {
    damage_.gone_devices.push_back({s, d->device});
    take_out(instances_.those([&](const instance& i) { return i.device == damage_.gone_devices.back(); }));
  } else if (const auto* n = std::get_if<device_registers>(&f.what)) {
    if (!knowledge_.has_failed(s)) std::erase(damage_.gone_devices, gpu_slot{s, n->device});
  } else if (std::holds_alternative<ring_cut>(f.what)) {
    knowledge_.set_cut(s, !ends);
  } else if (std::holds_alternative<wrong_state>(f.what)) {
    knowledge_.set_wrong(s, !ends);
  } else if (!std::holds_alternative<slow_link>(f.what)) {  // server_links has them from the beginning
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
    send_back(i);  // before fail: an idle instance would start the waiting requests
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
    const double flight_s = flights_.empty() ? detail::never_s : flights_.first().at_s;
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
      r = land(next_flight());
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
  // Each step reads what the one before it prefetched some arrivals ago.
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

HETPLAN_INLINE flight serving_run::next_flight() {
  flight first = flights_.pop();
  const double at_s = first.at_s;
  std::vector<flight> others;
  while (!flights_.empty() && has_come(flights_.first().at_s, at_s)) {
    others.push_back(flights_.pop());
    if (others.back().number < first.number) std::swap(first, others.back());
  }
  for (const flight& f : others) flights_.push(f);
  return first;
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
  pending_ = {number,
              r.service,
              r.server,
              here,
              seconds(now_s_),
              service_of(r).latency,
              seconds(deadline_s(number)),
              service_of(r).is_stream(),
              path,
              service_of(r).latency - service_of(r).begin_within()};
  return &pending_;
}

HETPLAN_INLINE void serving_run::end(request_number r, request_outcome o, double at_s, double credit) {
  finish(r, {.outcome = o, .end_s = at_s, .credit = credit});
}

HETPLAN_INLINE void serving_run::finish(request_number r, request_record how, double latency_s) {
  const auto& what = (*all_)[r];
  how.server = tracks_.here(r, what.server);
  how.offloads = tracks_.offloads(r);
  recorder_.end(r, what, how, latency_s);
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
  if (e.what == ended_request::how::refused) return end(e.number, request_outcome::no_resources, e.at_s);
  if (e.what == ended_request::how::failed) return end(e.number, request_outcome::failed, e.at_s, frames);
  if (stream) return end(e.number, e.share >= 1 ? request_outcome::served : request_outcome::in_part, e.at_s, frames);
  const auto& s = service_of(r);
  const double answer_b = s.response_size.value();
  const double device_s = links_.device_s(i.leader, i.device, answer_b);
  const auto there_s = [&](double made_s) {
    const double leaves_s = made_s + device_s;
    return leaves_s + links_.answer_s(tracks_.here(e.number, r.server), r.server, answer_b, leaves_s);
  };
  const double at_s = there_s(e.at_s), arrival_s = all_->arrival_s(e.number);
  request_record how{.end_s = at_s, .between_s = e.between_s};
  if (e.first_s >= 0) how.ttft_s = there_s(e.first_s) - arrival_s;
  const bool in_time = (!s.limits_answer || at_most(at_s, deadline_s(e.number), s.latency.value())) && s.keeps_ttft(how.ttft_s) &&
                       s.keeps_time_between_tokens(how.between_s);
  how.outcome = in_time ? request_outcome::served : request_outcome::late;
  how.credit = in_time ? 1 : 0;
  finish(e.number, how, at_s - arrival_s);
}

HETPLAN_INLINE double serving_run::size_b(const request& r) const {
  const auto& s = service_of(r);
  return s.request_size.value() + s.bytes_per_token.value() * static_cast<double>(r.tokens_in);
}

HETPLAN_INLINE double serving_run::expected_end_s(instance_id i, const pending_request& p, server_id at) {
  touch(i, now_s_);
  const auto& state = instances_[i];
  const auto& r = (*all_)[p.number];
  if (!state.can_hold(r)) return detail::never_s;
  const double answer_b = service_of(r).response_size.value();
  return state.expected_end_s(now_s_, now_s_ + links_.device_s(state.leader, state.device, size_b(r))) +
         links_.device_s(state.leader, state.device, answer_b) + links_.answer_s(at, r.server, answer_b, now_s_);
}

HETPLAN_INLINE service_history serving_run::finish() {
  recorder_.history().changes = static_cast<std::uint64_t>(changes_);
  return recorder_.take(all_->size());
}

}  // namespace hetplan::serve
