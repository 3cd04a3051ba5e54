// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/chrome_trace.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <range/v3/view/transform.hpp>

#include <hetplan/draw/svg.hpp>
#include <hetplan/draw/trace_view.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::draw {

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::string json_string(std::string_view text) {
  return io::json(text).dump(-1, ' ', false, io::json::error_handler_t::replace);
}

/// Collects events one per line. Times are rounded to nanoseconds once, so that neighbours never overlap.
class chrome_trace_writer {
 public:
  using members = std::vector<std::pair<std::string_view, std::string>>;  ///< values are JSON already

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

/// Shortest text that reads back to the same double; 0 if not finite, since JSON has no such number.
[[nodiscard]] HETPLAN_INLINE std::string json_double(double v) { return std::isfinite(v) ? to_text(v) : "0"; }

/// Threads for intervals that overlap: the first lane that is free at the start.
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
      if (p.workload.mode == mode::generation) args.emplace_back("token", std::to_string(t.token));
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

}  // namespace hetplan::draw
