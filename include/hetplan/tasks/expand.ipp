// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/expand.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/plan/orders.hpp>
#include <hetplan/tasks/reduction.hpp>
#include <hetplan/tasks/transfer_sender.hpp>

namespace HETPLAN_NAMESPACE::tasks {

namespace detail {

class expander {
 public:
  explicit expander(const staged& s)
      : staged_(s), p_(s.plan), stages_(s.graph), orders_(device_orders(p_, stages_, s.cluster.size())), out_(s.cluster.size()),
        sender_(p_, s.cluster, out_), tokens_(p_.workload.steps()) {}

  [[nodiscard]] task_graph run() {
    reserve();
    if (p_.parameter_server && p_.workload.mode == mode::training) out_.use(*p_.parameter_server);
    for (std::size_t d = 0; d < staged_.static_bytes.size(); ++d) out_.hold(device_id(d), staged_.static_bytes[d]);
    for (std::size_t s = 0; s < p_.stages.size(); ++s) add_tasks(stage_id(s));
    for (const stage_edge& e : stages_.edges) {
      connect(phase::forward, transfer_kind::forward, e.from, e.to, e.forward_cut.value(), 0);
      if (p_.workload.mode == mode::training && e.backward_cut.value() > 0) {
        connect(phase::backward_input, transfer_kind::backward, e.to, e.from, e.backward_cut.value(), 0);
      }
    }
    if (p_.workload.mode == mode::generation) connect_tokens();
    order_devices();
    if (p_.workload.mode == mode::training) end_iteration();
    sender_.require_all_rules_used();
    return std::move(out_).build();
  }

 private:
  using handle = task_graph_builder::handle;

  /// A device's part of a stage: where its tasks are (phase by phase for each microbatch of each token).
  struct part {
    std::size_t base = 0;
    std::size_t phases = 1;
    bool split = false;
    long long offset = 0;  ///< of its samples in a microbatch
  };

  void reserve() {
    std::size_t computes = 0, edges = 0;
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      const std::size_t mine = 2 * static_cast<std::size_t>(tokens_ * stages_.nodes[s].microbatches) * p_.stages[s].devices.size();
      computes += mine;
      edges += 2 * mine;
    }
    out_.reserve(computes, computes, edges);
  }

  [[nodiscard]] handle at(stage_id s, std::size_t position, phase what, int microbatch, int token) const {
    const part& pt = parts_[s.index()][position];
    const auto index = pt.base + static_cast<std::size_t>(token * stages_[s].microbatches + microbatch) * pt.phases +
                       (what == phase::forward          ? 0U
                        : what == phase::backward_input ? 1U
                                                        : 2U);
    return {handle::kind::compute, static_cast<std::uint32_t>(index)};
  }

  void add_tasks(stage_id id) {
    const stage& s = p_[id];
    const stage_graph::node& node = stages_[id];
    const bool training = p_.workload.mode == mode::training;
    parts_.emplace_back();
    long long offset = 0;
    for (std::size_t i = 0; i < s.devices.size(); ++i) {
      const assignment& a = s.devices[i];
      const staged::part& cost = staged_[id].devices[i];
      part pt{.base = count_, .offset = offset};
      pt.split = is_split(id, a.device);
      pt.phases = !training ? 1U : pt.split ? 3U : 2U;
      const share_memory& kept = cost.kept;
      const double left = pt.split ? kept.for_weights : 0;
      compute_task t{.stage = id, .device = a.device};
      for (t.token = 0; t.token < tokens_; ++t.token) {
        for (t.microbatch = 0; t.microbatch < node.microbatches; ++t.microbatch) {
          t.first_sample = node.first_sample + static_cast<long long>(t.microbatch) * node.microbatch_size + offset;
          t.last_sample = t.first_sample + a.samples;
          const auto add = [&](phase what, double duration, double takes, double releases) {
            t.what = what;
            t.duration_s = duration;
            t.again_s = what == phase::backward_input && s.recompute ? cost.forward_s : 0;
            t.takes_bytes = takes;
            t.releases_bytes = releases;
            return out_.add(t);
          };
          const handle f = add(phase::forward, cost.forward_s, kept.forward, training ? 0 : kept.forward);
          if (training) {
            const handle b =
                add(phase::backward_input, pt.split ? cost.backward_input_s : cost.backward_s(), kept.backward, kept.whole() - left);
            out_.depend(f, b);
            if (pt.split) out_.depend(b, add(phase::backward_weight, cost.backward_weight_s, 0, left));
          }
        }
      }
      count_ += pt.phases * static_cast<std::size_t>(tokens_ * node.microbatches);
      parts_.back().push_back(pt);
      offset += a.samples;
    }
  }

  [[nodiscard]] bool is_split(stage_id s, device_id d) const {
    if (p_.schedule.kind != schedule_kind::explicit_orders || p_.workload.mode != mode::training) return false;
    const auto& order = orders_[d.index()];
    return std::any_of(order.begin(), order.end(), [&](const order_entry& e) { return e.stage == s && e.what == phase::backward_weight; });
  }

  /// Every producer interval reaches every consumer interval that overlaps it, by transfer or, on one device, for free.
  void connect(phase what, transfer_kind kind, stage_id from, stage_id to, double bytes_per_sample, int to_token) {
    const stage_graph::node &source = stages_[from], &target = stages_[to];
    const auto& producers = p_[from].devices;
    const auto& consumers = p_[to].devices;
    const long long from_size = source.microbatch_size, to_size = target.microbatch_size;
    for (int token = 0; token + to_token < tokens_; ++token) {
      for (int m = 0; m < source.microbatches; ++m) {
        for (std::size_t i = 0; i < producers.size(); ++i) {
          const long long begin = m * from_size + parts_[from.index()][i].offset, end = begin + producers[i].samples;
          for (long long n = begin / to_size; n * to_size < end; ++n) {
            for (std::size_t j = 0; j < consumers.size(); ++j) {
              const long long first = n * to_size + parts_[to.index()][j].offset, last = first + consumers[j].samples;
              const long long overlap = std::min(end, last) - std::max(begin, first);
              if (overlap <= 0) continue;
              const handle producer = at(from, i, what, m, token);
              const handle consumer = at(to, j, what, static_cast<int>(n), token + to_token);
              if (producers[i].device == consumers[j].device) {
                out_.depend(producer, consumer);
              } else {
                const transfer t{.kind = kind,
                                 .from = producers[i].device,
                                 .to = consumers[j].device,
                                 .from_stage = from,
                                 .to_stage = to,
                                 .microbatch = m,
                                 .token = token,
                                 .first_sample = source.first_sample + std::max(begin, first),
                                 .last_sample = source.first_sample + std::min(end, last),
                                 .volume_bytes = bytes_per_sample * static_cast<double>(overlap)};
                if (sends_once(kind, from, to)) {
                  send_once(t, producer, consumer);
                  continue;
                }
                if (kind != transfer_kind::token && p_.transfers == transfer_mode::block) {
                  sender_.carry(t, producer, consumer);
                  continue;
                }
                const auto [first_chunk, last_chunk] = sender_.send(t);
                out_.depend(producer, first_chunk);
                out_.depend(last_chunk, consumer);
              }
            }
          }
        }
      }
    }
  }

  /// Copies per device: an output crosses once to each device that reads it.
  [[nodiscard]] bool sends_once(transfer_kind kind, stage_id from, stage_id to) const {
    return kind == transfer_kind::forward && p_.copies == transfer_copies::per_device && p_.transfers == transfer_mode::overlap &&
           p_[from].devices.size() == 1 && p_[to].devices.size() == 1 && stages_[from].microbatch_size == stages_[to].microbatch_size;
  }

  /// The first reader on a device, by stage, names the transfer; it carries the stage's largest cut, whoever reads there.
  void send_once(transfer t, handle producer, handle consumer) {
    const auto [it, first] = sent_.try_emplace({t.from_stage, t.to, t.microbatch, t.token});
    if (first) {
      double largest = 0;
      for (const std::size_t e : stages_[t.from_stage].out) largest = std::max(largest, stages_.edges[e].forward_cut.value());
      t.volume_bytes = largest * static_cast<double>(t.last_sample - t.first_sample);
      const auto [first_chunk, last_chunk] = sender_.send(t);
      out_.depend(producer, first_chunk);
      it->second = last_chunk;
    }
    out_.depend(it->second, consumer);
  }

  /// Every sink's token goes to every source of its pipeline, where the next token may start.
  void connect_tokens() {
    constexpr double token_bytes = 4;
    for (std::size_t t = 0; t < p_.stages.size(); ++t) {
      if (!stages_.nodes[t].out.empty()) continue;
      for (std::size_t s = 0; s < p_.stages.size(); ++s) {
        if (!stages_.nodes[s].in.empty() || p_.stages[s].pipeline != p_.stages[t].pipeline) continue;
        connect(phase::forward, transfer_kind::token, stage_id(t), stage_id(s), token_bytes, 1);
      }
    }
  }

  void order_devices() {
    for (std::size_t d = 0; d < orders_.size(); ++d) {
      std::vector<std::size_t> position(p_.stages.size(), 0);
      for (std::size_t s = 0; s < p_.stages.size(); ++s) {
        for (std::size_t i = 0; i < p_.stages[s].devices.size(); ++i) {
          if (p_.stages[s].devices[i].device.index() == d) position[s] = i;
        }
      }
      for (int token = 0; token < tokens_; ++token) {
        for (const order_entry& e : orders_[d]) out_.append_to_order(at(e.stage, position[e.stage.index()], e.what, e.microbatch, token));
      }
    }
  }

  /// The end of a stage's work on one device: its last backward part, by the device's order.
  [[nodiscard]] handle last_backward(stage_id s, std::size_t position) const {
    const auto& order = orders_[p_[s].devices[position].device.index()];
    const auto it =
        std::find_if(order.rbegin(), order.rend(), [&](const order_entry& e) { return e.stage == s && e.what != phase::forward; });
    return at(s, position, it->what, it->microbatch, 0);
  }

  /// The reductions behind the last backward parts, and behind them the optimizer where the cost model has a step.
  void end_iteration() {
    std::vector<handle> finished;
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      finished.push_back(out_.add_barrier());
      for (std::size_t i = 0; i < p_.stages[s].devices.size(); ++i) out_.depend(last_backward(stage_id(s), i), finished.back());
    }
    const std::vector<handle> reduced = reduce_gradients(p_, staged_.model, stages_, finished, sender_);
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      for (std::size_t i = 0; i < p_.stages[s].devices.size(); ++i) add_optimizer_step(stage_id(s), i, reduced[s]);
    }
  }

  void add_optimizer_step(stage_id s, std::size_t position, handle reduced) {
    const double duration = staged_[s].devices[position].optimizer_s;
    if (duration <= 0) return;
    const long long first = stages_[s].first_sample, last = first + p_.pipeline_samples(p_[s].pipeline);
    const handle update = out_.add(compute_task{.what = phase::optimizer_step,
                                                .stage = s,
                                                .device = p_[s].devices[position].device,
                                                .microbatch = stages_[s].microbatches - 1,
                                                .first_sample = first,
                                                .last_sample = last,
                                                .duration_s = duration});
    out_.depend(reduced, update);
    out_.append_to_order(update);
  }

  const staged& staged_;
  const plan& p_;
  const stage_graph& stages_;
  std::vector<std::vector<order_entry>> orders_;
  task_graph_builder out_;
  transfer_sender sender_;
  int tokens_;
  std::map<std::tuple<stage_id, device_id, int, int>, handle> sent_;  ///< copies per device: by stage, device, microbatch, token
  std::vector<std::vector<part>> parts_;                              ///< by stage, by position in its devices
  std::size_t count_ = 0;
};

}  // namespace detail

HETPLAN_INLINE task_graph expand(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                 const any_memory_model& memory) {
  return expand(staged(p, model, c, cost, memory));
}

HETPLAN_INLINE task_graph expand(const staged& s) { return detail::expander(s).run(); }

}  // namespace HETPLAN_NAMESPACE::tasks
