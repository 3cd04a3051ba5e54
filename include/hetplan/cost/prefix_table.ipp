// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/prefix_table.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include <hetplan/core/keyed.hpp>

namespace hetplan {

struct remembered_cost::tables {
  /// Cached seconds of one device and kind of work, by layer.
  struct row {
    struct price {
      layer_id before;  ///< invalid: not cached
      double s = 0;
    };
    std::vector<double> time_s;   ///< NaN: not cached
    std::vector<price> boundary;  ///< behind the last predecessor requested; empty if boundaries are not priced
  };

  any_cost_model asked;
  const planning_graph* model;
  std::span<const device> devices;
  std::size_t most;
  bool boundaries = asked.times_boundaries();
  std::mutex one_at_a_time = {};
  keyed<row> rows = {};

  [[nodiscard]] bool knows(const planning_graph& m, const device& d) const {
    return &m == model && d.id.valid() && d.id.index() < devices.size() && &d == &devices[d.id.index()];
  }
  [[nodiscard]] row& row_of(std::size_t device, const work_kind& k) {
    const std::initializer_list<key_part> key{device,     k.phase,  k.batch,  k.tensor_parallel,       k.context,
                                              k.fraction, k.tokens, k.cached, k.tier_bandwidth.value()};
    if (row* known = rows.find(key)) return *known;
    if ((rows.size() + 1) * model->size() > most) rows = {};
    row empty{std::vector<double>(model->size(), std::numeric_limits<double>::quiet_NaN()), {}};
    if (boundaries) empty.boundary.resize(model->size());
    return rows[key] = std::move(empty);
  }
};

HETPLAN_INLINE remembered_cost::remembered_cost(any_cost_model asked, const planning_graph& model, const cluster& c, std::size_t most)
    : tables_(std::make_shared<tables>(std::move(asked), &model, c.devices(), most)) {}

HETPLAN_INLINE seconds remembered_cost::time(const work& w, const device& d) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  return tables_->asked.time(w, d);
}

HETPLAN_INLINE bool remembered_cost::times_optimizer() const { return tables_->asked.times_optimizer(); }

HETPLAN_INLINE seconds remembered_cost::optimizer_step(const layer& l, const device& d) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  return tables_->asked.optimizer_step(l, d);
}

HETPLAN_INLINE bool remembered_cost::times_boundaries() const { return tables_->boundaries; }

HETPLAN_INLINE seconds remembered_cost::boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  return tables_->asked.boundary(before, after, k, d);
}

HETPLAN_INLINE double remembered_cost::largest_batch(const work& w, const device& d) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  return tables_->asked.largest_batch(w, d);
}

HETPLAN_INLINE bool remembered_cost::tells_parts() const { return tables_->asked.tells_parts(); }

HETPLAN_INLINE time_parts remembered_cost::parts(const work& w, const device& d) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  return tables_->asked.parts(w, d);
}

HETPLAN_INLINE void remembered_cost::times_s(const planning_graph& model, const work_kind& k, const device& d, double* by_layer) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  tables_->asked.times_s(model, k, d, by_layer);
}

HETPLAN_INLINE double remembered_cost::total_s(const planning_graph& model, std::span<const layer_id> layers, const work_kind& k,
                                               const device& d, double before) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  if (!tables_->knows(model, d)) return tables_->asked.total_s(model, layers, k, d, before);
  tables::row& row = tables_->row_of(d.id.index(), k);
  const auto time_s = [&](layer_id l) {
    double& s = row.time_s[l.index()];
    if (std::isnan(s)) s = checked_time_s(tables_->asked, k.of(model[l]), d);
    return s;
  };
  const auto boundary_s = [&](layer_id l, layer_id next) {
    tables::row::price& p = row.boundary[next.index()];
    if (p.before != l) p = {l, checked_boundary_s(tables_->asked, model[l], model[next], k, d)};
    return p.s;
  };
  return detail::add_run(before, layers, tables_->boundaries, time_s, boundary_s);
}

HETPLAN_INLINE interval_time prefix_table::time(std::size_t first, std::size_t last, device_id d, int share) const {
  interval_time best;
  if (first == last) return best;
  for (int g = 1; g <= degrees(d); ++g) {
    if (g > 1 && !allows(first, last, d, static_cast<std::size_t>(g) - 1)) continue;
    const double total = std::max(0.0, totals(d, share, g)[last] - entries(d, share, g)[first]);  // rounding may leave less than nothing
    if (g == 1 || total < best.total_s) best = {.total_s = total, .degree = g};
  }
  if (training_) {
    const double backward = backwards(d, share, best.degree)[last] - backward_entries(d, share, best.degree)[first];
    best.backward_s = std::clamp(backward, 0.0, best.total_s);
  }
  if (has_parts()) {
    const auto time_s = [&](run_part part) {
      return std::max(0.0, totals(d, share, best.degree, part)[last] - entries(d, share, best.degree, part)[first]);
    };
    best.first_s = time_s(run_part::first_token);
    if (passes_.size(run_part::later_tokens) > 0) best.later_s = time_s(run_part::later_tokens);
  }
  if (adjusted_) {
    const interval_time more = adjustment(first, last, d);
    best.total_s = std::max(0.0, best.total_s + more.total_s);
    best.backward_s += more.backward_s;
    best.first_s = std::max(0.0, best.first_s + more.first_s);
    best.later_s = std::max(0.0, best.later_s + more.later_s);
  }
  best.degree = degrees_[d.index()][static_cast<std::size_t>(best.degree - 1)];
  return best;
}

HETPLAN_INLINE interval_time prefix_table::adjustment(std::size_t first, std::size_t last, device_id d) const {
  const double send = send_s_[d.index()], overhead = overheads_s_[d.index()];
  const auto [forward, back] = sends_of(workload_, first == 0, last == blocks_);
  if (!has_parts()) return {.total_s = (forward ? send : 0) + (back ? send : 0), .backward_s = back ? send : 0};
  const auto of = [&, sends = forward](run_part part) {
    if (passes_.size(part) == 0) return 0.0;
    const double share = running(first, last, part);
    return (sends ? send * share : 0) - overhead * (1 - share);
  };
  return {.total_s = of(run_part::whole), .first_s = of(run_part::first_token), .later_s = of(run_part::later_tokens)};
}

HETPLAN_INLINE double prefix_table::running(std::size_t first, std::size_t last, run_part part) const {
  const auto any = [&](const std::vector<std::uint32_t>& before) { return before[last] > before[first]; };
  if (any(in_all_)) return 1;
  const bool in_first = any(in_first_), in_last = any(in_last_);
  return mean_over(
      passes_, [&](const token_pass& pass) { return (in_first && pass.first) || (in_last && pass.last) ? 1.0 : 0.0; }, part);
}

HETPLAN_INLINE const double* prefix_table::entries(device_id d, int share, int degree) const {
  return (has_entries() ? entry_ : total_).column(column(d, share, degree));
}

HETPLAN_INLINE const double* prefix_table::totals(device_id d, int share, int degree, run_part part) const {
  return part == run_part::whole ? totals(d, share, degree) : sums_of(part).total.column(column(d, share, degree));
}

HETPLAN_INLINE const double* prefix_table::entries(device_id d, int share, int degree, run_part part) const {
  if (part == run_part::whole) return entries(d, share, degree);
  const part_sums& mine = sums_of(part);
  return (has_entries() ? mine.entry : mine.total).column(column(d, share, degree));
}

HETPLAN_INLINE const double* prefix_table::backwards(device_id d, int share, int degree) const {
  return backward_.column(column(d, share, degree));
}

HETPLAN_INLINE const double* prefix_table::backward_entries(device_id d, int share, int degree) const {
  return (has_entries() ? backward_entry_ : backward_).column(column(d, share, degree));
}

HETPLAN_INLINE double prefix_table::optimizer_s(std::size_t first, std::size_t last, device_id d) const {
  if (optimizer_.empty()) return 0;
  return without_repeats(optimizer_.column(d.index()), first, last, [&](const repeat& r) { return r.optimizer_s[d.index()]; });
}

HETPLAN_INLINE double prefix_table::state_bytes(std::size_t first, std::size_t last) const {
  return without_repeats(state_.data(), first, last, [](const repeat& r) { return r.state_bytes; });
}

HETPLAN_INLINE double prefix_table::optimizer_bytes(std::size_t first, std::size_t last) const {
  return without_repeats(optimizer_state_.data(), first, last, [](const repeat& r) { return r.optimizer_bytes; });
}

HETPLAN_INLINE double prefix_table::trainable_bytes(std::size_t first, std::size_t last) const {
  return without_repeats(trainable_.data(), first, last, [](const repeat& r) { return r.trainable_bytes; });
}

HETPLAN_INLINE double prefix_table::tied_bytes(std::size_t first, std::size_t last) const {
  double total = 0;
  for (const repeat& r : repeats_) {
    if (r.before >= first && r.before < last && r.block >= last) total += r.trainable_bytes;
  }
  return total;
}

HETPLAN_INLINE double prefix_table::activation_bytes(std::size_t first, std::size_t last) const {
  double most = 0;
  for (const std::vector<double>& of_shape : activations_) most = std::max(most, of_shape[last] - of_shape[first]);
  return most;
}

HETPLAN_INLINE int prefix_table::samples_of(std::size_t distinct_share) const {
  if (distinct_share < 64) return static_cast<int>(distinct_share) + 1;
  const std::size_t dropped = (distinct_share - 64) / 32 + 1, first_bits = (distinct_share - 64) % 32 + 32;
  return static_cast<int>(std::min(static_cast<std::size_t>(max_share_), (first_bits + 1) << dropped));
}

HETPLAN_INLINE prefix_table::prefix_table(const planning_graph& model, const layer_sequence& sequence, const cluster& c,
                                          const any_cost_model& cost, const any_memory_model& memory, const workload& w, int max_share,
                                          bool recompute)
    : workload_(w), blocks_(sequence.size()), max_share_(max_share), training_(w.mode == mode::training),
      recompute_(training_ && recompute), boundaries_(cost.times_boundaries()), passes_(w, model) {
  check_mode(model, w);
  add_memory(model, sequence, memory, w);
  for (const device& d : c.devices()) {
    first_column_.push_back(first_column_.empty() ? 0 : first_column_.back() + degrees_.back().size() * distinct_);
    degrees_.push_back(usable_degrees(model, d));
  }
  if (std::ranges::any_of(model.layers(), [](const layer& l) { return !l.degrees.empty(); })) {
    for (const std::vector<int>& usable : degrees_) {
      barred_.emplace_back(usable.size(), std::vector<std::uint32_t>(rows()));
      for (std::size_t g = 0; g < usable.size(); ++g) {
        for (std::size_t b = 0; b < blocks_; ++b) {
          std::uint32_t& count = barred_.back()[g][b + 1] = barred_.back()[g][b];
          for (const layer_id id : sequence.blocks[b]) count += model[id].allows(usable[g]) ? 0 : 1;
        }
      }
    }
  }
  const std::size_t columns = first_column_.back() + degrees_.back().size() * distinct_;
  total_ = sums(rows(), columns);
  if (training_) backward_ = sums(rows(), columns);
  if (training_) optimizer_ = sums(rows(), c.size());
  const auto devices = c.devices();
  if (boundaries_ || std::any_of(devices.begin(), devices.end(), [](const device& d) { return d.overhead.value() > 0; })) {
    entry_ = sums(rows(), columns);
    if (training_) backward_entry_ = sums(rows(), columns);
  }
  if (w.mode == mode::generation) {
    for (part_sums& part : of_part_) {
      part.total = sums(rows(), columns);
      if (has_entries()) part.entry = sums(rows(), columns);
    }
    in_all_ = in_first_ = in_last_ = std::vector<std::uint32_t>(rows());
    for (std::size_t b = 0; b < blocks_; ++b) {
      for (std::vector<std::uint32_t>* counts : {&in_all_, &in_first_, &in_last_}) (*counts)[b + 1] = (*counts)[b];
      for (const layer_id id : sequence.blocks[b])
        ++(model[id].runs_per_request() ? in_first_ : model[id].sequence.last_token ? in_last_ : in_all_)[b + 1];
    }
    adjusted_ = in_all_.back() < model.size() && has_entries();
  }
  for (const device& d : devices) {
    send_s_.push_back(d.send_overhead.value());
    sends_ = sends_ || d.send_overhead.value() > 0;
  }
  adjusted_ = adjusted_ || sends_;
  for (const device& d : devices) overheads_s_.push_back((training_ ? 2 : 1) * d.overhead.value());
  for (const device& d : c.devices()) add_times(model, sequence, cost, d);
  if (training_) add_optimizer_steps(model, sequence, cost, c);
}

HETPLAN_INLINE void prefix_table::add_memory(const planning_graph& model, const layer_sequence& sequence, const any_memory_model& memory,
                                             const workload& w) {
  state_ = optimizer_state_ = trainable_ = cache_ = std::vector<double>(rows());
  workspace_ = workspace_table(model, sequence, w);
  const std::vector<token_pass> shapes = shapes_of(passes_);
  activations_.assign(shapes.size(), std::vector<double>(rows()));
  std::vector<std::ptrdiff_t> last_of_group(model.weight_groups().size(), -1);
  for (std::size_t b = 0; b < blocks_; ++b) {
    for (std::vector<double>* sum : {&state_, &optimizer_state_, &trainable_, &cache_}) (*sum)[b + 1] = (*sum)[b];
    for (std::vector<double>& of_shape : activations_) of_shape[b + 1] = of_shape[b];
    for (const layer_id id : sequence.blocks[b]) {
      const layer& l = model[id];
      const double state = checked_bytes(memory.state(l, w), "state", l);
      const double optimizer =
          training_ && memory.has_optimizer_state() ? checked_bytes(memory.optimizer_state(l, w), "optimizer_state", l) : 0;
      state_[b + 1] += state;
      optimizer_state_[b + 1] += optimizer;
      trainable_[b + 1] += l.trainable_weight().value();
      const double activations = checked_bytes(memory.activations(l, w), "activations", l);
      for (std::size_t i = 0; i < shapes.size(); ++i)
        activations_[i][b + 1] += shapes[i].cached ? activations * shapes[i].share_of(l) : activations;
      if (w.mode == mode::generation) cache_[b + 1] += checked_bytes(memory.cache(l, w), "cache", l);
      if (l.weight_group < 0) continue;
      std::ptrdiff_t& before = last_of_group[static_cast<std::size_t>(l.weight_group)];
      if (before >= 0) repeats_.push_back({static_cast<std::size_t>(before), b, state, optimizer, l.trainable_weight().value(), {}, id});
      before = static_cast<std::ptrdiff_t>(b);
    }
  }
}

HETPLAN_INLINE void prefix_table::add_times(const planning_graph& model, const layer_sequence& sequence, const any_cost_model& cost,
                                            const device& d) {
  constexpr std::array phases{phase::forward, phase::backward_input, phase::backward_weight};
  constexpr std::array parts{run_part::first_token, run_part::later_tokens};
  const std::size_t asked = training_ ? 3 : 1;
  std::array<std::vector<double>, 3> times;          ///< by phase, then layer
  std::array<std::vector<double>, 2> times_of_part;  ///< generation: of forwards, by layer
  std::vector<double> of_pass(model.size());
  struct there_and_back {
    double forward = 0, backward = 0;
  };
  const double overhead_s = d.overhead.value(), overheads_s = overheads_s_[d.id.index()];
  for (int number = 1; number <= degrees(d.id); ++number) {
    const int degree = degrees_[d.id.index()][static_cast<std::size_t>(number - 1)];
    for (std::size_t s = 0; s < distinct_; ++s) {
      const double batch = samples_of(s);
      const auto kind = [&](std::size_t i, const token_pass& pass) { return pass.asks(phases[i], batch, degree); };
      for (std::size_t i = 0; i < asked; ++i) {
        times[i].assign(model.size(), 0);
        if (has_parts()) times_of_part.fill(times[i]);
        for (std::size_t k = 0; k < passes_.distinct().size(); ++k) {
          const token_pass& pass = passes_.distinct()[k];
          cost.times_s(model, kind(i, pass), d, of_pass.data());
          for (const layer& l : model.layers()) {
            if (!pass.runs(l)) continue;
            const std::size_t at = l.id.index();
            times[i][at] += passes_.count_of(k) * of_pass[at];
            for (std::size_t p = 0; p < parts.size() && has_parts(); ++p)
              times_of_part[p][at] += passes_.count_of(k, parts[p]) * of_pass[at];
          }
        }
        for (double& s_of_layer : times[i]) s_of_layer /= passes_.size();
      }
      const auto boundary_s = [&](std::size_t i, const layer& before, const layer& l, run_part part) {
        return mean_over(
            passes_,
            [&](const token_pass& pass) {
              return pass.runs(before) && pass.runs(l) ? checked_boundary_s(cost, before, l, kind(i, pass), d) : 0;
            },
            part);
      };
      const auto add = [&](there_and_back& sum, const auto& seconds_in) {
        sum.forward += seconds_in(0);
        for (std::size_t i = 1; i < asked; ++i) sum.backward += seconds_in(i);
        if (recompute_) sum.backward += seconds_in(0);
      };
      const std::size_t at = column(d.id, samples_of(s), number);
      /// Adds up a column. Arguments: seconds of a layer in a phase, and of the boundary between two.
      const auto add_up = [&](run_part part, const auto& layer_s, const auto& put) {
        const layer* before = nullptr;
        for (std::size_t b = 0; b < blocks_; ++b) {
          there_and_back entry, block;  // boundary into the block, and the block itself
          for (const layer_id id : sequence.blocks[b]) {
            const layer& l = model[id];
            if (boundaries_ && before != nullptr) {
              add(id == sequence.blocks[b].front() ? entry : block, [&](std::size_t i) { return boundary_s(i, *before, l, part); });
            }
            add(block, [&](std::size_t i) { return layer_s(i, id.index()); });
            before = &l;
          }
          put(b, entry, block);
        }
      };
      const auto put_total = [&](sums& total, sums& entries) {
        return [&, at](std::size_t b, const there_and_back& entry, const there_and_back& block) {
          const double begin = total(b, at) + entry.forward + entry.backward;
          total(b + 1, at) = begin + block.forward + block.backward;
          if (has_entries()) entries(b, at) = begin - overheads_s;
          if (has_entries() && b + 1 == blocks_) entries(blocks_, at) = total(blocks_, at) - overheads_s;
        };
      };
      const auto whole = put_total(total_, entry_);
      add_up(
          run_part::whole, [&](std::size_t i, std::size_t l) { return times[i][l]; },
          [&](std::size_t b, const there_and_back& entry, const there_and_back& block) {
            whole(b, entry, block);
            if (!training_) return;
            const double begin_back = backward_(b, at) + entry.backward;
            backward_(b + 1, at) = begin_back + block.backward;
            if (has_entries()) backward_entry_(b, at) = begin_back - overhead_s;
            if (has_entries() && b + 1 == blocks_) backward_entry_(blocks_, at) = backward_(blocks_, at) - overhead_s;
          });
      for (std::size_t p = 0; p < parts.size() && has_parts(); ++p) {
        const double passes = std::max(1, passes_.size(parts[p]));
        add_up(
            parts[p], [&](std::size_t, std::size_t l) { return times_of_part[p][l] / passes; },
            put_total(of_part_[p].total, of_part_[p].entry));
      }
    }
  }
}

HETPLAN_INLINE void prefix_table::add_optimizer_steps(const planning_graph& model, const layer_sequence& sequence,
                                                      const any_cost_model& cost, const cluster& c) {
  for (repeat& r : repeats_) r.optimizer_s.assign(c.size(), 0);
  for (const device& d : c.devices()) {
    const std::size_t column = d.id.index();
    for (std::size_t b = 0; b < blocks_; ++b) {
      double step = 0;
      for (const layer_id id : sequence.blocks[b]) {
        if (model[id].trainable_weight().value() > 0) step += checked_optimizer_step_s(cost, model[id], d);
      }
      optimizer_(b + 1, column) = optimizer_(b, column) + step;
    }
    for (repeat& r : repeats_) {
      if (r.trainable_bytes > 0) r.optimizer_s[d.id.index()] = checked_optimizer_step_s(cost, model[r.layer], d);
    }
  }
}

}  // namespace hetplan
