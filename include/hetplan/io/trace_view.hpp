// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What pictures read out of a judgement: names, who waited for what, how every resource was shared.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::io {

/// A transfer's part of a resource during [start_s, end_s): from `low` to `high` of its capacity.
struct share_band {
  std::uint32_t transfer = 0;
  double start_s = 0, end_s = 0;
  double low = 0, high = 0;
};

/// During [start_s, end_s), `active` transfers (starved ones included) take `share` of the capacity.
struct resource_load {
  double start_s = 0, end_s = 0;
  double share = 0;
  std::uint32_t active = 0;
};

/// How one resource was shared over time. Contention is more than one transfer at a time.
struct resource_view {
  resource_id resource;
  bool recorded = true;             ///< false: no rates in the trace, bands are equal lanes without meaning
  std::vector<share_band> bands;    ///< by (transfer, time), joined where nothing changes
  std::vector<resource_load> loads; ///< in time order, without gaps of their own; idle times are left out
  double peak = 0;                  ///< the largest share

  [[nodiscard]] double contended_s() const {
    double total = 0;
    for (const resource_load& l : loads) total += l.active > 1 ? l.end_s - l.start_s : 0;
    return total;
  }
};

/// A judgement, read for pictures. Refers to its arguments, which must outlive it.
///
/// Complexity  O(nodes + dependencies), and for each resource events * transfers active at a time.
class trace_view {
 public:
  trace_view(const plan& p, const cluster& c, const judgement& j) : plan_(p), cluster_(c), graph_(j.graph), trace_(j.trace) {
    find_waits();
    previous_end_s_.assign(graph_.computes.size(), 0);
    for (const auto& order : graph_.device_order) {
      for (std::size_t i = 1; i < order.size(); ++i) previous_end_s_[order[i]] = trace_.computes[order[i - 1]].end_s;
    }
  }

  [[nodiscard]] double latency_s() const { return trace_.latency.value(); }
  /// Did it end? A stopped trace has tasks that never did.
  [[nodiscard]] bool ended(std::size_t compute) const { return has_ended(trace_.computes[compute], graph_.computes[compute].duration_s > 0); }
  [[nodiscard]] bool transfer_ended(std::size_t t) const {
    const tasks::transfer& x = graph_.transfers[t];
    return has_ended(trace_.transfers[t], x.latency_s > 0 || (x.volume_bytes > 0 && !graph_.routes[x.route].via.empty()));
  }

  /// How long the device stood idle before the task.
  [[nodiscard]] double idle_before_s(std::size_t compute) const { return trace_.computes[compute].start_s - previous_end_s_[compute]; }
  /// What the device waited for, "" if it did not.
  [[nodiscard]] std::string waited_for(std::size_t compute) const {
    if (idle_before_s(compute) <= 1e-9 * latency_s() || last_[compute] == nothing) return {};
    return node_name(last_[compute]);
  }
  /// From the end of its producer until the transfer may use its route (release time, ports).
  [[nodiscard]] double held_back_s(std::size_t t) const { return trace_.transfers[t].start_s - ready_s_[graph_.computes.size() + t]; }
  /// When its first byte moves: the latency is over.
  [[nodiscard]] double drain_start_s(std::size_t t) const { return trace_.transfers[t].start_s + graph_.transfers[t].latency_s; }
  /// Mean rate over the route's peak; 1 = had it for itself.
  [[nodiscard]] double route_share(std::size_t t) const {
    const tasks::transfer& x = graph_.transfers[t];
    double least_s = 0;
    for (const resource_use& u : graph_.routes[x.route].via) {
      least_s = std::max(least_s, x.volume_bytes * u.weight / cluster_.network()[u.resource].capacity.value());
    }
    const double drain_s = trace_.transfers[t].end_s - drain_start_s(t);
    return drain_s > 0 ? least_s / drain_s : 1;
  }

  [[nodiscard]] std::string stage_name(stage_id s) const {
    if (!s.valid() || s.index() >= plan_.stages.size()) return "no stage";
    return plan_.stages[s.index()].name.empty() ? "s" + std::to_string(s.value) : plan_.stages[s.index()].name;
  }
  [[nodiscard]] std::string device_name(device_id d) const { return d.index() < cluster_.size() ? cluster_[d].name : "device " + std::to_string(d.value); }
  /// "forward s1, microbatch 3": an unsplit backward is just that.
  [[nodiscard]] std::string compute_name(std::size_t n) const {
    const tasks::compute_task& t = graph_.computes[n];
    const char* what = t.what == phase::forward ? "forward " : t.what == phase::backward_input ? "backward " : "weight gradient ";
    return what + stage_name(t.stage) + ", microbatch " + std::to_string(t.microbatch) + step_name(t.step);
  }
  [[nodiscard]] std::string transfer_name(std::size_t n) const {
    const tasks::transfer& t = graph_.transfers[n];
    std::string text = std::string(to_string(t.kind)) + " " + device_name(t.from) + " → " + device_name(t.to);
    if (t.kind != transfer_kind::sync) text += ", microbatch " + std::to_string(t.microbatch) + step_name(t.step);
    if (t.chunk > 0) text += ", chunk " + std::to_string(t.chunk);
    return text;
  }

  /// Every resource that carried a transfer, by id.
  [[nodiscard]] std::vector<resource_view> resources() const {
    std::vector<std::vector<event>> events(cluster_.network().resources().size());
    const bool recorded = !trace_.rates.empty();
    for (std::uint32_t t = 0; t < graph_.transfers.size(); ++t) {
      if (graph_.transfers[t].volume_bytes <= 0 || !transfer_ended(t)) continue;
      for (const resource_use& u : graph_.routes[graph_.transfers[t].route].via) {
        events[u.resource.index()].push_back({trace_.transfers[t].end_s, t, -1});
        events[u.resource.index()].push_back({std::min(drain_start_s(t), trace_.transfers[t].end_s), t, 0});
      }
    }
    for (const rate_change& change : trace_.rates) {
      if (change.rate <= 0 && change.at_s >= trace_.transfers[change.transfer].end_s) continue;
      for (const resource_use& u : graph_.routes[graph_.transfers[change.transfer].route].via) {
        const double capacity = cluster_.network()[u.resource].capacity.value();
        if (transfer_ended(change.transfer)) events[u.resource.index()].push_back({change.at_s, change.transfer, 1 + change.rate * u.weight / capacity});
      }
    }
    std::vector<resource_view> views;
    for (std::size_t r = 0; r < events.size(); ++r) {
      if (!events[r].empty()) views.push_back(sweep(resource_id(r), events[r], recorded));
    }
    return views;
  }

 private:
  /// A transfer leaves (-1), enters (0) or has a new share (1 + share) of a resource: in this order at one time.
  struct event {
    double at_s;
    std::uint32_t transfer;
    double what;
  };
  struct member {
    std::uint32_t transfer;
    double share;
    std::size_t lane;
  };
  static constexpr tasks::node_id nothing = ~tasks::node_id{0};

  static bool has_ended(const interval& i, bool takes_time) { return i.end_s >= i.start_s && (!takes_time || i.end_s > 0); }
  [[nodiscard]] std::string step_name(int step) const {
    return plan_.workload.mode == mode::generation ? ", token " + std::to_string(step) : std::string();
  }
  [[nodiscard]] std::string node_name(tasks::node_id n) const {
    if (graph_.is_transfer(n)) return transfer_name(n - graph_.computes.size());
    return compute_name(n) + " on " + device_name(graph_.computes[n].device);
  }

  /// When each node had all its predecessors, and which came last (barriers stand for their own last).
  void find_waits() {
    ready_s_.assign(graph_.size(), 0);
    last_.assign(graph_.size(), nothing);
    auto waiting = graph_.predecessors;
    std::vector<tasks::node_id> open;
    for (tasks::node_id n = 0; n < graph_.size(); ++n) {
      if (waiting[n] == 0) open.push_back(n);
    }
    while (!open.empty()) {
      const tasks::node_id n = open.back();
      open.pop_back();
      const bool barrier = !graph_.is_compute(n) && !graph_.is_transfer(n);
      const double end = graph_.is_compute(n) ? trace_.computes[n].end_s : barrier ? ready_s_[n] : trace_.transfers[n - graph_.computes.size()].end_s;
      const tasks::node_id who = barrier ? last_[n] : n;
      for (const tasks::node_id m : graph_.successors_of(n)) {
        if (who != nothing && (last_[m] == nothing || end > ready_s_[m] || (end == ready_s_[m] && who < last_[m]))) {
          ready_s_[m] = end;
          last_[m] = who;
        }
        if (--waiting[m] == 0) open.push_back(m);
      }
    }
  }

  /// Goes through the events in time, transfers stacked in the order of entering.
  [[nodiscard]] resource_view sweep(resource_id r, std::vector<event>& events, bool recorded) const {
    std::stable_sort(events.begin(), events.end(), [](const event& a, const event& b) {
      return std::tuple(a.at_s, std::min(a.what, 1.0)) < std::tuple(b.at_s, std::min(b.what, 1.0));
    });
    const double instant = 1e-9 * latency_s();  // ends and starts that only rounding tells apart
    resource_view view{.resource = r, .recorded = recorded, .bands = {}, .loads = {}};
    std::vector<member> active;
    std::size_t lanes = 0;
    for (std::size_t i = 0; i < events.size();) {
      const double now = events[i].at_s;
      for (; i < events.size() && events[i].at_s <= now + instant; ++i) {
        const auto it = std::find_if(active.begin(), active.end(), [&](const member& m) { return m.transfer == events[i].transfer; });
        if (events[i].what < 0) {
          if (it != active.end()) active.erase(it);
        } else if (events[i].what >= 1) {
          if (it != active.end()) it->share = events[i].what - 1;
        } else if (trace_.transfers[events[i].transfer].end_s > now + instant) {
          std::size_t lane = 0;
          while (std::any_of(active.begin(), active.end(), [&](const member& m) { return m.lane == lane; })) ++lane;
          lanes = std::max(lanes, lane + 1);
          active.push_back({events[i].transfer, 0, lane});
        }
      }
      if (i == events.size() || active.empty()) continue;
      const double until = events[i].at_s;
      double level = 0;
      for (const member& m : active) {
        const auto lane = static_cast<double>(m.lane);
        view.bands.push_back({m.transfer, now, until, recorded ? level : lane, recorded ? level + m.share : lane + 1});
        level += m.share;
      }
      view.loads.push_back({now, until, level, static_cast<std::uint32_t>(active.size())});
      view.peak = std::max(view.peak, level);
    }
    if (!recorded) {
      for (share_band& b : view.bands) {
        b.low /= static_cast<double>(lanes);
        b.high /= static_cast<double>(lanes);
      }
    }
    std::stable_sort(view.bands.begin(), view.bands.end(), [](const share_band& a, const share_band& b) { return a.transfer < b.transfer; });
    join(view.bands, [](const share_band& a, const share_band& b) { return a.transfer == b.transfer && a.low == b.low && a.high == b.high; });
    join(view.loads, [](const resource_load& a, const resource_load& b) { return a.share == b.share && a.active == b.active; });
    return view;
  }

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

  const plan& plan_;
  const cluster& cluster_;
  const tasks::task_graph& graph_;
  const trace& trace_;
  std::vector<double> ready_s_;         ///< by node
  std::vector<tasks::node_id> last_;    ///< by node: the predecessor that came last
  std::vector<double> previous_end_s_;  ///< by compute task
};

}  // namespace hetplan::io
