// SPDX-License-Identifier: BSL-1.0
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/report.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/explain.hpp>
#include <hetplan/simulate/observed_run.hpp>
#include <hetplan/simulate/wait_states.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "draw/markup.hpp"
#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

namespace test_report {

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// Returns the page of one plan, judged and recorded.
std::string page_of(const plan& p, const planning_graph& m, const cluster& c, const simulator_options& o = {.record = true},
                    const draw::report_options& options = {}) {
  const judgement j = evaluate(p, m, c, roofline{}, {}, no_lp{}, o);
  const plan_result result{.status = {}, .plans = {{p, j.evaluation}}, .candidates = 1};
  return draw::report_html(result, m, c, j, options);
}

std::string checked(const std::string& page) {
  CHECK(markup_fault(markup_of(page)) == "");
  CHECK_FALSE(has(page, "http://"));
  CHECK_FALSE(has(page, "https://"));
  CHECK_FALSE(has(page, "nan"));
  return page;
}

const planning_graph& two_layers() {
  static const planning_graph m = model_of({work_of("a", 1, 1, 1), work_of("b", 3, 3, 3)}, {{0, 1, 2, 2}});
  return m;
}
plan two_stages() { return plan_of(mode::training, 1, 4, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})}); }

}  // namespace

TEST_CASE("the report has every section and says what the run cost") {
  const std::string page = checked(page_of(two_stages(), two_layers(), wireless(2, 0.5)));
  for (const char* id : {"summary",         "plan",           "stages",    "timeline",         "gantt",      "critical-strip", "critical",
                         "critical-totals", "critical-links", "bandwidth", "bandwidth-chart",  "memory",     "memory-chart",   "energy",
                         "pareto",          "pareto-chart",   "zoom-in",   "zoom-out",         "zoom-reset", "mark-critical",  "tip",
                         "fact-latency",    "fact-energy",    "fact-gap",  "fact-schedule-gap"}) {
    INFO(id);
    CHECK(count(page, "id=\"" + std::string(id) + "\"") == 1);
  }
  CHECK(has(page, "by hand on wireless"));
  CHECK(has(page, "training"));
  CHECK(has(page, "d0"));
}

TEST_CASE("a report of generation shows speeds, what limits each device in prompt and tokens, and what its memory is for") {
  layer_spec l = work_of("a", 2);
  l.weight = 6_B;
  l.kv_bytes_per_token = 4_B;
  const planning_graph m = model_of({l, work_of("b <&", 3)}, {{0, 1, 2}});
  plan p = plan_of(mode::generation, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  p.workload = {.mode = mode::generation, .tokens = 3, .prompt = 8};
  std::vector<device> two{worker("x <&"), worker("y")};
  two[0].memory_bandwidth = bytes_per_second(1);
  const cluster c("two", two, mesh{bytes_per_second(1)});
  const judgement j = evaluate(p, m, c, roofline{}, {}, no_lp{}, {.record = true});
  const plan_result result{.status = {}, .plans = {{p, j.evaluation}}, .candidates = 1};
  const std::string page = checked(draw::report_html(result, m, c, j, {.explained = explain(p, m, c, roofline{}, j)}));
  for (const char* id :
       {"limits", "limits-prompt", "limits-tokens", "memory-parts", "fact-ttft", "fact-tokens", "fact-speed", "fact-prompt-speed"}) {
    INFO(id);
    CHECK(count(page, "id=\"" + std::string(id) + "\"") == 1);
  }
  CHECK(has(page, "<title>x &lt;&amp;: cache&#10;64 s of "));
  CHECK(has(page, "y: network&#10;"));
  CHECK(has(page, "x &lt;&amp;: weights&#10;6 B of "));
  // Without an explanation there is no such section.
  CHECK_FALSE(has(draw::report_html(result, m, c, j), "id=\"limits\""));
}

TEST_CASE("a critical transfer says on hover what it waited for, its route, and what sharing cost it") {
  const cluster c = wireless(2, 0.5);
  const judgement j = judged(two_stages(), two_layers(), c, {.record = true});
  const auto chain = critical_chain(j.graph, j.trace, c.network());
  const bool lost = std::any_of(chain.begin(), chain.end(), [](const critical_link& l) { return l.lost_s > 0; });
  REQUIRE(lost);
  const std::string page = page_of(two_stages(), two_layers(), c);
  CHECK(has(page, "&#10;route: shared (8 bit/s)"));
  CHECK(has(page, " lost: shared with up to 3 others on shared"));
  CHECK(has(page, "on the critical path: after forward s0, microbatch 0 on d0"));
  CHECK(has(page, "lost to others on its route"));
  CHECK(count(page, "<tr tabindex=\"0\" class=\"transfer\"") >= 1);
}

TEST_CASE("priorities, chunks, releases and ports are told") {
  plan p = two_stages();
  p.sharing_policy = sharing::priority;
  p.schedule.transfers.push_back({.from = device_id(0),
                                  .to = device_id(1),
                                  .from_stage = stage_id(0),
                                  .to_stage = stage_id(1),
                                  .microbatch = 0,
                                  .chunk = 0,
                                  .chunks = 2,
                                  .release = seconds(4),
                                  .priority = 2});
  p.schedule.transfers.push_back({.from = device_id(0),
                                  .to = device_id(1),
                                  .from_stage = stage_id(0),
                                  .to_stage = stage_id(1),
                                  .microbatch = 0,
                                  .chunk = 1,
                                  .chunks = 2,
                                  .priority = 3});
  const std::string page = checked(page_of(p, two_layers(), wireless(2, 0.5)));
  CHECK(has(page, "&#10;priority 2"));
  CHECK(has(page, "chunk 1"));
  CHECK(has(page, "released by the schedule at 4 s"));
  CHECK(has(page, "held back"));

  plan exclusive = two_stages();
  exclusive.sharing_policy = sharing::exclusive;
  CHECK(has(checked(page_of(exclusive, two_layers(), wireless(2, 0.5))), "its port was held by "));
}

TEST_CASE("the table of stages says what saves memory") {
  plan p = plan_of(mode::training, 2, 4, {stage_of({0}, {{0, 2}}), stage_of({1}, {{1, 1}, {2, 1}})});
  CHECK_FALSE(has(page_of(p, two_layers(), wireless(3)), "recomputes"));
  p.stages[0].recompute = recomputation::stage;
  p.stages[1].shard = sharding::state;
  const std::string page = checked(page_of(p, two_layers(), wireless(3)));
  CHECK(has(page, ", recomputes</td>"));
  CHECK(has(page, ", optimizer state in 2 parts</td>"));
  CHECK(has(page, "forward again and backward"));
  CHECK(has(page, "backward (strip: forward again)"));
}

TEST_CASE("names cannot break the page") {
  const std::string evil = "</script><script>alert(1)</script><b a='x' b=\"y\">&amp;";
  planning_graph_builder b(evil);
  b.add_layer(work_of(evil + "0", 1));
  b.add_layer(work_of(evil + "1", 1));
  b.add_edge(layer_id(0), layer_id(1), bytes(1), bytes(0));
  const planning_graph m = std::move(b).build();
  const cluster c(evil, {worker(evil + "d0"), worker(evil + "d1")},
                  route_table{{{evil + "air", bytes_per_second(1)}}, {{"*", "*", {seconds(0), {{resource_id(0), 1}}}}}});
  plan p = plan_of(mode::inference, 1, 2, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  p.stages[0].name = p.stages[1].name = p.planner = evil;
  const std::string page = checked(page_of(p, m, c));
  CHECK(count(page, "<script>") == 1);
  CHECK_FALSE(has(page, "alert(1)</"));
}

TEST_CASE("the same run gives the same page") {
  CHECK(page_of(two_stages(), two_layers(), wireless(2)) == page_of(two_stages(), two_layers(), wireless(2)));
}

TEST_CASE("one device, no network, tasks that take no time") {
  const planning_graph m = model_of({work_of("a", 0)}, {});
  const std::string page = checked(page_of(plan_of(mode::inference, 1, 3, {stage_of({0}, {{0, 1}})}), m, wired(1)));
  CHECK(has(page, "No transfer uses a network resource"));
  CHECK(has(page, "One plan was kept"));
}

TEST_CASE("without a plan the page says why") {
  const plan_result nothing{.status = {outcome::infeasible, "memory: d0 needs <too> much"},
                            .binding = broken_limit{limit_kind::memory, device_id(0), 3e9, 1e9},
                            .plans = {},
                            .candidates = 3};
  const std::string page = checked(draw::report_html(nothing, two_layers(), wired(2), {}));
  CHECK(has(page, "memory: d0 needs &lt;too&gt; much"));
  CHECK(has(page, "id=\"no-plan\""));
  CHECK(has(page, "3 candidates judged"));
  CHECK_FALSE(has(page, "id=\"gantt\""));
  CHECK(has(checked(draw::report_html({.status = {outcome::stopped, "by an observer"}, .plans = {}}, two_layers(), wired(2), {})),
            "stopped before"));
  const plan_result proven{.status = {outcome::infeasible, "memory", infeasibility_proof{"plans", {{"bytes of <all>", 3, 2}}}}};
  const std::string told = checked(draw::report_html(proven, two_layers(), wired(2), {}));
  CHECK(has(told, "bytes of &lt;all&gt;: 3 needed, 2 available"));
  CHECK(has(told, "No plan keeps every limit"));
}

TEST_CASE("candidates: the front has those that no other beats in both") {
  std::vector<ranked_plan> plans(5, {two_stages(), {}});
  const std::vector<std::pair<double, double>> costs{{2, 5}, {3, 3}, {4, 4}, {3, 3}, {1, 9}};
  for (std::size_t i = 0; i < plans.size(); ++i) {
    evaluation e{.latency = seconds(costs[i].first)};
    e.devices = {{true, joules(costs[i].second), bytes(0), seconds(0)}};
    plans[i].evaluation = e;
  }
  const auto points = draw::detail::candidate_points(plans);
  std::vector<bool> dominated;
  for (const auto& p : points) dominated.push_back(p.dominated);
  CHECK(dominated == std::vector{false, false, true, false, false});  // equal plans do not dominate each other
  const std::string chart = draw::detail::pareto_chart(plans, wired(2));
  CHECK(count(chart, "class=\"candidate\"") == 4);  // two coincide
  CHECK(has(chart, ">2, 4<"));
  CHECK(has(chart, "id=\"front\""));
}

TEST_CASE("candidates whose energies differ in the last digit have an axis") {
  std::vector<ranked_plan> plans(2, {two_stages(), {}});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    evaluation e{.latency = seconds(1.0 + static_cast<double>(i))};
    e.devices = {{true, joules(i == 0 ? 3.909600000000003 : 3.9096000000000033), bytes(0), seconds(0)}};
    plans[i].evaluation = e;
  }
  CHECK(draw::detail::pareto_chart(plans, wired(2)).size() < 20'000);
}

TEST_CASE("a big run is simplified, and the page says so") {
  const std::string page = checked(page_of(two_stages(), two_layers(), wireless(2), {.record = true}, {.max_bars = 3}));
  CHECK(has(page, "Simplified: "));
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 1}});
  const plan p = plan_of(mode::inference, 1, 4000, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  const std::string big = checked(page_of(p, m, wireless(2, 0.25)));
  CHECK(big.size() < 1'500'000);
  CHECK(has(big, "Simplified: "));
}

TEST_CASE("the script is short, and asks for nothing") {
  const std::string script(draw::detail::report_script);
  CHECK(std::count(script.begin(), script.end(), '\n') <= 300);
  for (const char* word :
       {"eval(", "fetch(", "XMLHttpRequest", "import(", "innerHTML", "document.write", "localStorage", "WebSocket", "</"})
    CHECK_FALSE(has(script, word));
}

TEST_CASE("every kind of plan makes a sound page, recorded or not") {
  for_random_instances(4, [](const instance& i) {
    for (const bool record : {true, false}) checked(page_of(i.plan, i.model(), i.cluster(), {.record = record}));
  });
}

TEST_CASE("a stopped run is drawn as far as it went") {
  const cluster c = wireless(2, 0.5);
  int ends = 0;
  const judgement j = judge(two_stages(), two_layers(), c, roofline{}, {}, {.record = true},
                            [&](const task_ended&) { return ++ends < 5 ? control::go : control::stop; });
  const plan_result result{.status = {}, .plans = {{two_stages(), j.evaluation}}};
  CHECK(has(checked(draw::report_html(result, two_layers(), c, j)), "stopped by an observer"));
}

}  // namespace test_report
