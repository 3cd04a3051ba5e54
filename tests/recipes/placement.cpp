// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/exchange/dnn_partitioning_json.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/moirai.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/recipes/placers.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>
#include <support/random_tables.hpp>

namespace test_placement_recipes {

using namespace hetplan;
using Catch::Matchers::Contains;

job one_inference() { return {.workload = {.mode = mode::inference}, .batch = 1}; }

TEST_CASE("planners of operators answer with a plan that the simulator has judged, never slower than the best device alone") {
  const planning_graph model = zoo::model("resnet50", {});
  for (const auto name : {"smart-home-2", "edge-cluster"}) {
    const cluster home = zoo::cluster(name);
    const planning_problem problem{model, home, roofline{}, one_inference(), {}, {}, 50'000};
    const plan_result alone = recipes::on_device(problem, minimize_latency{}, 1);
    for (const place::contention c : place::all_contentions) {
      CAPTURE(name, to_string(c));
      const plan_result r = recipes::moirai(problem, minimize_latency{}, {.network = {c, transfer_copies::per_device}});
      REQUIRE(r.status.ok());
      const auto& [p, e] = r.plans.front();
      CHECK(p.planner == "moirai");
      CHECK(e.latency.value() <= alone.plans.front().evaluation.latency.value() * (1 + 1e-9));
      CHECK(e.placement_bound.value() > 0);
      CHECK(e.placement_bound.value() <= e.latency.value() * (1 + 1e-9));
      const io::plan_file again =
          io::read_plan(io::json_document::parse(io::write_plan(r.plans.front(), model, home), "plan"), model, home);
      CHECK(again.plan == p);
    }
    for (const auto planner : {recipes::heft, recipes::m_etf, recipes::m_sct, recipes::getf}) {
      const plan_result r = planner(problem, minimize_latency{}, {}, {});
      CHECK(r.status.ok());
    }
  }
}

/// Two devices, each fast at one of two operators that TensorRT fuses.
planning_graph two_fused_operators() {
  planning_graph_builder b("two");
  const auto timed = [](double fast, double slow) {
    return std::vector<layer_profile>{{.device_kind = "fast", .batch = {1}, .forward_s = {fast}, .backward_s = {}},
                                      {.device_kind = "slow", .batch = {1}, .forward_s = {slow}, .backward_s = {}}};
  };
  const auto conv = b.add_layer({.name = "conv", .kind = "Conv", .weight = 6_MB, .profiles = timed(1e-3, 10e-3)});
  const auto relu = b.add_layer({.name = "relu", .kind = "Relu", .weight = 6_MB, .profiles = timed(10e-3, 1e-3)});
  b.add_edge(conv, relu, bytes(1e3));
  return std::move(b).build();
}

cluster fast_and_slow(bytes memory) {
  return cluster("two", {{.name = "a", .kind = "fast", .memory = memory}, {.name = "b", .kind = "slow", .memory = memory}},
                 mesh{bytes_per_second(1e9), seconds()});
}

TEST_CASE("that no placement of the whole batch fits is not said of plans that split it") {
  planning_graph_builder b("one");
  b.add_layer({.name = "only", .forward_flops = 1_GFLOP, .activation = 1_MB});
  const planning_graph model = std::move(b).build();
  const device small{.name = "d", .memory = bytes(1.5e6), .compute = 1_TFLOP_per_s};
  const cluster c("one", small), none("none", device{.name = "d", .memory = bytes(0.5e6), .compute = 1_TFLOP_per_s});
  const job two{.workload = {.mode = mode::inference}, .batch = 2};
  for (const auto& planner : {recipes::heft, recipes::m_etf, recipes::m_sct, recipes::getf, recipes::moirai}) {
    const plan_result r = planner({model, c, roofline{}, two}, minimize_latency{}, recipes::placement_view{}, {});
    CHECK(r.status.result == outcome::none_found);
    CHECK(r.status.reason.starts_with("no placement of its operators, the whole batch at once: memory: "));
    CHECK_FALSE(r.status.proof.has_value());
    const plan_result nothing = planner({model, none, roofline{}, two}, minimize_latency{}, recipes::placement_view{}, {});
    CHECK(nothing.status.result == outcome::infeasible);
    CHECK(nothing.status.proof.has_value());
  }
  CHECK(recipes::dora({model, c, roofline{}, two}, minimize_latency{}).plans.front().evaluation.latency.value() == Approx(2e-3));
}

TEST_CASE("where the simulator takes longer than a schedule promises, everything on one device is tried") {
  // One wire for both directions, which one_port counts twice.
  planning_graph_builder b("two ways");
  const auto timed = [](double fast, double slow) {
    return std::vector<layer_profile>{{.device_kind = "fast", .batch = {1}, .forward_s = {fast}, .backward_s = {}},
                                      {.device_kind = "slow", .batch = {1}, .forward_s = {slow}, .backward_s = {}}};
  };
  const auto l0 = b.add_layer({.name = "l0", .profiles = timed(5e-3, 12e-3)}),
             l1 = b.add_layer({.name = "l1", .profiles = timed(1e-3, 5e-3)}), l2 = b.add_layer({.name = "l2", .profiles = timed(2e-3, 0)}),
             l3 = b.add_layer({.name = "l3", .profiles = timed(0, 2e-3)}), l5 = b.add_layer({.name = "l5", .profiles = timed(0, 0)}),
             l6 = b.add_layer({.name = "l6", .profiles = timed(4e-3, 12e-3)});
  b.add_edge(l1, l3, 2_MB);
  b.add_edge(l0, l5, 2_MB);
  b.add_edge(l2, l5, 5_MB);
  b.add_edge(l1, l6, 1_MB);
  const planning_graph model = std::move(b).build();
  const route there{2_ms, {{resource_id(0), 1}}}, back{seconds(0), {{resource_id(0), 1}}};
  const cluster c("two", {{.name = "a", .kind = "fast", .memory = 2_MB}, {.name = "b", .kind = "slow", .memory = 1_GB}},
                  route_table{{{"wire", bytes_per_second(5e8)}}, {{"a", "b", there}, {"b", "a", back}}});
  const planning_problem problem{model, c, profiled{}, one_inference()};
  const double alone = recipes::on_device(problem, minimize_latency{}).plans.front().evaluation.latency.value();
  const recipes::placement_view view{.network = {place::contention::one_port}};
  for (const auto& planner : {recipes::heft, recipes::getf, recipes::moirai}) {
    const plan_result r = planner(problem, minimize_latency{}, view, {});
    REQUIRE(r.status.ok());
    CHECK(r.plans.front().evaluation.latency.value() <= alone * (1 + 1e-9));
  }
}

TEST_CASE("what is fused may be parted: no bound of fused operators is one of all, and fusing forbids nothing that fits") {
  const planning_graph model = two_fused_operators();
  for (const bytes memory : {1_GB, 8_MB}) {  // 8 MB hold one of the two
    const cluster devices = fast_and_slow(memory);
    const planning_problem problem{model, devices, profiled{}, one_inference()};
    for (const place::contention c : place::all_contentions) {
      for (const transfer_copies copies : {transfer_copies::per_edge, transfer_copies::per_device}) {
        CAPTURE(memory.value(), to_string(c), to_string(copies));
        const recipes::placement_view view{.network = {c, copies}};
        const plan_result r = recipes::moirai(problem, minimize_latency{}, view), h = recipes::heft(problem, minimize_latency{}, view);
        REQUIRE(r.status.ok());
        REQUIRE(h.status.ok());
        CHECK(r.plans.front().evaluation.latency.value() == Approx(2.001e-3));
        CHECK(r.plans.front().evaluation.placement_bound.value() <= h.plans.front().evaluation.latency.value() * (1 + 1e-9));
        CHECK(r.plans.front().plan.stages.size() == 2);
      }
    }
  }
  const cluster none = fast_and_slow(4_MB);
  const plan_result r = recipes::moirai({model, none, profiled{}, one_inference()}, minimize_latency{});
  CHECK(r.status.result == outcome::infeasible);
  CHECK(r.status.proof.has_value());
}

/// Operators that TensorRT fuses in part; ties, edges without bytes, and a weight that some share.
planning_graph drawn_operators(support::draws& draw) {
  planning_graph_builder b("drawn");
  constexpr std::array kinds{"Conv", "Relu", "Add", "MatMul", "Gelu"};
  std::vector<layer_id> layers;
  const std::size_t n = 3 + draw.below(3);
  for (std::size_t v = 0; v < n; ++v) {
    layer_spec l{.name = "o" + std::to_string(v), .kind = kinds[draw.below(kinds.size())]};
    l.weight = bytes(1e6 * static_cast<double>(draw.below(4)));
    if (draw.below(3) == 0) l.weight = 3_MB, l.weight_group = "tied";
    for (const char* kind : {"fast", "slow"})
      l.profiles.push_back({.device_kind = kind, .batch = {1}, .forward_s = {1e-3 * static_cast<double>(draw.below(4))}, .backward_s = {}});
    layers.push_back(b.add_layer(std::move(l)));
  }
  for (std::size_t v = 1; v < n; ++v) {
    b.add_edge(layers[draw.below(2) == 0 ? v - 1 : draw.below(v)], layers[v], bytes(1e6 * static_cast<double>(draw.below(3))));
  }
  return std::move(b).build();
}

TEST_CASE("no placement of fused or single operators beats the bound that is printed, and none fits where infeasible is said") {
  constexpr std::uint64_t seed = 21;
  support::draws draw(seed);
  int infeasible = 0, proven = 0;
  for (int number = 0; number < 64; ++number) {
    CAPTURE(seed, number);
    const planning_graph model = drawn_operators(draw);
    const bytes memory(1e6 * static_cast<double>(draw.below(2) == 0 ? 100 : 2 + draw.below(5)));
    const cluster c("two", {{.name = "a", .kind = "fast", .memory = memory}, {.name = "b", .kind = "slow", .memory = memory}},
                    mesh{bytes_per_second(1e9), seconds(draw.below(2) == 0 ? 0 : 5e-4)});
    const place::placement_rules rules{place::all_contentions[static_cast<std::size_t>(number) % 4],
                                       number % 8 < 4 ? transfer_copies::per_edge : transfer_copies::per_device};
    const planning_problem problem{model, c, profiled{}, one_inference(), {}, {}, 20'000};
    const plan_result r = recipes::moirai(problem, minimize_latency{}, {.network = rules});
    infeasible += r.status.result == outcome::infeasible;
    if (r.status.result == outcome::infeasible) CHECK(r.status.proof.has_value());
    const evaluation* found = r.plans.empty() ? nullptr : &r.plans.front().evaluation;
    double least_s = std::numeric_limits<double>::infinity();
    for (const coarsen::blocks& blocks : {coarsen::each_layer(model), coarsen::fuse_operators(model, coarsen::tensorrt_like())}) {
      const place::placement_table t = place::make_placement_table(problem, blocks);
      for (std::size_t choice = 0; choice < (std::size_t{1} << t.size()); ++choice) {
        std::vector<std::size_t> device;
        for (std::size_t v = 0; v < t.size(); ++v) device.push_back(choice >> v & 1);
        const place::operator_schedule s = place::schedule_in_order(t, rules, {t.order().begin(), t.order().end()}, device);
        const evaluation e = judge(place::plan_of(problem, blocks, t, rules, s, "tried"), model, c, problem.cost).evaluation;
        if (find_broken_limit(e, c)) continue;
        CHECK(r.status.result != outcome::infeasible);
        least_s = std::min(least_s, e.latency.value());
      }
    }
    if (found == nullptr) continue;
    proven += found->placement_bound.value() >= found->latency.value() * (1 - 1e-9);
    CHECK(found->placement_bound.value() <= least_s * (1 + 1e-9));
    CHECK(found->latency.value() <= least_s * (1 + 1e-9));
  }
  CAPTURE(infeasible, proven);
  CHECK(infeasible > 3);
  CHECK(proven > 40);
}

TEST_CASE("a weight that two operators share is held once by a device that has both") {
  planning_graph_builder b("tied");
  const auto embed = b.add_layer({.name = "embed", .kind = "Gather", .forward_flops = flops(1e3), .weight = 600_MB, .weight_group = "w"});
  const auto body = b.add_layer({.name = "body", .kind = "X", .forward_flops = 1_GFLOP, .weight = 1_MB});
  const auto head = b.add_layer({.name = "head", .kind = "MatMul", .forward_flops = 1_GFLOP, .weight = 600_MB, .weight_group = "w"});
  b.add_edge(embed, body, bytes(1e3));
  b.add_edge(body, head, bytes(1e3));
  const planning_graph model = std::move(b).build();
  const auto devices = [](bytes memory) {
    return cluster("c",
                   {{.name = "a", .memory = memory, .compute = flops_per_second(1e12)},
                    {.name = "b", .memory = 100_MB, .compute = flops_per_second(1e12)}},
                   mesh{bytes_per_second(1e9), seconds()});
  };
  for (const bytes memory : {601_MB, 600_MB}) {  // all on a, or the body elsewhere
    const cluster c = devices(memory);
    for (const auto planner : {recipes::heft, recipes::m_etf, recipes::m_sct, recipes::getf, recipes::moirai}) {
      const plan_result r = planner({model, c, roofline{}, one_inference()}, minimize_latency{}, {}, {});
      REQUIRE(r.status.ok());
      CHECK(r.plans.front().evaluation.peak_memory() <= memory);
    }
  }
  const cluster c = devices(599_MB);
  const plan_result r = recipes::moirai({model, c, roofline{}, one_inference()}, minimize_latency{});
  CHECK(r.status.result == outcome::infeasible);
  REQUIRE(r.status.proof.has_value());
  CHECK(r.status.proof->rows.front().needed == 600e6);
  CHECK(r.status.proof->rows.front().available == Approx(599e6));
}

TEST_CASE("Moirai fuses by TensorRT's rules unless told otherwise, and an observer ends it") {
  const planning_graph model = zoo::model("resnet50", {});
  const cluster home = zoo::cluster("smart-home-2");
  const planning_problem problem{model, home, roofline{}, one_inference(), {}, {}, 20'000};
  const auto stages = [&](const recipes::placement_view& view) {
    return recipes::moirai(problem, minimize_latency{}, view).plans.front().plan.stages.size();
  };
  CHECK(stages({}) <= model.size());
  CHECK(stages({.fusion = coarsen::no_fusion()}) == model.size());
  auto stop = [](const candidate_judged&) { return control::stop; };
  const plan_result r = recipes::moirai(problem, minimize_latency{}, {}, stop);
  CHECK(r.status.result == outcome::stopped);
  CHECK(r.plans.size() == 1);
}

TEST_CASE("a job that is no inference in one piece is infeasible, with the reason") {
  const planning_graph model = zoo::model("mobilenetv2", {});
  const cluster home = zoo::cluster("smart-home-2");
  CHECK_THAT(recipes::moirai({model, home, roofline{}, job{}}, minimize_latency{}).status.reason,
             Contains("moirai places the operators of one inference; the job is training"));
  job pieces = one_inference();
  pieces.batch = 8;
  pieces.microbatch_sizes = {2, 4};
  CHECK_THAT(recipes::heft({model, home, roofline{}, pieces}, minimize_latency{}).status.reason, Contains("runs the batch in one piece"));
  pieces.microbatch_sizes = {};
  CHECK(recipes::heft({model, home, roofline{}, pieces}, minimize_latency{}).status.ok());
}

TEST_CASE("a placement file names each layer's device and each device's order") {
  const planning_graph model = zoo::model("mobilenetv2", {});
  const cluster home = zoo::cluster("edge-cluster");
  const plan_result r = recipes::heft({model, home, roofline{}, one_inference()}, minimize_latency{});
  REQUIRE(r.status.ok());
  const io::json o = io::json::parse(exchange::write_placement(r.plans.front().plan, model, home));
  CHECK(o["placement"].size() == model.size());
  std::size_t listed = 0;
  for (const auto& [device, layers] : o["order"].items()) {
    listed += layers.size();
    for (const auto& l : layers) CHECK(o["placement"][l.get<std::string>()] == device);
  }
  CHECK(listed == model.size());
}

}  // namespace test_placement_recipes
