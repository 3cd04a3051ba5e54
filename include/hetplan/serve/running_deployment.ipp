// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/running_deployment.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <hetplan/core/error.hpp>

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

HETPLAN_INLINE const instance_times& running_deployment::times_of(const instance& i) {
  auto& table = tables_[{i.what.value, i.variant, i.batch, i.frames, i.groups}];
  if (!table) table = std::make_unique<instance_times>(times_, *services_, i);
  return *table;
}

HETPLAN_INLINE instance_state running_deployment::make_state(const instance& i, double ready_s) {
  const auto& s = (*services_)[i.what.index()];
  const auto& times = times_of(i);
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
  std::map<instance, std::vector<instance_id>> before;  // several may be alike
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
    if (kept != k) retired_[kept] = std::move(retired_[k]);  // moved onto itself it would lose its GPUs
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

HETPLAN_INLINE std::vector<instance_id> running_deployment::on_server(server_id s) const {
  return those(
      [s](const instance& i) { return i.leader() == s || std::ranges::any_of(i.gpus, [s](const gpu_slot& g) { return g.server == s; }); });
}

HETPLAN_INLINE std::vector<instance_id> running_deployment::on_gpu(gpu_slot g) const {
  return those([&](const instance& i) { return std::ranges::find(i.gpus, g) != i.gpus.end(); });
}

HETPLAN_INLINE std::vector<instance_id> running_deployment::on_device(gpu_slot d) const {
  return those([&](const instance& i) { return i.device == d; });
}

HETPLAN_INLINE std::vector<holder_capacity> running_deployment::capacities() const {
  // Of what is done a mean is taken over so many batches, or SLOs if they are longer: over fewer it shows who has just ended.
  constexpr double batches = 4;
  std::vector<holder_capacity> sums;
  sums.reserve(holders_->holders().size());
  for (const auto& h : holders_->holders()) {
    holder_capacity sum;
    double at_a_time = 0;
    for (const auto i : holders_->led(h)) {
      const auto& times = (*this)[i].times();
      sum.per_s += times.capacity();
      at_a_time += times.batch();
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

}  // namespace hetplan::serve
