// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/pipeline_draft.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include <hetplan/cluster/network.hpp>

namespace hetplan::partition {

HETPLAN_INLINE std::vector<shared_tensor> shared_tensors(const planning_problem& problem, const layer_sequence& sequence) {
  const planning_graph& model = problem.model;
  std::vector<shared_tensor> shared(model.weight_groups().size());
  for (std::size_t b = 0; b < sequence.size(); ++b) {
    for (const layer_id l : sequence.blocks[b]) {
      if (model[l].weight_group < 0) continue;
      shared_tensor& s = shared[static_cast<std::size_t>(model[l].weight_group)];
      if (s.blocks.empty() || s.blocks.back() != b) s.blocks.push_back(b);
      s.state = std::max(s.state, checked_state(problem.models.memory, model[l], problem.job.workload, 1));
      if (model[l].trainable) s.trainable = model[l].weight.value();
    }
  }
  std::erase_if(shared, [](const shared_tensor& s) { return s.blocks.size() < 2; });
  return shared;
}

HETPLAN_INLINE draft_replay::draft_replay(const planning_problem& problem, const search_tables& tables)
    : problem_(problem), t_(tables), training_(problem.job.workload.mode == mode::training),
      generation_(problem.job.workload.mode == mode::generation), shared_(shared_tensors(problem, tables.sequence)),
      device_of_(problem.cluster.size(), none), resource_busy_(problem.cluster.network().resources().size(), 0),
      loads_(resource_busy_.size()), free_(resource_busy_.size(), 0), weight_(resource_busy_.size(), 0) {
  if (generation_) {
    const token_passes passes(problem.job.workload, problem.model);
    first_passes_ = passes.size(run_part::first_token);
    later_passes_ = passes.size(run_part::later_tokens);
    leading_ = static_cast<std::size_t>(std::min<double>(first_passes_, most_chunks));
    steps_ = leading_ + static_cast<std::size_t>(std::min<double>(later_passes_, most_steps));
    each_first_ = first_passes_ / static_cast<double>(leading_);
    limits_chunks_ = limits_chunks(problem.job.workload, problem.model);
    if (limits_chunks_) {
      in_every_chunk_.push_back(0);
      for (const auto& block : tables.sequence.blocks) {
        const auto runs = [&](layer_id l) { return problem.model[l].runs_in_every_chunk(); };
        in_every_chunk_.push_back(in_every_chunk_.back() + (std::any_of(block.begin(), block.end(), runs) ? 1 : 0));
      }
    }
    if (steps_ > leading_) each_later_ = later_passes_ / static_cast<double>(steps_ - leading_);
  }
  for (const device& d : problem.cluster.devices()) limited_ = limited_ || d.energy_budget || d.max_busy < 1;
  with_energy_ = limited_;
}

HETPLAN_INLINE bool draft_replay::prepare(const pipeline_draft& d) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  draft_ = &d;
  microbatches_ = d.sizes.size();
  passes_ = microbatches_ * steps_;
  stage_count_ = d.stages.size();
  if (stages_.size() < stage_count_) stages_.resize(stage_count_);
  for (std::size_t i = 0; i < device_count_; ++i) device_of_[devices_[i].id.index()] = none;
  device_count_ = 0;
  edges_.clear();
  one_resource_ = true;
  time_s_.resize(stage_count_ * 2 * passes_);
  missing_.resize(stage_count_ * 2 * passes_);
  for (std::uint32_t i = 0; i < stage_count_; ++i) {
    stage_state& s = stages_[i];
    const pipeline_draft::part& p = d.stages[i];
    s.first = p.first;
    s.last = i + 1 < stage_count_ ? d.stages[i + 1].first : t_.sequence.size();
    s.recompute = p.recompute;
    s.in.clear();
    s.out.clear();
    s.next[0] = s.next[1] = s.tokens = 0;
    std::uint32_t& at_device = device_of_[p.device.index()];
    if (at_device == none) {
      at_device = static_cast<std::uint32_t>(device_count_);
      if (devices_.size() == device_count_) devices_.emplace_back();
      device_state& x = devices_[device_count_++];
      x.id = p.device;
      x.rule = d.rules[p.device.index()];
      x.limit = memory_limit_bytes(t_.cluster[p.device]);
      x.held = x.reserve = x.last_s = x.left_s = x.busy_s = x.sent = x.received = 0;
      x.taken = 0;
      x.order.clear();
      x.end_s = inf;
      x.stages.clear();
    }
    s.device = at_device;
    devices_[at_device].stages.push_back(i);
    s.activation = t_.table.activation_bytes(s.first, s.last);
    s.input = s.recompute ? t_.cuts.bytes_in(s.first, s.last).first : 0;
    if (i == 0) continue;
    // Tensors from before the stage that it reads, by the stage that made them.
    const auto& crossings = t_.crossings.crossings(s.first);
    const auto& ports = t_.crossings.ports(s.first);
    for (std::size_t c = 0; c < crossings.size();) {
      const std::size_t tensor = crossings[c].tensor, from = crossings[c].from;
      double forward = -1, later = 0, gradient = 0;
      for (; c < crossings.size() && crossings[c].tensor == tensor && crossings[c].from == from; ++c) {
        if (ports[crossings[c].port] >= s.last) continue;
        forward = std::max(forward, generation_ ? crossings[c].first_bytes : crossings[c].forward_bytes);
        later = std::max(later, crossings[c].later_bytes);
        gradient = std::max(gradient, crossings[c].gradient_bytes);
      }
      if (forward < 0) continue;
      std::uint32_t maker = i - 1;
      while (stages_[maker].first > from) --maker;
      const auto known = std::find_if(s.in.begin(), s.in.end(), [&](std::uint32_t e) { return edges_[e].from == maker; });
      if (known != s.in.end()) {
        edges_[*known].forward_bytes += forward;
        edges_[*known].later_bytes += later;
        edges_[*known].gradient_bytes += gradient;
        continue;
      }
      edge e{maker, i, 0, forward, gradient, later, nullptr, nullptr};
      if (stages_[maker].device != s.device) {
        e.there = t_.cluster.network().find(d.stages[maker].device, p.device);
        e.back = t_.cluster.network().find(p.device, d.stages[maker].device);
        if (e.there == nullptr || e.back == nullptr) return false;
        one_resource_ = one_resource_ && e.there->via.size() <= 1 && e.back->via.size() <= 1;
      }
      s.in.push_back(static_cast<std::uint32_t>(edges_.size()));
      stages_[maker].out.push_back(static_cast<std::uint32_t>(edges_.size()));
      edges_.push_back(e);
    }
  }
  if (steps_ > leading_) {  // the last stages send tokens to the first ones, for the next step
    const std::size_t within = edges_.size();
    for (std::uint32_t from = 0; from < stage_count_; ++from) {
      if (std::any_of(stages_[from].out.begin(), stages_[from].out.end(), [&](std::uint32_t e) { return e < within; })) continue;
      for (std::uint32_t to = 0; to < stage_count_; ++to) {
        if (std::any_of(stages_[to].in.begin(), stages_[to].in.end(), [&](std::uint32_t e) { return e < within; })) continue;
        edge e{from, to, static_cast<std::uint32_t>(microbatches_), token_bytes, 0, token_bytes, nullptr, nullptr};
        if (stages_[from].device != stages_[to].device) {
          e.there = t_.cluster.network().find(d.stages[from].device, d.stages[to].device);
          if (e.there == nullptr) return false;
          one_resource_ = one_resource_ && e.there->via.size() <= 1;
        }
        stages_[from].out.push_back(static_cast<std::uint32_t>(edges_.size()));
        edges_.push_back(e);
        ++stages_[to].tokens;
      }
    }
  }
  is_chain_ = true;
  for (std::size_t i = 1; i < stage_count_ && is_chain_; ++i) {
    is_chain_ = std::any_of(stages_[i].in.begin(), stages_[i].in.end(),
                            [&](std::uint32_t e) { return edges_[e].from + 1 == i && (!training_ || edges_[e].gradient_bytes > 0); });
  }
  int known_size = 0;
  bool known_leading = true;
  std::size_t known_at = 0;
  for (std::uint32_t i = 0; i < stage_count_; ++i) {
    stage_state& s = stages_[i];
    const auto place = static_cast<double>(i), all = static_cast<double>(stage_count_);
    if (devices_[s.device].rule == ready_rule::path) s.rank[0] = place, s.rank[1] = 2 * all - place;
    else if (devices_[s.device].rule == ready_rule::inside) s.rank[0] = 2 * (all - place) + 1, s.rank[1] = 2 * (all - place);
    s.is_sink = std::none_of(s.out.begin(), s.out.end(), [&](std::uint32_t e) { return edges_[e].later == 0; });
    std::size_t gradients = 1;
    for (const std::uint32_t e : s.out) gradients += edges_[e].gradient_bytes > 0 ? 1 : 0;
    known_size = 0;
    for (std::uint32_t m = 0; m < passes_; ++m) {
      const int size = size_of(m);
      const bool leading = m < leading_ * microbatches_;
      if (size == known_size && leading == known_leading) {
        time_s_[at(i, 0, m)] = time_s_[at(i, 0, static_cast<std::uint32_t>(known_at))];
        time_s_[at(i, 1, m)] = time_s_[at(i, 1, static_cast<std::uint32_t>(known_at))];
      } else {
        const interval_time x = t_.table.time(s.first, s.last, d.stages[i].device, size);
        const double forward = !generation_ ? x.total_s - x.backward_s : leading ? x.first_s : x.later_s;
        time_s_[at(i, 0, m)] = forward;
        time_s_[at(i, 1, m)] = x.backward_s + (s.recompute ? forward : 0);
        known_size = size;
        known_leading = leading;
        known_at = m;
      }
      devices_[s.device].busy_s += stands_for(m) * (time_s_[at(i, 0, m)] + (training_ ? time_s_[at(i, 1, m)] : 0));
      missing_[at(i, 0, m)] = static_cast<std::uint8_t>(s.in.size() + (leading ? 0 : s.tokens));
      missing_[at(i, 1, m)] = static_cast<std::uint8_t>(gradients);
    }
  }
  // After its last task, the backwards of earlier stages, or the forwards of later ones, follow: at least those of the smallest pass.
  const auto smallest = static_cast<std::uint32_t>(std::min_element(d.sizes.begin(), d.sizes.end()) - d.sizes.begin());
  for (std::size_t i = 0; i < device_count_; ++i) devices_[i].after_s = inf;
  double after_s = 0;
  for (std::uint32_t k = 0; k < stage_count_; ++k) {
    const std::uint32_t i = training_ ? k : static_cast<std::uint32_t>(stage_count_) - 1 - k;
    device_state& x = devices_[stages_[i].device];
    x.left_s = x.busy_s;
    if (x.after_s == inf) x.after_s = is_chain_ ? after_s : 0;
    after_s += time_s_[at(i, training_ ? 1 : 0, smallest)];
    // To the stage that follows here: back in training, on in inference.
    const std::uint32_t next = training_ ? i + 1 : i;
    if (next > 0 && next < stage_count_) after_s += least_transfer_s(next, training_, d.sizes[smallest]);
  }
  // Before its first task, the first pass goes through the earlier stages.
  double before_s = 0;
  for (std::uint32_t i = 0; i < stage_count_; ++i) {
    device_state& x = devices_[stages_[i].device];
    if (x.stages.front() == i) x.before_s = is_chain_ ? before_s : 0;
    before_s += time_s_[at(i, 0, 0)];
    if (i + 1 < stage_count_) before_s += least_transfer_s(i + 1, false, d.sizes.front());
  }
  return true;
}

/// Returns the seconds that a transfer between a stage of a chain and the one before it takes on an idle network.
HETPLAN_INLINE double draft_replay::least_transfer_s(std::uint32_t stage, bool back, int size) const {
  for (const std::uint32_t e : stages_[stage].in) {
    const edge& x = edges_[e];
    if (x.from + 1 != stage || x.there == nullptr) continue;
    const device_id here = devices_[stages_[stage].device].id, before = devices_[stages_[x.from].device].id;
    const transfer_cost link = back ? peak_transfer(t_.cluster.network(), here, before) : peak_transfer(t_.cluster.network(), before, here);
    return link.time_s(size * (back ? x.gradient_bytes : x.forward_bytes));
  }
  return 0;
}

HETPLAN_INLINE double draft_replay::memory_overflow(const pipeline_draft& d) {
  const int most = *std::max_element(d.sizes.begin(), d.sizes.end());
  double too_much = 0;
  for (std::size_t i = 0; i < device_count_; ++i) {
    device_state& x = devices_[i];
    double each = 0, workspace = 0;
    for (const std::uint32_t s : x.stages) {
      const stage_state& st = stages_[s];
      x.held += t_.table.state_bytes(st.first, st.last);
      if (generation_) x.held += problem_.job.batch * t_.table.cache_bytes(st.first, st.last);
      each += most * (st.recompute ? st.input : st.activation);
      if (st.recompute) x.reserve = std::max(x.reserve, most * st.activation);
      workspace = std::max(workspace, t_.table.workspace().bytes(st.first, st.last, most));
    }
    x.held += workspace;
    if (x.stages.size() > 1) {
      for (const shared_tensor& tensor : shared_) {
        const auto holders =
            std::count_if(x.stages.begin(), x.stages.end(), [&](std::uint32_t s) { return tensor.in(stages_[s].first, stages_[s].last); });
        if (holders > 1) x.held -= static_cast<double>(holders - 1) * tensor.state;
      }
    }
    const double needed = x.held + each + x.reserve;
    if (needed > x.limit && t_.offload.has_tiers(x.id) && offload(x, needed - x.limit, most)) continue;
    if (needed > x.limit) too_much += x.limit > 0 ? needed / x.limit - 1 : needed;
  }
  return too_much;
}

/// Prolongs a device's stages, those with most weights first, by the reading of weights from tiers that make room for `need` bytes.
HETPLAN_INLINE bool draft_replay::offload(device_state& x, double need, int most) {
  std::vector<std::uint32_t> stages = x.stages;
  const auto movable = [&](std::uint32_t s) { return t_.offload.most_freed(stages_[s].first, stages_[s].last, x.id); };
  std::stable_sort(stages.begin(), stages.end(), [&](std::uint32_t a, std::uint32_t b) { return movable(a) > movable(b); });
  double left = need;
  for (const std::uint32_t s : stages) {
    const stage_state& st = stages_[s];
    const double part = std::min(left, movable(s));
    if (!(part > 0)) break;
    const int degree = t_.table.time(st.first, st.last, x.id, most).degree;
    const auto more = t_.offload.cheapest(st.first, st.last, x.id, most, degree, part);
    if (!more) return false;
    for (std::uint32_t m = 0; m < passes_; ++m) {
      const double forward = !generation_ ? more->total_s - more->backward_s : m < leading_ * microbatches_ ? more->first_s : more->later_s;
      const double backward = training_ ? more->backward_s + (st.recompute ? forward : 0) : 0;
      time_s_[at(s, 0, m)] += forward;
      if (training_) time_s_[at(s, 1, m)] += backward;
      x.busy_s += stands_for(m) * (forward + backward);
      x.left_s += stands_for(m) * (forward + backward);
    }
    left -= part;
  }
  if (left > 1e-9 * need) return false;
  x.held -= need;
  return true;
}

HETPLAN_INLINE draft_estimate draft_replay::operator()(const pipeline_draft& d, double most_s) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  tasks_ = static_cast<long long>(stage_count_);
  if (limits_chunks_ && waits_for_itself(d)) return {inf, seconds(inf), inf};
  if (!prepare(d)) return {inf, seconds(inf), inf};
  const double too_much = memory_overflow(d);
  if (too_much > 0) return {too_much, seconds(inf), inf};
  return run(most_s, false);
}

HETPLAN_INLINE bool draft_replay::waits_for_itself(const pipeline_draft& d) const {
  std::vector<char> holds(t_.cluster.size(), 0);
  for (std::size_t i = 0; i < d.stages.size(); ++i) {
    const std::size_t last = i + 1 < d.stages.size() ? d.stages[i + 1].first : t_.sequence.size();
    if (in_every_chunk_[last] == in_every_chunk_[d.stages[i].first]) continue;
    if (std::exchange(holds[d.stages[i].device.index()], 1) != 0) return true;
  }
  return false;
}

HETPLAN_INLINE draft_estimate draft_replay::run(double most_s, bool keep_orders) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  now_s_ = 0;
  for (const flow& f : flows_) {  // of a run that was left early
    for (const resource_use& u : f.way->via) loads_[u.resource.index()] = {}, resource_busy_[u.resource.index()] = 0;
  }
  flows_.clear();
  waiting_.clear();
  out_busy_.assign(device_count_, 0);
  in_busy_.assign(device_count_, 0);
  rates_changed_ = grants_changed_ = too_slow_ = false;
  tasks_ = 0;
  ends_s_.assign(passes_, 0);
  for (std::size_t i = 0; i < device_count_; ++i) {
    if (steps_ == 1 && devices_[i].before_s + devices_[i].left_s + devices_[i].after_s > most_s) return {0, seconds(inf), inf};
  }
  if (keep_orders) orders_.assign(t_.cluster.size(), {});
  std::uint64_t look = ~std::uint64_t{0};  // devices that may have something to begin; those from 63 on share a bit
  const auto bit = [](std::uint32_t device) { return std::uint64_t{1} << std::min<std::uint32_t>(device, 63); };
  for (;;) {
    for (std::uint32_t i = 0; i < device_count_; ++i) {
      if ((look & bit(i)) != 0 && devices_[i].end_s == inf) static_cast<void>(begin_task(i, most_s, keep_orders));
    }
    if (too_slow_) return {0, seconds(inf), inf};
    look = 0;
    if (grants_changed_) grant();
    if (rates_changed_) set_rates();
    double next_s = inf;
    for (std::size_t i = 0; i < device_count_; ++i) next_s = std::min(next_s, devices_[i].end_s);
    for (const flow& f : flows_) next_s = std::min(next_s, f.at_s);
    if (next_s == inf) break;
    now_s_ = next_s;
    const double instant = next_s * (1 + 1e-9);
    for (std::uint32_t i = 0; i < device_count_; ++i) {
      if (devices_[i].end_s > instant) continue;
      end_task(i);
      look |= bit(i);
    }
    for (std::size_t i = 0; i < flows_.size();) {
      flow& f = flows_[i];
      if (f.at_s > instant) {
        ++i;
      } else if (!f.drains && f.left > 0 && !f.way->via.empty()) {
        drain(f);
        ++i;
      } else {
        look |= bit(f.to);
        end_transfer(f);
        flows_[i] = flows_.back();
        flows_.pop_back();
      }
    }
  }
  const int last = training_ ? 1 : 0;
  for (std::size_t i = 0; i < stage_count_; ++i) {
    if (stages_[i].next[last] < passes_) return {inf, seconds(inf), inf};
  }
  return measured(reduced_s(now_s_));
}

HETPLAN_INLINE draft_estimate draft_replay::measured(double end_s) {
  draft_estimate e{0, seconds(end_s), 0};
  if (generation_) {
    double chunk_s = 0, first_s = 0, between_s = 0;  // what another chunk, and another step, would take
    for (std::size_t m = 0; m < microbatches_; ++m) {
      const double token_s = ends_s_[(leading_ - 1) * microbatches_ + m];
      first_s = std::max(first_s, token_s);
      if (leading_ > 1) chunk_s = std::max(chunk_s, (token_s - ends_s_[m]) / static_cast<double>(leading_ - 1));
      if (steps_ > leading_)
        between_s = std::max(between_s, (ends_s_[passes_ - microbatches_ + m] - token_s) / static_cast<double>(steps_ - leading_));
    }
    const double more_s = (first_passes_ - static_cast<double>(leading_)) * chunk_s;
    const double run_s = end_s + more_s + (later_passes_ - static_cast<double>(steps_ - leading_)) * between_s;
    e.times = {seconds(run_s), seconds(first_s + more_s), seconds(steps_ > leading_ ? between_s : run_s)};
  }
  if (!with_energy_) return e;
  const double run_s = e.times.makespan.value();
  for (std::size_t i = 0; i < device_count_; ++i) {
    const device_state& x = devices_[i];
    const energy_slopes& s = t_.slopes[x.id.index()];
    const double energy = s.idle_W * run_s + s.busy_W * x.busy_s + s.send_J_per_byte * x.sent + s.receive_J_per_byte * x.received;
    e.energy_J += energy;
    if (!limited_) continue;
    const device& d = t_.cluster[x.id];
    const auto add = [&](double used, double allowed) {
      if (used > allowed * (1 + limit_tolerance)) e.too_much += allowed > 0 ? used / allowed - 1 : used;
    };
    if (d.energy_budget) add(energy, d.energy_budget->value());
    if (d.max_busy < 1) add(x.busy_s / run_s, d.max_busy);
  }
  return e;
}

HETPLAN_INLINE void draft_replay::end_task(std::uint32_t device) {
  device_state& d = devices_[device];
  d.end_s = std::numeric_limits<double>::infinity();
  d.last_s = now_s_;
  const stage_state& s = stages_[d.stage];
  const int size = size_of(d.pass);
  if (generation_ && s.is_sink) ends_s_[d.pass] = std::max(ends_s_[d.pass], now_s_);
  if (d.what == 0) {
    if (training_) --missing_[at(d.stage, 1, d.pass)];
    else d.held -= size * s.activation;
    for (const std::uint32_t e : s.out) {
      const std::size_t pass = d.pass + edges_[e].later;
      if (pass >= passes_ || (edges_[e].later > 0 && pass < leading_ * microbatches_)) continue;  // a chunk of a prompt needs no token
      if (edges_[e].there == nullptr) --missing_[at(edges_[e].to, 0, static_cast<std::uint32_t>(pass))];
      else add_flow(e, d.pass, false);
    }
  } else {
    d.held -= size * (s.recompute ? s.activation + s.input : s.activation);
    for (const std::uint32_t e : s.in) {
      if (edges_[e].gradient_bytes <= 0) continue;
      if (edges_[e].there == nullptr) --missing_[at(edges_[e].from, 1, d.pass)];
      else add_flow(e, d.pass, true);
    }
  }
}

HETPLAN_INLINE void draft_replay::add_flow(std::uint32_t e, std::uint32_t pass, bool back) {
  const edge& x = edges_[e];
  const std::uint32_t first = back ? x.to : x.from, second = back ? x.from : x.to;
  const std::uint64_t microbatch = pass % microbatches_, step = pass / microbatches_;
  flow f{(microbatch << 40U) | (std::uint64_t{first} << 24U) | (std::uint64_t{second} << 8U) | step,
         e,
         pass,
         stages_[first].device,
         stages_[second].device,
         back,
         false,
         0,
         size_of(pass) * (back                              ? x.gradient_bytes
                          : pass < leading_ * microbatches_ ? x.forward_bytes
                                                            : x.later_bytes),
         0,
         back ? x.back : x.there};
  devices_[f.from].sent += stands_for(pass) * f.left;
  devices_[f.to].received += stands_for(pass) * f.left;
  ++tasks_;
  if (draft_->policy == sharing::fair_share) {
    f.at_s = now_s_ + f.way->latency.value();
    flows_.push_back(f);
  } else {
    waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), f, [](const flow& a, const flow& b) { return a.turn < b.turn; }), f);
    grants_changed_ = true;
  }
}

HETPLAN_INLINE void draft_replay::arrive(const flow& f) {
  const edge& e = edges_[f.edge];
  if (f.back) --missing_[at(e.from, 1, f.pass)];
  else --missing_[at(e.to, 0, f.pass + e.later)];
}

HETPLAN_INLINE bool draft_replay::has_room(const device_state& d, std::uint32_t s, std::uint32_t pass) const {
  const auto held = [&](const stage_state& x) { return x.recompute ? x.input : x.activation; };
  double needed = d.held + size_of(pass) * held(stages_[s]) + d.reserve;
  if (needed > d.limit) return false;
  if (d.stages.size() == 1) return true;
  const int most = *std::max_element(draft_->sizes.begin(), draft_->sizes.end());
  for (const std::uint32_t other : d.stages) {
    if (other != s && stages_[other].next[0] <= pass) needed += most * held(stages_[other]);
  }
  return needed <= d.limit;
}

HETPLAN_INLINE bool draft_replay::begin_task(std::uint32_t device, double most_s, bool keep_orders) {
  device_state& d = devices_[device];
  if (steps_ > 1 && d.taken >= d.stages.size() * microbatches_) {  // the order of the first step again
    const std::uint32_t s = d.order[d.taken % d.order.size()], pass = stages_[s].next[0];
    if (pass >= passes_ || missing_[at(s, 0, pass)] != 0 || !has_room(d, s, pass)) return false;
    begin(device, s, 0, most_s, false);
    return true;
  }
  std::uint32_t best = none, what = 0;
  const auto before = [&](std::uint32_t s, std::uint32_t w) {
    if (best == none) return true;
    const stage_state& x = stages_[s];
    const stage_state& y = stages_[best];
    if (d.rule == ready_rule::path || d.rule == ready_rule::inside) return x.rank[w] < y.rank[what];
    if (w != what) return (w == 0) == (d.rule == ready_rule::forwards);
    return std::pair(x.next[w], s) < std::pair(y.next[w], best);
  };
  for (const std::uint32_t s : d.stages) {
    const stage_state& x = stages_[s];
    const bool more = x.next[0] < microbatches_;  // in generation, of the first step
    if (more && missing_[at(s, 0, x.next[0])] == 0 && before(s, 0) && has_room(d, s, x.next[0])) best = s, what = 0;
    if (training_ && x.next[1] < passes_ && missing_[at(s, 1, x.next[1])] == 0 && before(s, 1)) best = s, what = 1;
  }
  if (best == none) return false;
  if (steps_ > 1) d.order.push_back(best);
  begin(device, best, what, most_s, keep_orders);
  return true;
}

HETPLAN_INLINE void draft_replay::begin(std::uint32_t device, std::uint32_t stage, std::uint32_t what, double most_s, bool keep_orders) {
  device_state& d = devices_[device];
  stage_state& x = stages_[stage];
  d.stage = stage;
  d.what = what;
  d.pass = x.next[what]++;
  ++d.taken;
  too_slow_ = too_slow_ || (steps_ == 1 && now_s_ + d.left_s + d.after_s > most_s);
  d.end_s = now_s_ + time_s_[at(stage, what, d.pass)];
  d.left_s -= time_s_[at(stage, what, d.pass)];
  const int size = size_of(d.pass);
  if (what == 0) d.held += size * (x.recompute ? x.input : x.activation);
  else if (x.recompute) d.held += size * x.activation;
  ++tasks_;
  if (keep_orders)
    orders_[d.id.index()].push_back({what == 0 ? phase::forward : phase::backward_input, stage_id(stage), static_cast<int>(d.pass)});
}

/// Grants waiting transfers their ports, or all resources of their routes, in turn; later ones may pass.
HETPLAN_INLINE void draft_replay::grant() {
  grants_changed_ = false;
  const bool ports = draft_->policy == sharing::exclusive;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    flow& f = waiting_[i];
    const bool can = ports ? out_busy_[f.from] == 0 && in_busy_[f.to] == 0
                           : std::all_of(f.way->via.begin(), f.way->via.end(),
                                         [&](const resource_use& u) { return resource_busy_[u.resource.index()] == 0; });
    if (!can) {
      if (kept != i) waiting_[kept] = f;
      ++kept;
      continue;
    }
    if (ports) out_busy_[f.from] = in_busy_[f.to] = 1;
    else
      for (const resource_use& u : f.way->via) resource_busy_[u.resource.index()] = 1;
    f.at_s = now_s_ + f.way->latency.value();
    flows_.push_back(f);
  }
  waiting_.resize(kept);
}

/// Begins to send the bytes of a transfer, after its latency.
HETPLAN_INLINE void draft_replay::drain(flow& f) {
  f.drains = true;
  if (draft_->policy == sharing::per_link) {  // it has its route for itself
    double rate = std::numeric_limits<double>::infinity();
    for (const resource_use& u : f.way->via) rate = std::min(rate, t_.cluster.network()[u.resource].capacity.value() / u.weight);
    f.at_s = now_s_ + f.left / rate;
    return;
  }
  f.rate = 0;
  f.at_s = std::numeric_limits<double>::infinity();
  rates_changed_ = true;
  if (!one_resource_) return;
  load& l = loads_[f.way->via.front().resource.index()];
  l.weight += f.way->via.front().weight;
  ++l.flows;
  l.changed = true;
}

HETPLAN_INLINE void draft_replay::end_transfer(const flow& f) {
  arrive(f);
  if (draft_->policy != sharing::fair_share) {
    grants_changed_ = true;
    if (draft_->policy == sharing::exclusive) out_busy_[f.from] = in_busy_[f.to] = 0;
    else
      for (const resource_use& u : f.way->via) resource_busy_[u.resource.index()] = 0;
  }
  if (!f.drains || draft_->policy == sharing::per_link) return;
  rates_changed_ = true;
  if (!one_resource_) return;
  load& l = loads_[f.way->via.front().resource.index()];
  l.weight = --l.flows == 0 ? 0 : l.weight - f.way->via.front().weight;
  l.changed = true;
}

/// Gives draining transfers max-min fair rates.
HETPLAN_INLINE void draft_replay::set_rates() {
  rates_changed_ = false;
  if (!one_resource_) {
    fill_rates();
    return;
  }
  for (flow& f : flows_) {
    if (!f.drains) continue;
    const std::size_t r = f.way->via.front().resource.index();
    if (!loads_[r].changed) continue;
    if (f.rate > 0) f.left = std::max(0.0, (f.at_s - now_s_) * f.rate);
    f.rate = t_.cluster.network().resources()[r].capacity.value() / loads_[r].weight;
    f.at_s = now_s_ + f.left / f.rate;
  }
  for (const flow& f : flows_) {
    if (f.drains) loads_[f.way->via.front().resource.index()].changed = false;
  }
}

/// The same by progressive filling, where routes have several resources.
HETPLAN_INLINE void draft_replay::fill_rates() {
  touched_.clear();
  std::size_t open = 0;
  const auto resources = t_.cluster.network().resources();
  for (flow& f : flows_) {
    if (!f.drains) continue;
    if (f.rate > 0) f.left = std::max(0.0, (f.at_s - now_s_) * f.rate);
    f.rate = 0;
    ++open;
    for (const resource_use& u : f.way->via) {
      const std::size_t r = u.resource.index();
      if (weight_[r] == 0) {
        touched_.push_back(static_cast<std::uint32_t>(r));
        free_[r] = resources[r].capacity.value();
      }
      weight_[r] += u.weight;
    }
  }
  while (open > 0) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::uint32_t r : touched_) {
      if (weight_[r] > 1e-12) least = std::min(least, free_[r] / weight_[r]);
    }
    const double bound = least * (1 + 1e-12);
    std::size_t fixed = 0;
    for (flow& f : flows_) {
      if (!f.drains || f.rate > 0) continue;
      const bool tight = std::any_of(f.way->via.begin(), f.way->via.end(), [&](const resource_use& u) {
        return free_[u.resource.index()] <= weight_[u.resource.index()] * bound;
      });
      if (!tight) continue;
      f.rate = -least;  // set after the round, so that the round sees the same loads
      ++fixed;
    }
    for (flow& f : flows_) {
      if (f.rate >= 0) continue;
      f.rate = least;
      f.at_s = now_s_ + f.left / least;
      for (const resource_use& u : f.way->via) {
        free_[u.resource.index()] -= u.weight * least;
        weight_[u.resource.index()] -= u.weight;
      }
    }
    if (fixed == 0) break;
    open -= fixed;
  }
  for (const std::uint32_t r : touched_) weight_[r] = 0;
}

/// Adds reductions of tensors that several devices hold, and optimizer steps.
HETPLAN_INLINE double draft_replay::reduced_s(double all_tasks_s) {
  double end_s = all_tasks_s;
  if (!training_) return end_s;
  double slowest_step_s = 0;
  for (std::size_t i = 0; i < device_count_; ++i) {
    double step_s = 0;
    for (const std::uint32_t s : devices_[i].stages) step_s += t_.table.optimizer_s(stages_[s].first, stages_[s].last, devices_[i].id);
    end_s = std::max(end_s, devices_[i].last_s + step_s);
    slowest_step_s = std::max(slowest_step_s, step_s);
  }
  double reduction_s = 0, ready_s = 0;
  std::vector<device_id> ring;
  for (const shared_tensor& tensor : shared_) {
    if (tensor.trainable <= 0) continue;
    ring.clear();
    for (std::size_t i = 0; i < stage_count_; ++i) {
      const stage_state& s = stages_[i];
      if (!tensor.in(s.first, s.last)) continue;
      ready_s = std::max(ready_s, devices_[s.device].last_s);
      if (std::find(ring.begin(), ring.end(), devices_[s.device].id) == ring.end()) ring.push_back(devices_[s.device].id);
    }
    if (ring.size() < 2) continue;
    reduction_s += ring_reduction(t_.cluster.network(), ring).time_s(tensor.trainable);
  }
  return reduction_s > 0 ? std::max(end_s, ready_s + reduction_s + slowest_step_s) : end_s;
}

HETPLAN_INLINE plan draft_replay::to_plan(const pipeline_draft& d, std::string planner) {
  static_cast<void>(prepare(d));
  static_cast<void>(memory_overflow(d));
  static_cast<void>(run(std::numeric_limits<double>::infinity(), true));
  const bool equal = std::adjacent_find(d.sizes.begin(), d.sizes.end(), std::not_equal_to<>()) == d.sizes.end();
  plan p = blank_plan(problem_, std::move(planner), equal ? d.sizes.front() : 1);
  pass_cuts cuts;
  if (!equal) {
    cuts.forward.push_back(0);
    for (const int size : d.sizes) cuts.forward.push_back(cuts.forward.back() + size);
    if (training_) cuts.backward = cuts.forward;
  }
  const int most = *std::max_element(d.sizes.begin(), d.sizes.end());
  for (std::size_t i = 0; i < d.stages.size(); ++i) {
    const stage_state& s = stages_[i];
    const device_id on = d.stages[i].device;
    p.stages.push_back({.name = "s" + std::to_string(i),
                        .layers = t_.layers_of(s.first, s.last),
                        .devices = {{on, p.microbatch_size, t_.table.time(s.first, s.last, on, most).degree}},
                        .recompute = whole_stage_if(d.stages[i].recompute),
                        .cuts = cuts});
  }
  p.schedule.kind = schedule_kind::explicit_orders;
  p.schedule.warmup.clear();
  p.schedule.orders = orders_;
  p.sharing_policy = d.policy;
  return p;
}

}  // namespace hetplan::partition
