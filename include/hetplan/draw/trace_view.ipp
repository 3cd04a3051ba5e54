// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/trace_view.hpp>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include <hetplan/tasks/expand.hpp>

namespace hetplan::draw {

HETPLAN_INLINE double resource_view::contended_s() const {
  double total = 0;
  for (const resource_load& l : loads) total += l.active > 1 ? l.end_s - l.start_s : 0;
  return total;
}

HETPLAN_INLINE trace_view::trace_view(const plan& p, const cluster& c, const judgement& j)
    : plan_(p), cluster_(c), graph_(j.graph), trace_(j.trace), waits_(j.graph, j.trace) {}

HETPLAN_INLINE bool trace_view::ended(std::size_t compute) const {
  return has_ended(trace_.computes[compute], graph_.computes[compute].duration_s > 0);
}

HETPLAN_INLINE bool trace_view::transfer_ended(std::size_t t) const {
  const tasks::transfer& x = graph_.transfers[t];
  return has_ended(trace_.transfers[t], x.latency_s > 0 || (x.volume_bytes > 0 && !graph_.routes[x.route].via.empty()));
}

HETPLAN_INLINE double trace_view::idle_before_s(std::size_t compute) const {
  return trace_.computes[compute].start_s - waits_.device_free_s(node(compute));
}

HETPLAN_INLINE std::string trace_view::waited_for(std::size_t compute) const {
  const tasks::node_id last = waits_.last_input(node(compute));
  return idle_before_s(compute) <= 1e-9 * latency_s() || last == no_node ? std::string() : node_name(last);
}

HETPLAN_INLINE double trace_view::held_back_s(std::size_t t) const {
  if (graph_.transfers[t].blocks()) return 0;
  return trace_.transfers[t].start_s - waits_.inputs_s(graph_.node_of_transfer(t));
}

HETPLAN_INLINE double trace_view::route_share(std::size_t t) const {
  const tasks::transfer& x = graph_.transfers[t];
  if (x.blocks()) return 1;
  double least_s = 0;
  for (const resource_use& u : graph_.routes[x.route].via) {
    least_s = std::max(least_s, x.volume_bytes * u.weight / cluster_.network()[u.resource].capacity.value());
  }
  const double drain_s = trace_.transfers[t].end_s - drain_start_s(t);
  return drain_s > 0 ? least_s / drain_s : 1;
}

HETPLAN_INLINE std::string trace_view::stage_name(stage_id s) const {
  if (!s.valid() || s.index() >= plan_.stages.size()) return "no stage";
  return plan_.stages[s.index()].name.empty() ? "s" + std::to_string(s.value) : plan_.stages[s.index()].name;
}

HETPLAN_INLINE std::string trace_view::stages_of(device_id d) const {
  constexpr std::size_t most = 8;
  std::string text;
  std::size_t number = 0;
  for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
    for (const assignment& a : plan_.stages[s].devices) {
      if (a.device != d) continue;
      text += (number++ == 0 ? "" : ", ") + stage_name(stage_id(s));
      if (plan_.stages[s].devices.size() > 1) text += " (" + std::to_string(a.samples) + ")";
      if (a.tensor_parallel > 1) text += " ×" + std::to_string(a.tensor_parallel);
    }
  }
  return number > most ? std::to_string(number) + " stages" : text;
}

HETPLAN_INLINE std::string trace_view::bar_label(std::size_t compute) const {
  const tasks::compute_task& t = graph_.computes[compute];
  if (t.what == phase::optimizer_step) return std::string(1, letter(t.what));
  const bool alone = plan_.microbatches == 1 && plan_.pipeline_count() == 1 && plan_.workload.mode != mode::generation;
  return alone ? stage_name(t.stage) : std::to_string(t.microbatch);
}

HETPLAN_INLINE std::string trace_view::device_name(device_id d) const {
  return d.index() < cluster_.size() ? cluster_[d].name : "device " + std::to_string(d.value);
}

HETPLAN_INLINE std::string trace_view::compute_name(std::size_t n) const {
  const tasks::compute_task& t = graph_.computes[n];
  if (t.what == phase::optimizer_step) return "optimizer step " + stage_name(t.stage);
  const char* what = t.what == phase::forward           ? "forward "
                     : t.what == phase::backward_weight ? "weight gradient "
                     : t.again_s > 0                    ? "forward again and backward "
                                                        : "backward ";
  const bool in_units = t.stage.valid() && t.stage.index() < plan_.stages.size() && tasks::moves_state(plan_[t.stage]);
  return what + stage_name(t.stage) + (in_units ? ", unit " + std::to_string(t.unit) : "") + ", microbatch " +
         std::to_string(t.microbatch) + token_name(t.token);
}

HETPLAN_INLINE std::string trace_view::transfer_name(std::size_t n) const {
  const tasks::transfer& t = graph_.transfers[n];
  std::string text = std::string(to_string(t.kind)) + " " + device_name(t.from) + " → " + device_name(t.to);
  if (t.kind == transfer_kind::gather || t.kind == transfer_kind::scatter) text += ", unit " + std::to_string(t.unit);
  if (t.kind != transfer_kind::sync) text += ", microbatch " + std::to_string(t.microbatch) + token_name(t.token);
  if (t.chunk > 0) text += ", chunk " + std::to_string(t.chunk);
  return text;
}

HETPLAN_INLINE std::string trace_view::node_name(tasks::node_id n) const {
  if (graph_.is_transfer(n)) return transfer_name(n - graph_.computes.size());
  return compute_name(n) + " on " + device_name(graph_.computes[n].device);
}

/// Goes through the run once, all resources together.
class trace_view::sweep {
 public:
  sweep(const trace_view& v, sweep_detail detail)
      : v_(v), bands_(detail == sweep_detail::bands), recorded_(!v.trace_.rates.empty()), instant_s_(1e-9 * v.latency_s()),
        states_(v.cluster_.network().resources().size()), rate_(v.graph_.transfers.size(), 0), active_(rate_.size(), 0) {
    for (std::uint32_t t = 0; t < rate_.size(); ++t) {
      if (v.graph_.transfers[t].volume_bytes <= 0 || v.graph_.transfers[t].blocks() || !v.transfer_ended(t)) continue;
      const double end = v.trace_.transfers[t].end_s;
      ends_.push_back({end, true, t});
      ends_.push_back({std::min(v.drain_start_s(t), end), false, t});
    }
    std::sort(ends_.begin(), ends_.end(), [](const end_of& a, const end_of& b) {
      return std::tuple(a.at_s, !a.leaves, a.transfer) < std::tuple(b.at_s, !b.leaves, b.transfer);
    });
  }

  void go() {
    const auto& rates = v_.trace_.rates;
    constexpr double never = std::numeric_limits<double>::infinity();
    for (std::size_t e = 0, r = 0; e < ends_.size() || r < rates.size();) {
      const double now = std::min(e < ends_.size() ? ends_[e].at_s : never, r < rates.size() ? rates[r].at_s : never);
      const double until = now + instant_s_;  // what only rounding tells apart is one time
      for (; e < ends_.size() && ends_[e].at_s <= until; ++e) {
        const std::uint32_t t = ends_[e].transfer;
        if (ends_[e].leaves) leave(t, now);
        else if (v_.trace_.transfers[t].end_s > until) enter(t, now);
      }
      for (; r < rates.size() && rates[r].at_s <= until; ++r) {
        if (active_[rates[r].transfer]) set_rate(rates[r].transfer, rates[r].rate, now);
      }
    }
  }

  [[nodiscard]] std::vector<resource_view> views() {
    std::vector<resource_view> all;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      resource_view& view = states_[i].view;
      if (view.loads.empty()) continue;
      view.resource = resource_id(i);
      view.recorded = recorded_;
      if (!recorded_) {
        for (resource_load& l : view.loads)
          for (double& share : l.kinds) share /= view.peak;
        for (share_band& b : view.bands) b.low /= view.peak, b.high /= view.peak;
        view.peak = 1;
      }
      std::stable_sort(view.bands.begin(), view.bands.end(),
                       [](const share_band& a, const share_band& b) { return a.transfer < b.transfer; });
      join(view.bands,
           [](const share_band& a, const share_band& b) { return a.transfer == b.transfer && a.low == b.low && a.high == b.high; });
      join(view.loads, [](const resource_load& a, const resource_load& b) { return a.kinds == b.kinds && a.active == b.active; });
      all.push_back(std::move(view));
    }
    return all;
  }

 private:
  template <class Pieces, class Same>
  static void join(Pieces& pieces, Same&& same) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (kept > 0 && pieces[kept - 1].end_s == pieces[i].start_s && same(pieces[kept - 1], pieces[i])) {
        pieces[kept - 1].end_s = pieces[i].end_s;
      } else {
        pieces[kept++] = pieces[i];
      }
    }
    pieces.resize(kept);
  }

  struct end_of {
    double at_s;
    bool leaves;
    std::uint32_t transfer;
  };
  struct member {
    std::uint32_t transfer;
    double share_per_rate;
    std::size_t lane;
  };
  struct state {
    resource_view view;
    std::vector<member> members;  ///< bands only: in the order of entering
    std::array<double, transfer_kind_count> kinds = {};
    std::uint32_t active = 0;
    double since_s = 0;
  };

  [[nodiscard]] const std::vector<resource_use>& via(std::uint32_t t) const { return v_.graph_.routes[v_.graph_.transfers[t].route].via; }
  [[nodiscard]] std::size_t kind(std::uint32_t t) const { return static_cast<std::size_t>(v_.graph_.transfers[t].kind); }
  [[nodiscard]] double share_per_rate(const resource_use& u) const {
    return recorded_ ? u.weight / v_.cluster_.network()[u.resource].capacity.value() : 1;
  }

  void enter(std::uint32_t t, double now) {
    active_[t] = 1;
    for (const resource_use& u : via(t)) {
      state& s = states_[u.resource.index()];
      flush(s, now);
      ++s.active;
      if (!bands_) continue;
      std::size_t lane = 0;
      while (std::any_of(s.members.begin(), s.members.end(), [&](const member& m) { return m.lane == lane; })) ++lane;
      s.members.push_back({t, share_per_rate(u), lane});
    }
    if (!recorded_) set_rate(t, 1, now);
  }
  void leave(std::uint32_t t, double now) {
    if (!active_[t]) return;
    set_rate(t, 0, now);
    active_[t] = 0;
    for (const resource_use& u : via(t)) {
      state& s = states_[u.resource.index()];
      flush(s, now);
      if (--s.active == 0) s.kinds = {};  // rounding ends here
      if (bands_) s.members.erase(std::find_if(s.members.begin(), s.members.end(), [&](const member& m) { return m.transfer == t; }));
    }
  }
  void set_rate(std::uint32_t t, double rate, double now) {
    for (const resource_use& u : via(t)) {
      state& s = states_[u.resource.index()];
      flush(s, now);
      s.kinds[kind(t)] = std::max(0.0, s.kinds[kind(t)] + (rate - rate_[t]) * share_per_rate(u));
    }
    rate_[t] = rate;
  }

  /// Writes down what held until now.
  void flush(state& s, double now) {
    if (s.active == 0) s.since_s = now;
    if (now - s.since_s <= instant_s_) return;
    const resource_load load{s.since_s, now, s.kinds, s.active};
    s.view.loads.push_back(load);
    s.view.pieces += s.active;
    s.view.peak = std::max(s.view.peak, load.share());
    double level = 0;
    for (const member& m : s.members) {
      const double share = rate_[m.transfer] * m.share_per_rate, low = recorded_ ? level : static_cast<double>(m.lane);
      s.view.bands.push_back({m.transfer, s.since_s, now, low, low + share});
      level += share;
    }
    s.since_s = now;
  }

  const trace_view& v_;
  bool bands_, recorded_;
  double instant_s_;
  std::vector<state> states_;  ///< by resource
  std::vector<double> rate_;   ///< by transfer
  std::vector<char> active_;
  std::vector<end_of> ends_;
};

HETPLAN_INLINE std::vector<resource_view> trace_view::resources(sweep_detail detail) const {
  sweep run{*this, detail};
  run.go();
  return run.views();
}

HETPLAN_INLINE std::string trace_view::token_name(int token) const {
  return plan_.workload.mode == mode::generation ? ", token " + std::to_string(token) : std::string();
}

}  // namespace hetplan::draw
