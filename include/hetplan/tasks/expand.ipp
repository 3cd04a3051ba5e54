// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/expand.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/tasks/transfer_sender.hpp>

namespace hetplan::tasks {

namespace detail {

class expander {
 public:
  /// @param split  nothing: the plan's orders; otherwise no orders, and every backward is split (true) or none (false).
  expander(const stage_costs& s, std::optional<bool> split)
      : costs_(s), p_(s.plan), stages_(s.graph), all_split_(split),
        orders_(split ? std::vector<std::vector<order_entry>>(s.cluster.size()) : device_orders(p_, stages_, s.cluster.size())),
        out_(s.cluster.size()), sender_(p_, s.cluster, out_), reader_(s.cluster, out_), runs_(s.passes.size()) {}

  [[nodiscard]] task_graph run() {
    reserve();
    if (p_.parameter_server && p_.workload.mode == mode::training) out_.use(*p_.parameter_server);
    for (std::size_t d = 0; d < costs_.static_bytes.size(); ++d) out_.hold(device_id(d), costs_.static_bytes[d]);
    for (std::size_t s = 0; s < p_.stages.size(); ++s) add_stage(stage_id(s));
    for (const stage_edge& e : stages_.edges) {
      for (int run = 0; run < runs_; ++run) {
        const stage_edge* now = costs_.shape_of(run).find(e.from, e.to);
        if (now != nullptr) connect(phase::forward, transfer_kind::forward, e.from, e.to, now->forward_cut.value(), {run, run});
      }
      if (p_.workload.mode == mode::training && e.backward_cut.value() > 0) {
        connect(phase::backward_input, transfer_kind::backward, e.to, e.from, e.backward_cut.value(), {0, 0});
      }
    }
    if (p_.workload.mode == mode::generation) join_passes();
    order_devices();
    if (p_.workload.mode == mode::training) end_iteration();
    sender_.require_all_rules_used();
    return std::move(out_).build();
  }

 private:
  using handle = task_graph_builder::handle;

  /// A pass of a stage on one device, from the node that waits for its inputs to the one that others wait for: one task, or one per unit if
  /// gradients or weights are sharded.
  struct pass {
    handle start, end;
  };
  /// The share of a stage on one device.
  struct part {
    bool split = false;
    long long offset = 0;                                           ///< first of its samples in a microbatch
    std::vector<pass> passes[3] = {};                               ///< by phase; then by pass of the run and pass; empty: does not run
    std::vector<std::vector<sharded_stage::piece>> pieces[3] = {};  ///< by phase and pass of the run and pass, where a barrier starts tasks
  };

  void reserve() {
    std::size_t computes = 0, edges = 0;
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      const stage_graph::node& node = stages_.nodes[s];
      const std::size_t passes =
          static_cast<std::size_t>(node.passes(phase::forward)) + static_cast<std::size_t>(node.passes(phase::backward_input));
      const std::size_t mine = passes * static_cast<std::size_t>(runs_) * p_.stages[s].devices.size();
      computes += mine;
      edges += 2 * mine;
    }
    out_.reserve(computes, computes, edges);
  }

  /// @param run  pass of the run, in which the stage runs.
  [[nodiscard]] const pass& at(stage_id s, std::size_t position, phase what, int number, int run) const {
    return parts_[s.index()][position]
        .passes[static_cast<std::size_t>(what)][static_cast<std::size_t>(run * stages_[s].passes(what) + number)];
  }

  /// Returns the node at whose end the output of a row of the stage's devices is complete.
  [[nodiscard]] handle row_end(stage_id s, std::size_t row, phase what, int number, int run) {
    const stage& st = p_[s];
    if (st.column_count() == 1) return at(s, row, what, number, run).end;
    if (const handle* known = rows_.find({s, row, what, number, run})) return *known;
    const handle end = out_.add_barrier();
    for (std::size_t c = 0; c < st.column_count(); ++c) out_.depend(at(s, row * st.column_count() + c, what, number, run).end, end);
    return rows_[{s, row, what, number, run}] = end;
  }

  /// Returns the samples [first, second) of the pipeline that a device processes in a pass, in proportion to its share.
  [[nodiscard]] std::pair<long long, long long> share_of(stage_id s, std::size_t position, phase what, int number) const {
    const auto [begin, end] = stages_[s].samples(what, number);
    const long long size = stages_[s].microbatch_size, offset = parts_[s.index()][position].offset;
    const long long first = begin + offset * (end - begin) / size;
    return {first, first + p_[s].devices[position].samples * (end - begin) / size};
  }

  void add_stage(stage_id id) {
    const stage& s = p_[id];
    parts_.emplace_back(s.devices.size());
    long long offset = 0;
    for (std::size_t i = 0; i < s.devices.size(); ++i) {
      out_.use(s.devices[i].device);  // also if no layer of the stage runs
      parts_.back()[i].offset = offset;
      if (s.column_of(i) + 1 == s.column_count()) offset += s.devices[i].samples;
    }
    for (std::size_t i = 0; i < s.devices.size(); ++i) add_tasks(id, i);
    if (p_.workload.mode != mode::training) return;
    for (std::size_t i = 0; i < s.devices.size(); ++i) add_own_dependencies(id, i);
  }

  void add_tasks(stage_id id, std::size_t position) {
    const stage_graph::node& node = stages_[id];
    const bool training = p_.workload.mode == mode::training;
    part& mine = parts_.back()[position];
    mine.split = training && is_split(id, p_[id].devices[position].device);
    for (int run = 0; run < runs_; ++run) {
      if (!costs_.runs(id, run)) {
        auto& none = mine.passes[static_cast<std::size_t>(phase::forward)];
        none.resize(none.size() + static_cast<std::size_t>(node.passes(phase::forward)));
        continue;
      }
      for (int m = 0; m < node.passes(phase::forward); ++m) {
        add_pass(id, position, phase::forward, m, run);
        if (training && node.cuts.empty()) add_backward(id, position, m);
      }
    }
    if (training && !node.cuts.empty()) {
      for (int m = 0; m < node.passes(phase::backward_input); ++m) add_backward(id, position, m);
    }
  }

  void add_backward(stage_id id, std::size_t position, int m) {
    add_pass(id, position, phase::backward_input, m, 0);
    if (parts_.back()[position].split) add_pass(id, position, phase::backward_weight, m, 0);
  }

  void add_pass(stage_id id, std::size_t position, phase what, int number, int run) {
    const stage& s = p_[id];
    part& mine = parts_.back()[position];
    const auto [begin, end] = stages_[id].samples(what, number);
    const bool training = p_.workload.mode == mode::training;
    const stage_costs::part& cost =
        p_.workload.mode == mode::generation ? costs_.of_run(id, position, run) : costs_.of_pass(id, position, end - begin);
    const auto [first, last] = share_of(id, position, what, number);
    const share_memory& kept = cost.kept;
    const double left = mine.split ? kept.for_weights : 0;
    compute_task t{
        .what = what,
        .stage = id,
        .device = s.devices[position].device,
        .microbatch = number,
        .pass = run,
        .makes_token = p_.workload.mode == mode::generation && run + 1 >= costs_.passes.chunks() && costs_.shape_of(run)[id].out.empty(),
        .first_sample = stages_[id].first_sample + first,
        .last_sample = stages_[id].first_sample + last};
    double sent = 0;
    switch (what) {
      case phase::forward:
        t.duration_s = cost.forward_task_s();
        t.memory_bound_s = cost.memory_bound.forward_s;
        t.takes_bytes = kept.forward;
        t.releases_bytes = training ? 0 : kept.forward;
        sent = cost.forward_sent;
        break;
      case phase::backward_input:
        t.duration_s = mine.split ? cost.backward_input_s + cost.overhead_s : cost.backward_task_s();
        t.memory_bound_s = cost.memory_bound.backward_input_s + (mine.split ? 0 : cost.memory_bound.backward_weight_s);
        t.again_s = cost.again_s;
        t.takes_bytes = kept.taken_by(mine.split);
        t.releases_bytes = kept.forward + t.takes_bytes - left;
        sent = cost.backward_sent;
        break;
      case phase::backward_weight:
        t.duration_s = cost.backward_weight_s + cost.overhead_s;
        t.memory_bound_s = cost.memory_bound.backward_weight_s;
        t.releases_bytes = left;
        break;
      case phase::optimizer_step: break;
    }
    auto& passes = mine.passes[static_cast<std::size_t>(what)];
    if (const auto reads = reads_of(cost, what, mine.split); !reads.empty()) {
      const sharded_stage::piece read = reader_.add(t, position, reads);
      auto& pieces = mine.pieces[static_cast<std::size_t>(what)];
      pieces.resize(passes.size() + 1);
      pieces.back() = {read};
      passes.push_back({read.start, read.work});
      if (sent > 0) send_to_next_column(s, position, t, read.work, sent);
    } else if (cost.units.empty()) {
      const handle h = out_.add(t);
      passes.push_back({h, h});
      if (sent > 0) send_to_next_column(s, position, t, h, sent);
    } else {
      passes.push_back(add_pieces(mine, cost, t));
    }
  }

  /// Adds one task per unit, in the backward from the last unit to the first.
  [[nodiscard]] pass add_pieces(part& mine, const stage_costs::part& cost, const compute_task& whole) {
    auto& pieces = mine.pieces[static_cast<std::size_t>(whole.what)].emplace_back();
    const std::size_t units = cost.units.size();
    for (std::size_t k = 0; k < units; ++k) {
      const bool forward = whole.what == phase::forward;
      const std::size_t unit = forward ? k : units - 1 - k;
      const stage_costs::unit_times& u = cost.units[unit];
      compute_task t = whole;
      t.unit = static_cast<int>(unit);
      const auto of_task = [&](const stage_costs::phase_times& x) {
        return forward                                ? x.forward_s
               : whole.what == phase::backward_weight ? x.backward_weight_s
                                                      : x.backward_input_s + (mine.split ? 0 : x.backward_weight_s);
      };
      t.duration_s = of_task(u) + cost.overhead_s;
      t.memory_bound_s = of_task(u.memory_bound);
      t.again_s = whole.what == phase::backward_input ? u.again_s : 0;
      if (k > 0) t.takes_bytes = 0;
      if (k + 1 < units) t.releases_bytes = 0;
      const handle start = out_.add_barrier(), work = out_.add(t);
      out_.depend(start, work);
      pieces.push_back({start, work});
    }
    return {pieces.front().start, pieces.back().work};
  }

  /// Adds a task's part of the all-reduces of its grid row, whose time is in the tasks of the row.
  void send_to_next_column(const stage& s, std::size_t position, const compute_task& t, handle work, double volume_bytes) {
    const std::size_t columns = s.column_count(), first = s.row_of(position) * columns;
    sender_.carry_along({.kind = transfer_kind::all_reduce,
                         .from = t.device,
                         .to = s.devices[first + (s.column_of(position) + 1) % columns].device,
                         .from_stage = t.stage,
                         .to_stage = t.stage,
                         .microbatch = t.microbatch,
                         .pass = t.pass,
                         .first_sample = t.first_sample,
                         .last_sample = t.last_sample,
                         .volume_bytes = volume_bytes},
                        work);
  }

  /// Makes a backward depend on the forwards of its samples, in a grid on those of its whole row, and a weight part on its backward.
  void add_own_dependencies(stage_id id, std::size_t position) {
    const stage_graph::node& node = stages_[id];
    const stage& s = p_[id];
    for (int m = 0; m < node.passes(phase::backward_input); ++m) {
      const pass& backward = at(id, position, phase::backward_input, m, 0);
      if (node.cuts.empty()) {
        out_.depend(row_end(id, s.row_of(position), phase::forward, m, 0), backward.start);
      } else {
        // All forwards of the pass on the device itself. If forwards are cut otherwise, other rows may have run some of its samples, too.
        const auto [first_of_all, end_of_all] = node.samples(phase::backward_input, m);
        for (int f = node.pass_of(phase::forward, first_of_all);
             f < node.passes(phase::forward) && node.samples(phase::forward, f).first < end_of_all; ++f) {
          out_.depend(at(id, position, phase::forward, f, 0).end, backward.start);
        }
        const auto [begin, end] = share_of(id, position, phase::backward_input, m);
        for (int f = node.pass_of(phase::forward, begin); f < node.passes(phase::forward) && node.samples(phase::forward, f).first < end;
             ++f) {
          for (std::size_t row = 0; row < s.rows(); ++row) {
            const auto [first, last] = share_of(id, row * s.column_count(), phase::forward, f);
            const bool known = row == s.row_of(position) && s.column_count() == 1;
            if (first < end && begin < last && !known) out_.depend(row_end(id, row, phase::forward, f, 0), backward.start);
          }
        }
      }
      if (parts_.back()[position].split) out_.depend(backward.end, at(id, position, phase::backward_weight, m, 0).start);
    }
  }

  [[nodiscard]] bool is_split(stage_id s, device_id d) const {
    if (all_split_) return *all_split_;
    if (p_.schedule.kind != schedule_kind::explicit_orders) return false;
    const auto& order = orders_[d.index()];
    return std::any_of(order.begin(), order.end(), [&](const order_entry& e) { return e.stage == s && e.what == phase::backward_weight; });
  }

  /// Calls f(pass, row of the producer, position of the consumer, its pass, samples [first, last) of the pipeline) for all that overlap.
  template <class F>
  void for_each_overlap(phase what, stage_id from, stage_id to, const F& f) {
    const stage_graph::node &source = stages_[from], &target = stages_[to];
    const stage &producer = p_[from], &consumer = p_[to];
    for (int m = 0; m < source.passes(what); ++m) {
      for (std::size_t row = 0; row < producer.rows(); ++row) {
        const auto [begin, end] = share_of(from, row * producer.column_count(), what, m);
        if (begin == end) continue;
        for (int n = target.pass_of(what, begin); n < target.passes(what) && target.samples(what, n).first < end; ++n) {
          for (std::size_t j = 0; j < consumer.devices.size(); ++j) {
            const auto [first, last] = share_of(to, j, what, n);
            if (std::min(end, last) > std::max(begin, first)) f(m, row, j, n, std::max(begin, first), std::min(end, last));
          }
        }
      }
    }
  }

  /// Passes of the run between which something goes, the producer's and the consumer's.
  struct between {
    int made, needed;
  };

  /// Connects every row of the producer to every device of the consumer with overlapping samples: by a transfer from the row's first
  /// device, or by a dependency if the device is in the row.
  void connect(phase what, transfer_kind kind, stage_id from, stage_id to, double bytes_per_sample, between runs) {
    const stage& producer = p_[from];
    const long long first_sample = stages_[from].first_sample;
    for_each_overlap(what, from, to, [&](int m, std::size_t row, std::size_t j, int n, long long first, long long last) {
      const device_id receiver = p_[to].devices[j].device;
      const handle made = row_end(from, row, what, m, runs.made), needed = at(to, j, what, n, runs.needed).start;
      if (is_in_row(producer, row, receiver)) return out_.depend(made, needed);
      const std::size_t first_of_row = row * producer.column_count();
      connect({.kind = kind,
               .from = producer.devices[first_of_row].device,
               .to = receiver,
               .from_stage = from,
               .to_stage = to,
               .microbatch = m,
               .pass = runs.made,
               .to_position = static_cast<int>(j),
               .first_sample = first_sample + first,
               .last_sample = first_sample + last,
               .volume_bytes = bytes_per_sample * static_cast<double>(last - first)},
              at(from, first_of_row, what, m, runs.made).end, made, needed);
    });
  }

  /// @param work  the sender's task, which sending prolongs.
  void connect(const transfer& t, handle work, handle made, handle needed) {
    if (sends_once(t)) return send_once(t, work, made, needed);
    prolong_by_sending(t, work);
    if (t.kind != transfer_kind::token && p_.transfers == transfer_mode::block) return sender_.carry(t, made, needed);
    const auto [first_chunk, last_chunk] = sender_.send(t);
    out_.depend(made, first_chunk);
    out_.depend(last_chunk, needed);
  }

  void prolong_by_sending(const transfer& t, handle work) {
    const double overhead_s = costs_.cluster[t.from].send_overhead.value();
    if (overhead_s > 0) out_.prolong(work, overhead_s);
  }

  [[nodiscard]] static bool is_in_row(const stage& s, std::size_t row, device_id d) {
    for (std::size_t c = 0; c < s.column_count(); ++c) {
      if (s.devices[row * s.column_count() + c].device == d) return true;
    }
    return false;
  }

  /// Returns true if an output crosses only once to each device that reads it.
  [[nodiscard]] bool sends_once(const transfer& t) const {
    const stage_graph::node &from = stages_[t.from_stage], &to = stages_[t.to_stage];
    return t.kind == transfer_kind::forward && p_.copies == transfer_copies::per_device && p_.transfers == transfer_mode::overlap &&
           p_[t.from_stage].devices.size() == 1 && p_[t.to_stage].devices.size() == 1 && from.microbatch_size == to.microbatch_size &&
           from.cuts.forward == to.cuts.forward;
  }

  /// Sends an output once to a device. Its first reader there, by stage, names the transfer; the volume is the producer's largest cut.
  void send_once(transfer t, handle work, handle producer, handle consumer) {
    handle* sent = sent_.find({t.from_stage, t.to, t.microbatch, t.pass});
    if (sent == nullptr) {
      prolong_by_sending(t, work);
      const stage_graph& shape = costs_.shape_of(t.pass);
      double largest = 0;
      for (const std::size_t e : shape[t.from_stage].out) largest = std::max(largest, shape.edges[e].forward_cut.value());
      t.volume_bytes = largest * static_cast<double>(t.last_sample - t.first_sample);
      const auto [first_chunk, last_chunk] = sender_.send(t);
      out_.depend(producer, first_chunk);
      sent = &(sent_[{t.from_stage, t.to, t.microbatch, t.pass}] = last_chunk);
    }
    out_.depend(*sent, consumer);
  }

  /// Calls f(sink, source) for each sink of one pass of the run and each source of another, of one pipeline.
  template <class F>
  void for_each_return(between runs, const F& f) {
    const stage_graph &made = costs_.shape_of(runs.made), &needed = costs_.shape_of(runs.needed);
    for (std::size_t t = 0; t < p_.stages.size(); ++t) {
      if (!made.nodes[t].out.empty() || !costs_.runs(stage_id(t), runs.made)) continue;
      for (std::size_t s = 0; s < p_.stages.size(); ++s) {
        const bool is_source = needed.nodes[s].in.empty() && costs_.runs(stage_id(s), runs.needed);
        if (is_source && p_.stages[s].pipeline == p_.stages[t].pipeline) f(stage_id(t), stage_id(s));
      }
    }
  }

  /// Makes passes wait for earlier ones: a step for the token, which every sink sends to every source of its pipeline, and a chunk of a
  /// prompt, if only some may be in flight, for one that has left the sinks.
  void join_passes() {
    const int most = p_.workload.chunks_in_flight;
    for (int run = 0; run < runs_; ++run) {
      if (costs_.passes.makes_tokens_for_a_step(run)) {
        for_each_return({run, run + 1}, [&](stage_id t, stage_id s) {
          connect(phase::forward, transfer_kind::token, t, s, token_bytes, {run, run + 1});
        });
      }
      if (most == 0 || run + most >= costs_.passes.chunks()) continue;
      const between runs{run, run + most};
      for_each_return(runs, [&](stage_id t, stage_id s) {
        for_each_overlap(phase::forward, t, s, [&](int m, std::size_t row, std::size_t j, int n, long long, long long) {
          out_.depend(row_end(t, row, phase::forward, m, runs.made), at(s, j, phase::forward, n, runs.needed).start);
        });
      });
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
      std::optional<handle> before;
      // The chunks of a prompt follow one another in each entry of the order; every step goes through the whole order.
      const int prompt = std::max(1, costs_.passes.chunks());
      for (const order_entry& e : orders_[d]) {
        for (int run = 0; run < prompt; ++run) append(e, position[e.stage.index()], run, before);
      }
      for (int run = prompt; run < runs_; ++run) {
        for (const order_entry& e : orders_[d]) append(e, position[e.stage.index()], run, before);
      }
    }
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      if (moves_state(p_.stages[s])) share_state(stage_id(s));
    }
  }

  /// @param before  the device's last task so far; a piece's start barrier depends on it, as other nodes wait for that barrier.
  void append(const order_entry& e, std::size_t position, int run, std::optional<handle>& before) {
    if (!costs_.runs(e.stage, run)) return;
    const auto& pieces = parts_[e.stage.index()][position].pieces[static_cast<std::size_t>(e.what)];
    const auto number = static_cast<std::size_t>(run * stages_[e.stage].passes(e.what) + e.microbatch);
    if (number >= pieces.size() || pieces[number].empty()) {
      before = at(e.stage, position, e.what, e.microbatch, run).end;
      out_.append_to_order(*before);
      return;
    }
    for (const sharded_stage::piece& each : pieces[number]) {
      if (before) out_.depend(*before, each.start);
      out_.append_to_order(each.work);
      before = each.work;
    }
  }

  void share_state(stage_id s) {
    sharded_.insert({s}, sharded_stage(costs_, s, sender_));
    sharded_stage& shared = *sharded_.find({s});
    const auto& parts = parts_[s.index()];
    if (p_[s].shard == sharding::fsdp) {
      std::vector<order_entry> passes;  // equal on all devices of the stage
      for (const order_entry& e : orders_[p_[s].devices.front().device.index()]) {
        if (e.stage == s) passes.push_back(e);
      }
      std::vector<std::vector<sharded_stage::piece>> in_order(parts.size());
      for (std::size_t i = 0; i < parts.size(); ++i) {
        for (const order_entry& e : passes) {
          if (e.what == phase::backward_weight) continue;
          const auto& of_pass = parts[i].pieces[static_cast<std::size_t>(e.what)][static_cast<std::size_t>(e.microbatch)];
          in_order[i].insert(in_order[i].end(), of_pass.begin(), of_pass.end());
        }
      }
      shared.gather_before(in_order, passes);
    }
    for (int m = 0; m < stages_[s].passes(phase::backward_input); ++m) {
      for (std::size_t unit = 0; unit < shared.unit_count(); ++unit) {
        std::vector<handle> computed;
        for (const part& mine : parts) {
          const phase last = mine.split ? phase::backward_weight : phase::backward_input;
          const auto& pieces = mine.pieces[static_cast<std::size_t>(last)][static_cast<std::size_t>(m)];
          computed.push_back(pieces[shared.unit_count() - 1 - unit].work);
        }
        shared.scatter(static_cast<int>(unit), m, computed);
      }
    }
  }

  /// Makes `end` wait for the stage's last backward part on a device by its order; without orders, for all of them.
  void wait_for_last_backward(stage_id s, std::size_t position, handle end) {
    if (all_split_) {
      const phase last = *all_split_ ? phase::backward_weight : phase::backward_input;
      for (int m = 0; m < stages_[s].passes(last); ++m) out_.depend(at(s, position, last, m, 0).end, end);
      return;
    }
    const auto& order = orders_[p_[s].devices[position].device.index()];
    const auto it =
        std::find_if(order.rbegin(), order.rend(), [&](const order_entry& e) { return e.stage == s && e.what != phase::forward; });
    out_.depend(at(s, position, it->what, it->microbatch, 0).end, end);
  }

  /// Adds the reductions after the last backward parts, then the optimizer steps that the cost model times.
  void end_iteration() {
    std::vector<handle> finished;
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      finished.push_back(out_.add_barrier());
      for (std::size_t i = 0; i < p_.stages[s].devices.size(); ++i) wait_for_last_backward(stage_id(s), i, finished.back());
      if (sharded_stage* shared = sharded_.find({s})) out_.depend(shared->finish(), finished.back());
    }
    const std::vector<handle> reduced = reduce_gradients(p_, costs_.model, stages_, finished, sender_);
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      for (std::size_t i = 0; i < p_.stages[s].devices.size(); ++i) add_optimizer_step(stage_id(s), i, reduced[s]);
    }
  }

  void add_optimizer_step(stage_id s, std::size_t position, handle reduced) {
    const double duration = costs_[s].devices[position].optimizer_s;
    if (duration <= 0) return;
    const long long first = stages_[s].first_sample, last = first + p_.pipeline_samples(p_[s].pipeline);
    const handle update = out_.add(compute_task{.what = phase::optimizer_step,
                                                .stage = s,
                                                .device = p_[s].devices[position].device,
                                                .microbatch = stages_[s].passes(phase::backward_input) - 1,
                                                .first_sample = first,
                                                .last_sample = last,
                                                .duration_s = duration});
    out_.depend(reduced, update);
    if (!all_split_) out_.append_to_order(update);
  }

  const stage_costs& costs_;
  const plan& p_;
  const stage_graph& stages_;
  std::optional<bool> all_split_;
  std::vector<std::vector<order_entry>> orders_;
  task_graph_builder out_;
  transfer_sender sender_;
  tier_reader reader_;
  int runs_;                              ///< passes of the run: one but in generation
  keyed<handle> sent_;                    ///< copies per device: by producer stage, receiver, microbatch, pass of the run
  keyed<handle> rows_;                    ///< grids: by stage, row, phase, pass, pass of the run
  keyed<sharded_stage> sharded_;          ///< by stage
  std::vector<std::vector<part>> parts_;  ///< by stage, by position in its devices
};

}  // namespace detail

HETPLAN_INLINE task_graph expand(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                 const any_memory_model& memory) {
  return expand(stage_costs(p, model, c, cost, memory));
}

HETPLAN_INLINE task_graph expand(const stage_costs& s) { return detail::expander(s, std::nullopt).run(); }

HETPLAN_INLINE task_graph expand_unordered(const stage_costs& s, bool split_backwards) {
  for (const stage& each : s.plan.stages) {
    if (reads_over_network(each, s.cluster))
      throw invalid_input("plan: stage \"" + each.name +
                          "\" reads weights from a tier with a resource when its device begins a task; expected stages that can be "
                          "ordered while they run");
    if (!moves_state(each)) continue;
    throw invalid_input(
        "plan: stage \"" + each.name +
        "\" shares out its gradients or weights, unit by unit in the order of its work; expected stages that can be ordered "
        "while they run");
  }
  return detail::expander(s, split_backwards).run();
}

}  // namespace hetplan::tasks
