// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/trace_view.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include <range/v3/view/transform.hpp>

#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/tasks/transfer_sender.hpp>

namespace hetplan::draw {

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::string json_string(std::string_view text) {
  return io::json(text).dump(-1, ' ', false, io::json::error_handler_t::replace);
}

/// Writer of events, one per line. Times are rounded to nanoseconds once, so that neighbours never overlap.
class chrome_trace_writer {
 public:
  using members = std::vector<std::pair<std::string_view, std::string>>;  ///< values are JSON

  void name(std::string_view what, int process, int thread, std::string_view given) {
    event(head(what, "M", process, thread) + ",\"args\":{\"name\":" + json_string(given) + "}");
  }
  void sort_index(std::string_view what, int process, int thread, int index) {
    event(head(what, "M", process, thread) + ",\"args\":{\"sort_index\":" + std::to_string(index) + "}");
  }
  void slice(std::string_view title, std::string_view category, int process, int thread, double start_s, double end_s,
             const members& args) {
    const std::int64_t start = nanoseconds(start_s), end = std::max(start, nanoseconds(end_s));
    event(head(title, "X", process, thread) + ",\"cat\":" + json_string(category) + ",\"ts\":" + microseconds(start) +
          ",\"dur\":" + microseconds(end - start) + arguments(args));
  }
  void counter(std::string_view title, int process, double at_s, const members& values) {
    event(head(title, "C", process, 0) + ",\"ts\":" + microseconds(nanoseconds(at_s)) + arguments(values));
  }
  [[nodiscard]] std::string document(const members& about) && {
    return "{\"displayTimeUnit\":\"ms\",\"otherData\":" + object(about) + ",\"traceEvents\":[\n" + std::move(events_) + "\n]}\n";
  }

 private:
  static std::int64_t nanoseconds(double t) { return std::llround(std::clamp(1e9 * t, 0.0, 9e18)); }
  static std::string microseconds(std::int64_t ns) {
    const std::string rest = std::to_string(ns % 1000);
    return std::to_string(ns / 1000) + (ns % 1000 == 0 ? std::string() : "." + std::string(3 - rest.size(), '0') + rest);
  }
  static std::string head(std::string_view title, std::string_view kind, int process, int thread) {
    return "{\"name\":" + json_string(title) + ",\"ph\":" + json_string(kind) + ",\"pid\":" + std::to_string(process) +
           ",\"tid\":" + std::to_string(thread);
  }
  static std::string arguments(const members& args) { return args.empty() ? "" : ",\"args\":" + object(args); }
  static std::string object(const members& all) {
    const auto member = [](const auto& m) { return json_string(m.first) + ":" + m.second; };
    return "{" + io::joined(all | ranges::views::transform(member), ",") + "}";
  }
  void event(const std::string& text) {
    if (!events_.empty()) events_ += ",\n";
    events_ += text;
    events_ += '}';
  }

  std::string events_;
};

/// Returns the shortest text that reads back to the same double; "0" if not finite, as JSON has no such number.
[[nodiscard]] HETPLAN_INLINE std::string json_double(double v) { return std::isfinite(v) ? to_text(v) : "0"; }

/// Assigns overlapping intervals to lanes: the first lane that is free at the start.
class lane_allocator {
 public:
  [[nodiscard]] std::size_t take(double start_s, double end_s) {
    const auto it = std::find_if(free_from_.begin(), free_from_.end(), [&](double t) { return t <= start_s; });
    const auto lane = static_cast<std::size_t>(it - free_from_.begin());
    if (it == free_from_.end()) free_from_.push_back(end_s);
    else *it = end_s;
    return lane;
  }
  [[nodiscard]] std::size_t size() const { return free_from_.size(); }

 private:
  std::vector<double> free_from_;
};

}  // namespace detail

HETPLAN_INLINE std::string chrome_trace(const plan& p, const cluster& c, const judgement& j) {
  constexpr int devices = 1, network = 2;
  const trace_view view(p, c, j);
  const tasks::task_graph& g = j.graph;
  const auto number = detail::json_double;
  detail::chrome_trace_writer out;

  out.name("process_name", devices, 0, "devices");
  out.sort_index("process_sort_index", devices, 0, devices);
  for (std::size_t d = 0; d < c.size(); ++d) {
    if (!g.used[d]) continue;
    const int thread = static_cast<int>(d) + 1;
    out.name("thread_name", devices, thread, c.devices()[d].name);
    out.sort_index("thread_sort_index", devices, thread, thread);
    for (const tasks::node_id n : g.device_order[d]) {
      if (!view.ended(n)) continue;
      const tasks::compute_task& t = g.computes[n];
      detail::chrome_trace_writer::members args{{"stage", detail::json_string(view.stage_name(t.stage))},
                                                {"microbatch", std::to_string(t.microbatch)},
                                                {"samples", std::to_string(t.last_sample - t.first_sample)},
                                                {"idle_before", number(view.idle_before_s(n))}};
      if (p.workload.mode == mode::generation) args.emplace_back("pass", std::to_string(t.pass));
      if (std::string reason = view.waited_for(n); !reason.empty()) args.emplace_back("waited_for", detail::json_string(reason));
      if (t.again_s > 0) args.emplace_back("forward_again", number(t.again_s));
      if (t.takes_bytes > 0) args.emplace_back("takes_memory", number(t.takes_bytes));
      if (t.releases_bytes > 0) args.emplace_back("releases_memory", number(t.releases_bytes));
      const std::string name = std::string(1, letter(t.what)) + " " + view.stage_name(t.stage);
      out.slice(t.what == phase::optimizer_step ? name : name + " " + std::to_string(t.microbatch), to_string(t.what), devices, thread,
                j.trace.computes[n].start_s, j.trace.computes[n].end_s, args);
    }
  }
  if (!j.trace.memory.empty()) {
    for (std::size_t d = 0; d < c.size(); ++d) {
      if (g.used[d]) out.counter("memory " + c.devices()[d].name, devices, 0, {{"bytes", number(g.static_bytes[d])}});
    }
    for (const memory_change& m : j.trace.memory) {
      out.counter("memory " + c.devices()[m.device].name, devices, m.at_s, {{"bytes", number(m.held_bytes)}});
    }
  }

  out.name("process_name", network, 0, "network");
  out.sort_index("process_sort_index", network, 0, network);
  std::vector<std::vector<std::uint32_t>> carried(c.network().resources().size());
  for (std::uint32_t t = 0; t < g.transfers.size(); ++t) {
    if (g.transfers[t].volume_bytes <= 0 || !view.transfer_ended(t)) continue;
    for (const resource_use& u : g.routes[g.transfers[t].route].via) carried[u.resource.index()].push_back(t);
  }
  int thread = 0;
  for (std::size_t r = 0; r < carried.size(); ++r) {
    const std::string& name = c.network().resources()[r].name;
    std::sort(carried[r].begin(), carried[r].end(),
              [&](std::uint32_t a, std::uint32_t b) { return std::pair(view.drain_start_s(a), a) < std::pair(view.drain_start_s(b), b); });
    detail::lane_allocator lanes;
    for (const std::uint32_t t : carried[r]) {
      const tasks::transfer& x = g.transfers[t];
      const double start = view.drain_start_s(t), end = j.trace.transfers[t].end_s;
      const std::size_t lane = lanes.take(start, end);
      detail::chrome_trace_writer::members args{{"from", detail::json_string(view.device_name(x.from))},
                                                {"to", detail::json_string(view.device_name(x.to))},
                                                {"bytes", number(x.volume_bytes)},
                                                {"microbatch", std::to_string(x.microbatch)},
                                                {"latency", number(x.latency_s)},
                                                {"held_back", number(view.held_back_s(t))},
                                                {"share_of_peak", number(view.route_share(t))}};
      if (x.priority != 0) args.emplace_back("priority", std::to_string(x.priority));
      if (x.chunk > 0) args.emplace_back("chunk", std::to_string(x.chunk));
      out.slice(view.transfer_name(t), to_string(x.kind), network, thread + static_cast<int>(lane) + 1, start, end, args);
    }
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      ++thread;
      out.name("thread_name", network, thread, lanes.size() == 1 ? name : name + " (" + std::to_string(lane + 1) + ")");
      out.sort_index("thread_sort_index", network, thread, thread);
    }
  }
  for (const resource_view& r : view.resources()) {
    const std::string& name = c.network()[r.resource].name;
    double until = 0;
    const auto count = [&](double at_s, double share, std::uint32_t active) {
      if (r.recorded) out.counter("use of " + name, network, at_s, {{"share", number(share)}});
      out.counter("transfers on " + name, network, at_s, {{"active", std::to_string(active)}});
    };
    for (const resource_load& l : r.loads) {
      if (l.start_s > until) count(until, 0, 0);
      count(l.start_s, l.share(), l.active);
      until = l.end_s;
    }
    count(until, 0, 0);
  }

  return std::move(out).document({{"model", detail::json_string(p.model)},
                                  {"cluster", detail::json_string(p.cluster)},
                                  {"planner", detail::json_string(p.planner)},
                                  {"mode", detail::json_string(to_string(p.workload.mode))},
                                  {"latency", number(j.evaluation.latency.value())},
                                  {"bound", number(j.evaluation.bound.value())},
                                  {"status", detail::json_string(to_string(j.trace.status.result))}});
}

HETPLAN_INLINE double resource_view::contended_s() const {
  double total = 0;
  for (const resource_load& l : loads) total += l.active > 1 ? l.end_s - l.start_s : 0;
  return total;
}

HETPLAN_INLINE trace_view::trace_view(const plan& p, const cluster& c, const judgement& j)
    : plan_(p), cluster_(c), graph_(j.graph), trace_(j.trace), wait_states_(j.graph, j.trace) {}

HETPLAN_INLINE bool trace_view::ended(std::size_t compute) const {
  return has_ended(trace_.computes[compute], graph_.computes[compute].duration_s > 0);
}

HETPLAN_INLINE bool trace_view::transfer_ended(std::size_t t) const {
  const tasks::transfer& x = graph_.transfers[t];
  return has_ended(trace_.transfers[t], x.latency_s > 0 || (x.volume_bytes > 0 && !graph_.routes[x.route].via.empty()));
}

HETPLAN_INLINE double trace_view::idle_before_s(std::size_t compute) const {
  return trace_.computes[compute].start_s - wait_states_.device_free_s(node(compute));
}

HETPLAN_INLINE std::string trace_view::waited_for(std::size_t compute) const {
  const tasks::node_id last = wait_states_.last_input(node(compute));
  return idle_before_s(compute) <= 1e-9 * latency_s() || last == no_node ? std::string() : node_name(last);
}

HETPLAN_INLINE double trace_view::held_back_s(std::size_t t) const {
  if (graph_.transfers[t].blocks()) return 0;
  return trace_.transfers[t].start_s - wait_states_.inputs_s(graph_.node_of_transfer(t));
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
         std::to_string(t.microbatch) + pass_name(t.pass);
}

HETPLAN_INLINE std::string trace_view::transfer_name(std::size_t n) const {
  const tasks::transfer& t = graph_.transfers[n];
  std::string text = std::string(to_string(t.kind)) + " " + device_name(t.from) + " → " + device_name(t.to);
  if (t.kind == transfer_kind::gather || t.kind == transfer_kind::scatter) text += ", unit " + std::to_string(t.unit);
  if (t.kind != transfer_kind::sync) text += ", microbatch " + std::to_string(t.microbatch) + pass_name(t.pass);
  if (t.chunk > 0) text += ", chunk " + std::to_string(t.chunk);
  return text;
}

HETPLAN_INLINE std::string trace_view::node_name(tasks::node_id n) const {
  if (graph_.is_transfer(n)) return transfer_name(n - graph_.computes.size());
  return compute_name(n) + " on " + device_name(graph_.computes[n].device);
}

/// Sweeps over the run once, for all resources together.
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
      const double until = now + instant_s_;  // times that differ by rounding alone are equal
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
    std::vector<member> members;  ///< with bands only, in the order of entry
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
      if (--s.active == 0) s.kinds = {};  // removes accumulated rounding errors
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

  /// Records the load since the last change.
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

HETPLAN_INLINE std::string trace_view::pass_name(int pass) const {
  return plan_.workload.mode == mode::generation ? ", pass " + std::to_string(pass) : std::string();
}

}  // namespace hetplan::draw
