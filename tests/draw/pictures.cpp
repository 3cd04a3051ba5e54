// SPDX-License-Identifier: BSL-1.0
// Gantt charts, Chrome traces and DOT graphs: well formed for any names, and true to the trace.

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <hetplan/draw/dot.hpp>
#include <hetplan/draw/gantt.hpp>
#include <hetplan/draw/report.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/draw/trace_view.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/placers.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/observed_run.hpp>

#include "draw/markup.hpp"

using namespace hetplan;

namespace {

/// Returns true if braces balance outside quoted strings and all strings end.
bool dot_balanced(const std::string& text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') ++i;
    else if (text[i] == '"') quoted = !quoted;
    else if (!quoted && text[i] == '{') ++depth;
    else if (!quoted && text[i] == '}') --depth;
    if (depth < 0) return false;
  }
  return depth == 0 && !quoted;
}

planning_graph chain(int layers, bytes between, const std::string& name = "toy") {
  planning_graph_builder b(name);
  for (int i = 0; i < layers; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = 2_GFLOP, .weight = 4_MB, .activation = 3_MB});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), between);
  }
  return std::move(b).build();
}

template <class Network>
cluster devices(int n, const Network& net, const std::string& prefix = "d") {
  std::vector<device> all;
  for (int i = 0; i < n; ++i) all.push_back({.name = prefix + std::to_string(i), .memory = 4_GB, .compute = 1_TFLOP_per_s});
  return {"home", std::move(all), net};
}

/// Returns a plan whose stage i holds layers [i n / stages, (i + 1) n / stages) on device i.
plan pipeline(const planning_graph& g, int stages, int microbatches, workload w = {}) {
  plan p{.model = g.name(), .cluster = "home", .planner = "by hand", .workload = w, .microbatch_size = 2, .microbatches = microbatches};
  const int n = static_cast<int>(g.size());
  for (int s = 0; s < stages; ++s) {
    p.stages.push_back({.name = "s" + std::to_string(s), .devices = {{device_id(s), 2}}});
    for (int l = s * n / stages; l < (s + 1) * n / stages; ++l) p.stages.back().layers.push_back(layer_id(l));
  }
  return p;
}

judgement run(const plan& p, const planning_graph& g, const cluster& c, bool record = true) {
  return evaluate(p, g, c, roofline{}, {}, no_lp{}, simulator_options{.record = record});
}

/// A plan whose transfers meet: with two microbatches in flight, they share the medium.
struct contended {
  planning_graph model = chain(2, 1_MB);
  cluster home = devices(2, shared_medium{100_Mbit_per_s, 1_ms});
  plan p = pipeline(model, 2, 4);
  judgement j = run(p, model, home);
};

std::string palette_of(phase p) { return draw::palette::phase_color(p, 0, 2).hex(); }

constexpr const char* nasty = "a<b>&\"'\\\n\t\x01\xff\xC3\xA4 \xE2\x86\x92 ]]> {x} &amp;";

}  // namespace

TEST_CASE("numbers are written with three digits and the prefix that fits") {
  CHECK(draw::fixed(1.5) == "1.5");
  CHECK(draw::fixed(-0.001) == "0");
  CHECK(draw::fixed(100) == "100");
  CHECK(draw::fixed(1e300 * 1e300) == "0");
  CHECK(draw::engineering(1.934, "s") == "1.93 s");
  CHECK(draw::engineering(0.214, "s") == "214 ms");
  CHECK(draw::engineering(40e-6, "s") == "40 µs");
  CHECK(draw::engineering(0, "s") == "0 s");
  CHECK(draw::engineering(526.4, "s") == "526 s");
  CHECK(draw::engineering(0.9999, "s") == "1 s");
  CHECK(draw::engineering(999.6e6, "B") == "1 GB");
  CHECK(draw::engineering(4, "B") == "4 B");
  CHECK(draw::engineering(600e6, "bit/s") == "600 Mbit/s");
}

TEST_CASE("escapes leave nothing that a parser could trip over") {
  CHECK(draw::xml_text("<&\">\n") == "&lt;&amp;&quot;&gt;&#10;");
  CHECK(draw::xml_text("\x01") == "\xEF\xBF\xBD");
  CHECK(draw::xml_text("\xff\xC3\xA4\xED\xA0\x80") == "\xEF\xBF\xBD\xC3\xA4\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(draw::dot_string("a\"b\\n\n&lt;") == "\"a\\\"b\\\\n\\n&amp;lt;\"");
  contended x;
  x.p.planner = nasty;
  CHECK(nlohmann::json::parse(draw::chrome_trace(x.p, x.home, x.j))["otherData"]["planner"] ==
        "a<b>&\"'\\\n\t\x01\xEF\xBF\xBD\xC3\xA4 \xE2\x86\x92 ]]> {x} &amp;");
  CHECK(draw::fitted("äöü", 3) == "äöü");
  CHECK(draw::fitted("äöüß", 3) == "äö…");
}

TEST_CASE("a Gantt chart is well-formed and the same bytes each time") {
  const contended x;
  const std::string svg = draw::gantt_svg(x.p, x.home, x.j);
  CHECK(test::markup_fault(svg) == "");
  CHECK(svg == draw::gantt_svg(x.p, x.home, run(x.p, x.model, x.home)));
  CHECK(svg.find("toy on home") != std::string::npos);
  CHECK(svg.find("forward s0, microbatch 3") != std::string::npos);
  CHECK(svg.find("backward d1 → d0, microbatch 0") != std::string::npos);
  CHECK(svg.find("waiting for") != std::string::npos);
  CHECK(svg.find("100 Mbit/s") != std::string::npos);
  CHECK(svg.find("% slower than the best plan") != std::string::npos);
  CHECK(svg.find("memory at most") != std::string::npos);
  CHECK(draw::gantt_svg(x.p, x.home, x.j, {.memory = false}).find("memory at most") == std::string::npos);
  CHECK(svg.find(">bound<") != std::string::npos);
}

TEST_CASE("contention is marked exactly where transfers share a resource") {
  const contended x;
  const std::string svg = draw::gantt_svg(x.p, x.home, x.j);
  CHECK(svg.find("data-mark=\"contention\"") != std::string::npos);
  CHECK(svg.find("transfers share shared") != std::string::npos);
  CHECK(svg.find("% contended") != std::string::npos);

  // With one microbatch, transfers never meet.
  const plan one = pipeline(x.model, 2, 1);
  const std::string calm = draw::gantt_svg(one, x.home, run(one, x.model, x.home));
  CHECK(calm.find("contention") == std::string::npos);
  CHECK(calm.find("contended") == std::string::npos);
  CHECK(calm.find("forward d0 → d1") != std::string::npos);

  // Exclusive transfers take turns: the end of one and the start of the next are no contention.
  plan turns = pipeline(x.model, 2, 4, {.mode = mode::inference});
  turns.sharing_policy = sharing::exclusive;
  const std::string taking_turns = draw::gantt_svg(turns, x.home, run(turns, x.model, x.home));
  CHECK(taking_turns.find("contention") == std::string::npos);
  CHECK(taking_turns.find("held back for") != std::string::npos);
  CHECK(svg.find("held back for") == std::string::npos);
}

TEST_CASE("a transfer that first waits for more urgent ones has its band where it runs") {
  const planning_graph model = chain(1, 1_MB);
  const cluster home = devices(2, shared_medium{100_Mbit_per_s, 0_s});
  plan p{.model = "toy", .cluster = "home", .microbatch_size = 2, .microbatches = 1};
  p.stages = {{.name = "s", .layers = {layer_id(0)}, .devices = {{device_id(0), 1}, {device_id(1), 1}}}};
  p.sharing_policy = sharing::priority;
  for (const int d : {0, 1}) {
    p.schedule.transfers.push_back({.from = device_id(d),
                                    .to = device_id(1 - d),
                                    .from_stage = stage_id(0),
                                    .to_stage = stage_id(0),
                                    .kind = transfer_kind::sync,
                                    .priority = d});
  }
  const judgement j = run(p, model, home);
  REQUIRE(j.trace.transfers[1].start_s == j.trace.transfers[0].start_s);
  REQUIRE(j.trace.transfers[1].end_s > 1.5 * j.trace.transfers[0].end_s - j.trace.transfers[0].start_s);
  CHECK(test::count(draw::gantt_svg(p, home, j), "over shared&#10;") == 2);
}

TEST_CASE("bands add up to the bytes of the trace and never pass the capacity") {
  const auto check = [](const plan& p, const planning_graph& g, const cluster& c) {
    const judgement j = run(p, g, c);
    double drawn = 0, carried = 0;
    for (const draw::resource_view& r : draw::trace_view(p, c, j).resources(draw::sweep_detail::bands)) {
      const double capacity = c.network()[r.resource].capacity.value();
      CHECK(r.recorded);
      CHECK(r.peak <= 1 + 1e-9);
      double bytes = 0, loaded = 0;
      for (const draw::share_band& b : r.bands) bytes += (b.high - b.low) * (b.end_s - b.start_s) * capacity;
      for (const draw::resource_load& l : r.loads) loaded += l.share() * (l.end_s - l.start_s) * capacity;
      CHECK(bytes == Approx(j.trace.resource_bytes[r.resource.index()]).epsilon(1e-6));
      CHECK(loaded == Approx(bytes).epsilon(1e-9));
      drawn += bytes;
    }
    for (const double b : j.trace.resource_bytes) carried += b;
    CHECK(drawn == Approx(carried).epsilon(1e-6));
  };
  const auto g = chain(6, 1_MB);
  check(pipeline(g, 3, 8), g, devices(3, shared_medium{300_Mbit_per_s, 1_ms}));
  check(pipeline(g, 3, 8), g, devices(3, star{300_Mbit_per_s, 1_ms, duplex::half}));
  check(pipeline(g, 3, 8), g, devices(3, ring{300_Mbit_per_s}));
}

TEST_CASE("without recorded rates transfers lie in lanes, and the chart says so") {
  const contended x;
  const judgement j = run(x.p, x.model, x.home, false);
  const std::string svg = draw::gantt_svg(x.p, x.home, j);
  CHECK(test::markup_fault(svg) == "");
  CHECK(svg.find("Rates were not recorded") != std::string::npos);
  CHECK(svg.find("data-mark=\"contention\"") != std::string::npos);
  for (const draw::resource_view& r : draw::trace_view(x.p, x.home, j).resources(draw::sweep_detail::bands)) {
    for (const draw::share_band& a : r.bands) {
      for (const draw::share_band& b : r.bands) {
        if (a.transfer == b.transfer || a.start_s >= b.end_s || b.start_s >= a.end_s) continue;
        CHECK((a.high <= b.low + 1e-12 || b.high <= a.low + 1e-12));
      }
    }
  }
}

TEST_CASE("a huge trace gives a small picture that says what it leaves out") {
  const auto g = chain(3, 100_kB);
  const cluster c = devices(3, shared_medium{900_Mbit_per_s});
  const plan p = pipeline(g, 3, 3000);
  const judgement j = run(p, g, c);
  const std::string svg = draw::gantt_svg(p, c, j);
  CHECK(test::markup_fault(svg) == "");
  CHECK(svg.size() < 600000);
  CHECK(svg.find("averaged over each pixel") != std::string::npos);
  const plan few = pipeline(g, 3, 8);
  CHECK(draw::gantt_svg(few, c, run(few, g, c)).find("averaged") == std::string::npos);
}

TEST_CASE("of many resources the busiest are shown") {
  const auto g = chain(4, 1_MB);
  const cluster c = devices(4, mesh{300_Mbit_per_s});
  const plan p = pipeline(g, 4, 4);
  const judgement j = run(p, g, c);
  CHECK(draw::gantt_svg(p, c, j).find("quieter") == std::string::npos);
  const std::string svg = draw::gantt_svg(p, c, j, {.max_resources = 2});
  CHECK(test::markup_fault(svg) == "");
  CHECK(svg.find("The 2 busiest resources are shown, 4 quieter ones are not.") != std::string::npos);
}

TEST_CASE("names may hold anything") {
  planning_graph_builder b(nasty);
  b.add_layer({.name = nasty, .kind = nasty, .forward_flops = 1_GFLOP, .weight = 1_MB});
  b.add_layer({.name = std::string(nasty) + ".2", .forward_flops = 1_GFLOP, .weight = 1_MB});
  b.add_edge(layer_id(0), layer_id(1), 1_MB);
  const planning_graph g = std::move(b).build();
  const cluster c(nasty,
                  {device{.name = std::string(nasty) + "0", .memory = 1_GB, .compute = 1_TFLOP_per_s},
                   device{.name = std::string(nasty) + "1", .memory = 1_GB, .compute = 1_TFLOP_per_s}},
                  mesh{100_Mbit_per_s});
  plan p = pipeline(g, 2, 2);
  p.cluster = p.planner = p.stages[0].name = nasty;
  const judgement j = run(p, g, c);
  CHECK(test::markup_fault(draw::gantt_svg(p, c, j)) == "");
  CHECK(test::markup_fault(draw::gantt_svg(p, c, j, {.title = nasty})) == "");
  CHECK_NOTHROW(nlohmann::json::parse(draw::chrome_trace(p, c, j)));
  CHECK(dot_balanced(draw::dot(g)));
  CHECK(dot_balanced(draw::dot(c)));
  CHECK(dot_balanced(draw::dot(p, g, c)));
  CHECK(dot_balanced(draw::dot(j.graph, c)));
}

TEST_CASE("one device, tasks without time, inference and generation have pictures too") {
  const auto check = [](const plan& p, const planning_graph& g, const cluster& c) {
    for (const bool record : {true, false}) {
      const judgement j = run(p, g, c, record);
      const std::string svg = draw::gantt_svg(p, c, j);
      CHECK(test::markup_fault(svg) == "");
      CHECK_NOTHROW(nlohmann::json::parse(draw::chrome_trace(p, c, j)));
      CHECK(dot_balanced(draw::dot(p, g, c)));
      CHECK(test::markup_fault(draw::gantt_svg(p, c, j, {.width = 100, .max_bars = 0, .max_resources = 0})) == "");
    }
  };
  const auto g = chain(4, 1_MB);
  check(pipeline(g, 1, 2), g, cluster("home", device{.name = "only", .memory = 1_GB, .compute = 1_TFLOP_per_s}));
  const cluster c = devices(2, shared_medium{100_Mbit_per_s, 1_ms});
  check(pipeline(g, 2, 4, {.mode = mode::inference}), g, c);
  const plan tokens = pipeline(g, 2, 2, {.mode = mode::generation, .tokens = 4});
  check(tokens, g, c);
  const std::string svg = draw::gantt_svg(tokens, c, run(tokens, g, c));
  CHECK(svg.find("per token") != std::string::npos);
  CHECK(svg.find("pass 3") != std::string::npos);

  planning_graph_builder b("nothing");
  b.add_layer({.name = "a", .forward_flops = 0_FLOP});
  b.add_layer({.name = "b", .forward_flops = 0_FLOP});
  b.add_edge(layer_id(0), layer_id(1), 0_B);
  const planning_graph nothing = std::move(b).build();
  const plan timeless = pipeline(nothing, 2, 2);
  CHECK(run(timeless, nothing, devices(2, shared_medium{100_Mbit_per_s})).evaluation.latency.value() == 0);
  check(timeless, nothing, devices(2, shared_medium{100_Mbit_per_s}));
}

TEST_CASE("an optimizer's step is drawn where the cost model has one") {
  struct with_step {
    [[nodiscard]] seconds time(const work& w, const device& d) const { return roofline{}.time(w, d); }
    [[nodiscard]] seconds optimizer_step(const layer&, const device&) const { return 5_ms; }
  };
  const contended x;
  const judgement j = judge(x.p, x.model, x.home, with_step{}, {}, simulator_options{.record = true});
  REQUIRE(std::any_of(j.graph.computes.begin(), j.graph.computes.end(), [](const auto& t) { return t.what == phase::optimizer_step; }));
  for (const std::size_t max_bars : {4000U, 0U}) {
    const std::string svg = draw::gantt_svg(x.p, x.home, j, {.max_bars = max_bars});
    CHECK(test::markup_fault(svg) == "");
    CHECK(svg.find(">optimizer") != std::string::npos);
    CHECK(svg.find(palette_of(phase::optimizer_step)) != std::string::npos);
  }
  CHECK(draw::gantt_svg(x.p, x.home, x.j).find("optimizer") == std::string::npos);
  CHECK(draw::chrome_trace(x.p, x.home, j).find("\"U s1\"") != std::string::npos);
  CHECK(draw::dot(j.graph).find("U s1") != std::string::npos);
}

TEST_CASE("a forward that runs again is drawn under its backward, and told") {
  contended x;
  x.p.stages[0].recompute = recomputation::stage;
  const judgement j = judge(x.p, x.model, x.home, roofline{}, {}, simulator_options{.record = true});
  const std::string svg = draw::gantt_svg(x.p, x.home, j), before = draw::gantt_svg(x.p, x.home, x.j);
  CHECK(test::markup_fault(svg) == "");
  const auto times = [](const std::string& text, const std::string& word) {
    std::size_t n = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
    return n;
  };
  const std::string name = x.p.stages[0].name.empty() ? "s0" : x.p.stages[0].name;
  const auto backwards =
      static_cast<std::size_t>(std::count_if(j.graph.computes.begin(), j.graph.computes.end(), [](const tasks::compute_task& t) {
        return t.stage.value == 0 && t.what == phase::backward_input;
      }));
  REQUIRE(backwards > 0);
  CHECK(times(svg, "forward again and backward " + name) >= backwards);
  CHECK(times(svg, "pointer-events=\"none\"") == times(before, "pointer-events=\"none\"") + backwards);
  CHECK(before.find("forward again") == std::string::npos);
  CHECK(svg.find(" recomputes its activations") != std::string::npos);
  CHECK(svg.find("backward (strip: forward again)") != std::string::npos);
  CHECK(times(draw::chrome_trace(x.p, x.home, j), "\"forward_again\"") == backwards);
  plan shared = x.p;
  shared.microbatch_size = 2;
  shared.stages = {
      {.name = "both", .layers = {layer_id(0), layer_id(1)}, .devices = {{device_id(0), 1}, {device_id(1), 1}}, .shard = sharding::state}};
  const judgement k = judge(shared, x.model, x.home, roofline{}, {}, simulator_options{.record = true});
  CHECK(draw::gantt_svg(shared, x.home, k).find("both: one of 2 parts of the optimizer") != std::string::npos);
}

TEST_CASE("a run that was stopped is drawn as far as it came") {
  const contended x;
  int ends = 0;
  const auto stop = [&](const task_ended&) { return ++ends == 5 ? control::stop : control::go; };
  const judgement j = judge(x.p, x.model, x.home, roofline{}, {}, simulator_options{.record = true}, stop);
  REQUIRE(j.trace.status.result == outcome::stopped);
  const std::string svg = draw::gantt_svg(x.p, x.home, j);
  CHECK(test::markup_fault(svg) == "");
  CHECK(svg.find("Incomplete: stopped by an observer.") != std::string::npos);
  CHECK(test::count(svg, "<title>forward s") + test::count(svg, "<title>backward s") == 5);
  const auto trace = nlohmann::json::parse(draw::chrome_trace(x.p, x.home, j));
  CHECK(trace["otherData"]["status"] == "stopped");
}

TEST_CASE("a Chrome trace has every task and transfer, and slices of a thread do not overlap") {
  const contended x;
  const auto trace = nlohmann::json::parse(draw::chrome_trace(x.p, x.home, x.j));
  CHECK(trace["otherData"]["model"] == "toy");
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;
  std::map<std::string, std::vector<double>> counters;
  std::size_t tasks = 0, transfers = 0;
  double last_us = 0;
  for (const auto& e : trace["traceEvents"]) {
    const std::string kind = e["ph"];
    if (kind == "X") {
      const double ts = e["ts"], dur = e["dur"];
      slices[{e["pid"], e["tid"]}].emplace_back(ts, ts + dur);
      (e["pid"] == 1 ? tasks : transfers) += 1;
      last_us = std::max(last_us, ts + dur);
      if (e["pid"] == 2) {
        CHECK(e["args"]["bytes"] == 2e6);
        CHECK(e["args"]["share_of_peak"].get<double>() <= 1 + 1e-9);
      }
    } else if (kind == "C") {
      const std::string name = e["name"];
      if (name == "use of shared") counters[name].push_back(e["args"]["share"]);
      if (name == "transfers on shared") counters[name].push_back(e["args"]["active"]);
      if (name == "memory d0") counters[name].push_back(e["args"]["bytes"]);
    } else {
      CHECK(kind == "M");
    }
  }
  CHECK(tasks == x.j.graph.computes.size());
  CHECK(transfers == x.j.graph.transfers.size());
  CHECK(last_us == Approx(1e6 * x.j.trace.latency.value()).margin(2e-3));
  for (auto& [thread, of] : slices) {
    std::sort(of.begin(), of.end());
    for (std::size_t i = 1; i < of.size(); ++i) CHECK(of[i].first >= of[i - 1].second - 1e-6);
  }
  REQUIRE(counters["use of shared"].size() > 2);
  CHECK(counters["use of shared"].back() == 0);
  CHECK(*std::max_element(counters["transfers on shared"].begin(), counters["transfers on shared"].end()) >= 2);
  CHECK(*std::max_element(counters["memory d0"].begin(), counters["memory d0"].end()) == x.j.trace.peak_bytes[0]);
  CHECK(draw::chrome_trace(x.p, x.home, x.j) == draw::chrome_trace(x.p, x.home, run(x.p, x.model, x.home)));
}

TEST_CASE("a trace says what a task waited for") {
  const contended x;
  const draw::trace_view view(x.p, x.home, x.j);
  for (std::size_t n = 0; n < x.j.graph.computes.size(); ++n) {
    const tasks::compute_task& t = x.j.graph.computes[n];
    if (t.stage == stage_id(1) && t.what == phase::forward && t.microbatch == 0) {
      CHECK(view.waited_for(n) == "forward d0 → d1, microbatch 0");
      CHECK(view.idle_before_s(n) == Approx(x.j.trace.computes[n].start_s));
    }
    if (t.stage == stage_id(0) && t.microbatch == 0 && t.what == phase::forward) CHECK(view.waited_for(n) == "");
  }
}

TEST_CASE("dot draws wires as edges, shared media and uplinks as nodes") {
  const std::string shared = draw::dot(devices(3, shared_medium{900_Mbit_per_s}));
  CHECK(dot_balanced(shared));
  CHECK(test::count(shared, "shape=ellipse") == 1);
  CHECK(test::count(shared, "dir=none") == 3);

  const std::string wires = draw::dot(devices(4, ring{1_Gbit_per_s}));
  CHECK(test::count(wires, "shape=ellipse") == 0);
  CHECK(test::count(wires, " -> ") == 8);
  CHECK(test::count(draw::dot(devices(4, mesh{1_Gbit_per_s, {}, duplex::half})), " -> ") == 6);

  const std::string switched = draw::dot(devices(4, star{1_Gbit_per_s}));
  CHECK(test::count(switched, "shape=ellipse") == 8);
  CHECK(test::count(switched, "shape=diamond") == 1);
  CHECK(test::count(switched, " -> ") == 16);

  // A group of two devices has a medium of its own, which longer routes pass.
  const hierarchical h{.capacity = 100_Mbit_per_s, .groups = {{"near", {"d0", "d1"}, 900_Mbit_per_s}, {"far", {"d2"}, 900_Mbit_per_s}}};
  const std::string groups = draw::dot(devices(3, h));
  CHECK(groups.find("near\\n900 Mbit/s") != std::string::npos);
  CHECK(groups.find("far.down\\n100 Mbit/s") != std::string::npos);

  CHECK(dot_balanced(draw::dot(cluster("home", device{.name = "only", .memory = 1_GB}))));
}

TEST_CASE("dot boxes towers or weight groups, and dashes edges without gradient") {
  planning_graph_builder b("omni");
  b.add_layer({.name = "vision.embed", .forward_flops = 1_GFLOP, .weight = 1_MB, .weight_group = "tied"});
  b.add_layer({.name = "text.embed", .forward_flops = 1_GFLOP, .weight = 1_MB, .trainable = false});
  b.add_layer({.name = "head", .forward_flops = 1_GFLOP, .weight = 1_MB, .weight_group = "tied"});
  b.add_edge("vision.embed", "head", 1_MB, 0_B);
  b.add_edge("text.embed", "head", 2_MB);
  const planning_graph g = std::move(b).build();
  const std::string towers = draw::dot(g);
  CHECK(dot_balanced(towers));
  CHECK(test::count(towers, "subgraph cluster_") == 2);
  CHECK(test::count(towers, "style=dashed") == 1);
  CHECK(towers.find("1 MB frozen") != std::string::npos);
  const std::string tied = draw::dot(g, {.boxes = draw::dot_boxes::weight_groups, .direction = draw::dot_direction::right});
  CHECK(test::count(tied, "subgraph cluster_") == 1);
  CHECK(tied.find("label=\"tied\"") != std::string::npos);
  CHECK(tied.find("rankdir=LR") != std::string::npos);
  CHECK(test::count(draw::dot(g, {.boxes = draw::dot_boxes::none}), "subgraph") == 0);
}

TEST_CASE("where operators are stages of their own, pictures name them as long as there are few, and count them then") {
  for (const int operators : {6, 60}) {
    const planning_graph g = chain(operators, 1_MB);
    const cluster c = devices(2, mesh{1_Gbit_per_s});
    const planning_problem problem{g, c, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 1}};
    const plan_result found = recipes::heft(problem, minimize_latency{});
    REQUIRE(found.status.ok());
    const plan& p = found.plans.front().plan;
    REQUIRE(p.stages.size() == g.size());
    const judgement j = run(p, g, c);
    const std::string svg = draw::gantt_svg(p, c, j), html = draw::report_html(found, g, c, j), graph = draw::dot(p, g, c);
    CHECK(test::markup_fault(svg) == "");
    CHECK(dot_balanced(graph));
    const bool many = operators == 60;
    CHECK((svg.find(">60 stages<") != std::string::npos) == many);
    CHECK((html.find("60 stages: a row for each device.") != std::string::npos) == many);
    CHECK(test::count(html, "<tr><td") < (many ? 30U : 40U));
    CHECK(svg.find(">" + g[layer_id(3)].name + "</text>") != std::string::npos);
    CHECK(test::count(graph, "subgraph cluster_") == (many ? 0 : 6));
    CHECK(test::count(graph, "fillcolor") >= g.size());
  }
}

TEST_CASE("dot shows a plan's layers where they fit and its stages where not") {
  const contended x;
  const std::string layers = draw::dot(x.p, x.model, x.home);
  CHECK(dot_balanced(layers));
  CHECK(test::count(layers, "subgraph cluster_") == 2);
  CHECK(layers.find("s1 on d1") != std::string::npos);
  const std::string stages = draw::dot(x.p, x.model, x.home, {.max_plan_layers = 1});
  CHECK(test::count(stages, "subgraph") == 0);
  CHECK(test::count(stages, " -> ") == 1);
  CHECK(test::count(stages, "penwidth") == 1);  // the edge leaves a device
  const std::string work = draw::dot(x.j.graph);
  CHECK(dot_balanced(work));
  CHECK(work.find("device 1") != std::string::npos);
  CHECK(test::count(work, "shape=ellipse") == x.j.graph.transfers.size());
}
