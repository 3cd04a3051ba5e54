// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/hetplan.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/partition/brute_force.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/dora_partitioner.hpp>
#include <hetplan/recipes/few_blocks.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "support/search_instance.hpp"
#include "support/sound.hpp"

using namespace hetplan;

namespace {

struct slowest {  // not monotone: only complete plans can be scored
  [[nodiscard]] double score(const evaluation& e) const { return -e.latency.value(); }
};

/// Returns a built-in model of 512 tokens per sample, or of one for generation.
planning_graph model_for(mode how, const char* name) {
  return how == mode::generation ? zoo::model(name, {.tokens = 1}) : zoo::model(name, {});
}

}  // namespace

TEST_CASE("Dora's plans are sound for every mode and objective on the zoo's settings", "[long]") {
  for (const char* setting : {"smart-home-2", "traffic-monitor"}) {
    const cluster c = zoo::cluster(setting);
    for (const mode how : {mode::training, mode::inference, mode::generation}) {
      const planning_graph model = model_for(how, "bert-base");
      const planning_problem problem{model, c, roofline{}, job{.workload = {.mode = how, .context = 64, .tokens = 4}, .batch = 8}};
      INFO(setting << " " << to_string(how));
      test::require_sound(recipes::dora(problem, minimize_latency{}), problem, minimize_latency{});
      test::require_sound(recipes::dora(problem, minimize_energy{}, 3), problem, minimize_energy{});
      test::require_sound(recipes::dora(problem, keep_qoe{1_s, 100}), problem, keep_qoe{1_s, 100});
      test::require_sound(recipes::dora(problem, slowest{}), problem, slowest{});
    }
  }
}

TEST_CASE("both phases are never worse than either alone", "[long]") {
  for (const char* setting : {"smart-home-1", "smart-home-2"}) {
    for (const mode how : {mode::training, mode::inference, mode::generation}) {
      INFO(setting << " " << to_string(how));
      const planning_graph model = model_for(how, "qwen3-1.7b");
      const cluster c = zoo::cluster(setting);
      const planning_problem problem{model, c, roofline{}, job{.workload = {.mode = how}, .batch = 8}};
      const auto latency = [](const plan_result& r) { return r.plans.front().evaluation.latency; };
      const plan_result both = recipes::dora(problem, minimize_latency{}, 1), even = recipes::even_split(problem, minimize_latency{}, 10);
      REQUIRE(both.status.ok());
      CHECK(latency(both) <= latency(recipes::dora_partitioner(problem, minimize_latency{}, 1)));
      if (even.plans.empty()) continue;
      const plan_result scheduled = schedule::refine(problem, minimize_latency{}, plans_of(even.plans), 1);
      CHECK(latency(scheduled) <= latency(even));
      CHECK(latency(both) <= latency(scheduled));
    }
  }
}

TEST_CASE("Dora beats the three baselines on the main job", "[long]") {
  for (const char* setting : {"smart-home-2", "traffic-monitor"}) {
    for (const char* name : {"qwen3-1.7b", "qwen-omni"}) {
      INFO(name << " on " << setting);
      const planning_graph model = zoo::model(name, {});
      const cluster c = zoo::cluster(setting);
      job j{.batch = 32};
      if (std::string(name) == "qwen-omni") j.workload.optimizer_factor = 0;
      const planning_problem problem{model, c, roofline{}, j};
      const plan_result mine = recipes::dora(problem, minimize_latency{}, 1);
      REQUIRE(mine.status.ok());
      const double latency = mine.plans.front().evaluation.latency.value();
      for (const plan_result& other :
           {recipes::on_device(problem, minimize_latency{}, 1), recipes::data_parallel(problem, minimize_latency{}, 1),
            recipes::pipeline(problem, minimize_latency{}, 1)}) {
        if (!other.plans.empty()) CHECK(latency <= other.plans.front().evaluation.latency.value());
      }
    }
  }
}

TEST_CASE("stages that may cross chains are never estimated worse than Dora's two substates") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 200; ++seed) {
    const test::search_instance i = test::random_search_instance(seed);
    INFO(i.what);
    const layer_sequence row = i.sequence.joined();
    const auto best = [&](const layer_sequence& s) {
      const partition::search_tables t(i.model, s, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank.workload,
                                       i.blank.microbatch_size);
      return partition::two_substate_dp(t, test::any_order(t, i.blank), i.blank, minimize_latency{}, partition::dominance{}, {.plans = 1})
          .plans;
    };
    const auto chains = best(i.sequence), any = best(row);
    if (chains.empty()) continue;
    REQUIRE_FALSE(any.empty());
    REQUIRE(any.front().score <= chains.front().score * (1 + 1e-9));
  }
}

TEST_CASE("what does not fit is told by limit, device and the smallest overflow") {
  planning_graph_builder b("heavy");
  for (int l = 0; l < 4; ++l) {
    b.add_layer({.name = "l" + std::to_string(l), .forward_flops = 1_GFLOP, .weight = 100_MB, .activation = 1_MB});
    if (l > 0) b.add_edge(layer_id(l - 1), layer_id(l), 1_kB);
  }
  const planning_graph model = std::move(b).build();
  const auto home = [&](bytes memory) {
    return cluster(
        "two",
        {{.name = "small", .memory = memory, .compute = 1_TFLOP_per_s}, {.name = "large", .memory = 3 * memory, .compute = 1_TFLOP_per_s}},
        shared_medium{100_Mbit_per_s, 1_ms});
  };
  // Adam takes 4 x 100 MB per layer. Devices have 300 and 900 MB: one layer and three layers exceed them least, by a third each.
  const cluster tight = home(300_MB);
  const plan_result r = recipes::dora(planning_problem{model, tight, roofline{}, job{.batch = 1}}, minimize_latency{});
  REQUIRE(r.status.result == outcome::infeasible);
  REQUIRE(r.binding.has_value());
  CHECK(r.binding->kind == limit_kind::memory);
  CHECK(r.binding->overflow() == Approx(1.0 / 3 + 1e6 / 300e6).epsilon(1e-3));
  CHECK(r.status.reason.find("memory: ") == 0);
  // An energy budget binds where memory does not.
  cluster frugal("two", {{.name = "only", .memory = 4_GB, .compute = 1_TFLOP_per_s, .power = {1_W, 10_W}, .energy_budget = joules(1e-6)}},
                 shared_medium{100_Mbit_per_s, 1_ms});
  const plan_result e = recipes::dora(planning_problem{model, frugal, roofline{}, job{.batch = 1}}, minimize_latency{});
  REQUIRE(e.status.result == outcome::infeasible);
  REQUIRE(e.status.proof->rows.size() == 1);
  CHECK(e.status.proof->rows.front().needed > e.status.proof->rows.front().available);
  CHECK(e.binding->kind == limit_kind::energy);
}

TEST_CASE("least_overflow finds the least fullness of all cuts, groups and orders") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 300; ++seed) {
    test::search_instance i = test::random_search_instance(seed, {.most_layers = 5, .most_devices = 3});
    INFO(i.what);
    const partition::search_tables t = test::tables_of(i);
    const plan nearest = partition::least_overflow(t, test::any_order(t, i.blank), i.blank).value();
    REQUIRE_FALSE(validate(nearest, i.model, i.cluster));
    const auto fullness = [&](const plan& p) {
      const evaluation e = estimate(p, i.model, i.cluster, roofline{});
      double fullest = 0;
      for (const device& d : i.cluster.devices()) fullest = std::max(fullest, e.devices[d.id.index()].peak_memory / d.usable_memory());
      return fullest;
    };
    // Enumerates all plans and all shares with a hundred times the memory.
    std::vector<device> roomy(i.cluster.devices().begin(), i.cluster.devices().end());
    for (device& d : roomy) d.memory = d.memory * 100;
    const cluster large("large", roomy, mesh{1_Gbit_per_s, 0_s});
    double least = std::numeric_limits<double>::infinity();
    partition::space_options space;
    space.all_shares = true;
    space.warmup = warmup_rule::one;
    partition::for_each_plan(i.sequence, i.model, large, roofline{}, plain_memory{}, i.blank, space,
                             [&](const plan& p) { least = std::min(least, fullness(p)); });
    REQUIRE(fullness(nearest) == Approx(least).epsilon(1e-9));
  }
}

TEST_CASE("fit_warmup raises warm-up to what memory holds and no further") {
  int raised = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 300; ++seed) {
    test::search_instance i = test::random_search_instance(seed);
    i.blank.workload.mode = mode::training;
    i.blank.schedule.kind = schedule_kind::one_f_one_b;
    i.blank.microbatches = 6;
    INFO(i.what);
    const partition::search_tables t = test::tables_of(i);
    const auto found = partition::two_substate_dp(t, test::any_order(t, i.blank), i.blank, minimize_latency{}, partition::top_k{3},
                                                  {.warmup = warmup_rule::one, .keep_budgets = false});
    for (const auto& f : found.plans) {
      plan p = f.plan;
      fit_warmup(p, i.model, i.cluster, plain_memory{});
      REQUIRE_FALSE(validate(p, i.model, i.cluster));
      const evaluation e = judge(p, i.model, i.cluster, roofline{}).evaluation;
      REQUIRE(within_memory(e, i.cluster));
      for (const int k : p.schedule.warmup) raised += k > 1;
      // One more microbatch at a stage breaks its memory or its producers' rule, or exceeds the largest useful warm-up.
      const stage_graph g = make_stage_graph(p, i.model);
      for (std::size_t s = 0; s < p.stages.size(); ++s) {
        plan more = p;
        ++more.schedule.warmup[s];
        if (more.schedule.warmup[s] > 2 * g.nodes[s].depth - 1 || more.schedule.warmup[s] > p.microbatches) continue;
        const bool held_back = std::any_of(g.nodes[s].in.begin(), g.nodes[s].in.end(), [&](std::size_t edge) {
          return g.edges[edge].backward_cut.value() > 0 && p.schedule.warmup[g.edges[edge].from.index()] <= p.schedule.warmup[s];
        });
        if (held_back) continue;
        const evaluation over = estimate(more, i.model, i.cluster, roofline{});
        bool breaks = false;
        for (const assignment& a : more.stages[s].devices) {
          breaks = breaks || over.devices[a.device.index()].peak_memory > i.cluster[a.device].usable_memory() * (1 + limit_tolerance);
        }
        REQUIRE(breaks);
      }
    }
  }
  REQUIRE(raised > 50);
}

TEST_CASE("an observer stops Dora with the best plan so far") {
  const planning_graph model = zoo::model("bert-small", {});
  const cluster c = zoo::cluster("smart-home-1");
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  const plan_result r =
      recipes::dora(problem, minimize_latency{}, 5, [](const candidate_judged& e) { return e.judged < 3 ? control::go : control::stop; });
  REQUIRE(r.status.result == outcome::stopped);
  REQUIRE(r.candidates == 3);
  REQUIRE_FALSE(r.plans.empty());
}

TEST_CASE("Dora's partitioner judges no plan twice") {
  const planning_graph model = zoo::model("bert-small", {});
  const cluster c = zoo::cluster("smart-home-1");
  for (const mode how : {mode::training, mode::inference}) {
    const planning_problem problem{model, c, roofline{}, job{.workload = {.mode = how}, .batch = 8}};
    const plan_result r = recipes::dora_partitioner(problem, minimize_latency{}, 1000);
    for (std::size_t i = 0; i < r.plans.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const plan &a = r.plans[i].plan, &b = r.plans[j].plan;
        REQUIRE((a.microbatch_size != b.microbatch_size || a.stages != b.stages || a.schedule != b.schedule));
      }
    }
    REQUIRE(r.candidates == static_cast<long long>(r.plans.size()));
  }
}

TEST_CASE("rows that are given hold for every plan, polished ones too; behind the usual ones polishing may cut their blocks") {
  const planning_graph model = zoo::model("qwen3-0.6b", {});
  const cluster c = zoo::cluster("smart-home-2");
  const planning_problem problem{model, c, roofline{}, job{.batch = 32}};
  const layer_sequence row = decompose::joined_chains{}(model);
  const auto is_cut = [&](const plan& p) {  // no block is in two stages
    return std::all_of(row.blocks.begin(), row.blocks.end(), [&](const std::vector<layer_id>& block) {
      return std::any_of(p.stages.begin(), p.stages.end(), [&](const stage& s) {
        return std::all_of(block.begin(), block.end(),
                           [&](layer_id l) { return std::find(s.layers.begin(), s.layers.end(), l) != s.layers.end(); });
      });
    });
  };
  const auto plans = [&](const recipes::partitioner_options& how) {
    return plans_of(recipes::dora_partitioner(problem, minimize_latency{}, 40, how).plans);
  };
  recipes::partitioner_options how{.rows = {decompose::joined_chains{}}};
  const auto whole = plans(how);
  REQUIRE(whole.size() > 5);
  CHECK(std::all_of(whole.begin(), whole.end(), is_cut));
  how.polish.boundaries = polish_boundaries::of_layers;
  const auto cut = plans(how);
  CHECK_FALSE(std::all_of(cut.begin(), cut.end(), is_cut));
  how.rows = recipes::usual_rows();
  CHECK(plans(how) == plans({}));
}

TEST_CASE("a group of sequences is as large as the batch where that is fastest") {
  planning_graph_builder b("reads its weights in every step");
  for (int i = 0; i < 4; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = 0.1_GFLOP, .weight = 100_MB, .kv_bytes_per_token = 1_kB});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 10_kB);
  }
  const planning_graph model = std::move(b).build();
  const device gpu{.name = "gpu", .memory = 16_GB, .compute = 20_TFLOP_per_s, .memory_bandwidth = 100_GB_per_s};
  for (const std::size_t devices : {std::size_t{1}, std::size_t{2}}) {
    std::vector<device> all(devices, gpu);
    for (std::size_t d = 0; d < devices; ++d) all[d].name += std::to_string(d);
    const cluster c("gpus", all, mesh{1_Gbit_per_s, 0.1_ms});
    for (const mode how : {mode::generation, mode::inference}) {
      const planning_problem problem{model, c, roofline{}, job{.workload = {.mode = how}, .batch = 256}};
      const plan_result r = recipes::dora(problem, minimize_response{}, 1);
      REQUIRE(r.status.ok());
      INFO(devices << " devices, " << to_string(how));
      CHECK(r.plans.front().plan.microbatch_size == 256);
    }
  }
}

TEST_CASE("plans that are known compete with what the partitioner finds, keep their name and are polished") {
  const planning_graph model = zoo::model("bert-small", {});
  const cluster c = zoo::cluster("smart-home-1");
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  const plan_result alone = recipes::dora_partitioner(problem, minimize_latency{}, 5);
  recipes::partitioner_options how;
  how.known = recipes::pipeline(problem, minimize_latency{}, 1).plans;
  REQUIRE(how.known.size() == 1);
  auto& [known, known_evaluation] = how.known.front();
  known.planner = "another";
  known.transfers = transfer_mode::block;  // a plan that no search finds
  known_evaluation = evaluate(known, model, c, problem.cost).evaluation;
  const plan_result both = recipes::dora_partitioner(problem, minimize_latency{}, 1000, how);
  CHECK(both.plans.front().evaluation.latency <= alone.plans.front().evaluation.latency);
  CHECK(std::any_of(both.plans.begin(), both.plans.end(), [](const ranked_plan& r) { return r.plan.planner == "another"; }));
  // A known plan that the search finds, too, counts as the search's own.
  how.known = {alone.plans.front()};
  how.known.front().plan.planner = "another";
  CHECK(recipes::dora_partitioner(problem, minimize_latency{}, 1, how).plans.front().plan.planner == "dora");
}

TEST_CASE("few blocks of a model hold and take what their layers do") {
  const planning_graph models[] = {zoo::model("bert-base", {}), zoo::model("resnet50", {})};  // tied embeddings; branches
  const cluster c = zoo::cluster("smart-home-2");
  for (const planning_graph& model : models) {
    INFO(model.name());
    const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
    recipes::few_blocks blocks(problem, recipes::blocks_of_large_models);
    REQUIRE(blocks.problem().model.size() <= recipes::blocks_of_large_models + 4);
    int cut = 0;
    for (const auto& planner : {recipes::pipeline, recipes::even_split}) {
      const plan_result r = planner(blocks.problem(), minimize_latency{}, 3, {});
      REQUIRE(r.status.ok());
      for (const auto& [p, predicted] : r.plans) {
        const plan whole = blocks.expand(p);
        REQUIRE_FALSE(validate(whole, model, c));
        const evaluation e = judge(whole, model, c, problem.cost).evaluation;
        CHECK(e.latency.value() == Approx(predicted.latency.value()).epsilon(1e-9));
        // A block has the largest workspace and the largest scratch of its layers, perhaps of different ones.
        CHECK(e.peak_memory().value() <= predicted.peak_memory().value() * (1 + 1e-9));
        CHECK(e.peak_memory().value() == Approx(predicted.peak_memory().value()).epsilon(0.02));
        cut += p.stages.size() > 1;
      }
    }
    CHECK(cut > 1);
  }
}

TEST_CASE("twenty-two devices, one of which is nearly the best, within the steps that there are", "[unsanitized]") {
  const std::string file = HETPLAN_SOURCE_DIR "/bench/settings/cloud-edge-end.json";
  const cluster c = io::read_cluster(io::json_document::load(file));
  const planning_graph model = zoo::model("resnet101", {.input = zoo::image_shape{3, 32, 32}});
  REQUIRE(c.size() == 22);
  for (const std::vector<int>& sizes : {std::vector<int>{}, std::vector<int>{1, 2, 4, 8, 16}}) {
    INFO(sizes.size() << " sizes of microbatches");
    const job wanted{.batch = 128, .microbatch_sizes = sizes};
    const planning_problem problem{model, c, profiled_or_roofline{}, wanted, {}, {}, standard_steps / 10};
    const plan_result r = recipes::dora(problem, minimize_latency{}, 1);
    CHECK(r.out_of_steps);
    REQUIRE_FALSE(r.plans.empty());
    CHECK(r.plans.front().evaluation.latency <= (sizes.empty() ? 31.1_ms : 34.5_ms));
  }
}

TEST_CASE("Dora as printed: the estimate chooses") {
  const planning_graph model = zoo::model("qwen-omni", {});
  const cluster c = zoo::cluster("traffic-monitor");
  const job wanted{.workload = {.optimizer_factor = 0}, .batch = 32, .microbatch_sizes = {1, 2, 4, 8, 16}};
  const planning_problem problem{model, c, profiled_or_roofline{}, wanted};
  const plan_result printed = recipes::dora_as_printed(problem, minimize_latency{});
  REQUIRE(printed.status.ok());
  CHECK(printed.plans.front().plan.planner == "dora-printed");
  CHECK(printed.plans.front().evaluation.latency.value() == Approx(870.27).epsilon(0.001));
}

TEST_CASE("dora ends soon where one layer fits on no device, though the space of all cuts is large") {
  planning_graph_builder b("chain");
  for (int i = 0; i < 20; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = flops(1e9), .weight = bytes(i == 5 ? 8e6 : 1e6)});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1e5));
  }
  const planning_graph model = std::move(b).build();
  std::vector<device> devices;
  for (int i = 0; i < 6; ++i) {
    device d;
    d.name = "d" + std::to_string(i);
    d.compute = flops_per_second(1e12);
    d.memory = bytes(31e6);  // the large layer needs 32
    devices.push_back(std::move(d));
  }
  const cluster c("six", std::move(devices), shared_medium{bytes_per_second(1e8), seconds(0)});
  const plan_result r = recipes::dora(planning_problem(model, c, roofline{}, job{.batch = 5}), minimize_latency{}, 1);
  CHECK(r.status.result == outcome::none_found);
  job sharing{.batch = 5};
  sharing.memory_savers.shard_state = true;
  CHECK(recipes::dora(planning_problem(model, c, roofline{}, sharing), minimize_latency{}, 1).status.ok());
}

TEST_CASE("dora's best plan does not depend on how many are wanted") {
  const planning_graph model = zoo::model("bert-small", {});
  const cluster c = zoo::cluster("traffic-monitor");
  for (const bool savers : {false, true}) {
    job j{.batch = 8};
    j.memory_savers = {.recompute = savers, .shard_state = savers};
    const planning_problem problem(model, c, roofline{}, j);
    const plan_result one = recipes::dora(problem, minimize_latency{}, 1), ten = recipes::dora(problem, minimize_latency{}, 10);
    REQUIRE(one.status.ok());
    CHECK(one.plans.front().plan == ten.plans.front().plan);
  }
}
