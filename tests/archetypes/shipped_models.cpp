// SPDX-License-Identifier: BSL-1.0
// Models that ship and need something say so in a sentence where they lack it; what refers to nouns is not made of temporaries; and
// models are asked from several threads where their page says so, and nowhere else.
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/environment.hpp>
#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/cluster/widest_routes.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/draw/trace_view.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/place/partial_schedule.hpp>
#include <hetplan/recipes/compare.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/recipes/epara.hpp>
#include <hetplan/recipes/placers.hpp>
#include <hetplan/schedule/local_search.hpp>
#include <hetplan/search/ranking.hpp>
#include <hetplan/serve/fluid_goodput.hpp>
#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/serve_requests.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/serve/serving_options.hpp>
#include <hetplan/serve/serving_run.hpp>
#include <hetplan/serve/size_for.hpp>
#include <hetplan/simulate/simulator.hpp>
#include <hetplan/simulate/wait_states.hpp>

#include "support/small_edge_cloud.hpp"
#include "support/three_devices.hpp"

namespace test_shipped_models {

using namespace hetplan;

namespace {

/// The sentence that f ends in; "" if it ends without one.
template <class F>
std::string sentence(F&& f) {
  try {
    static_cast<void>(f());
  } catch (const invalid_input& e) {
    return e.what();
  } catch (const invalid_model& e) {
    return e.what();
  }
  return {};
}

tasks::task_graph one_transfer(const cluster& c) {
  tasks::task_graph_builder b(c.size());
  const std::uint32_t way = b.add_route(*c.network().find(device_id(0), device_id(1)));
  b.add(tasks::transfer{.from = device_id(0), .to = device_id(1), .route = way, .volume_bytes = 1000});
  return std::move(b).build();
}

}  // namespace

TEST_CASE("models that ship and need something end in a sentence where they lack it") {
  const cluster c = test::three();
  const tasks::task_graph g = one_transfer(c);
  CHECK(sentence([&] { return simulate(g, c.network(), any_network_policy{}); }) ==
        "any_network_policy: holds no policy; expected one, such as fair_share{}");
  CHECK(sentence([&] { return simulate(g, c.network(), any_network_sharing{}); }) ==
        "simulate: an any_network_sharing of nothing; expected one that holds a sharing");
  CHECK_FALSE(sentence([&] { return simulate(g, c.network(), prescribed{}); }).empty());
  for (const auto& shipped : {sentence([&] {
                                return cluster("c", {{.name = "a", .memory = 1_GB}, {.name = "b", .memory = 1_GB}}, mesh{});
                              }),
                              sentence([&] {
                                return cluster("c", {{.name = "a", .memory = 1_GB}, {.name = "b", .memory = 1_GB}}, ring{});
                              }),
                              sentence([&] { return cluster("c", {{.name = "a", .memory = 1_GB}}, shared_medium{}); }),
                              sentence([&] { return cluster("c", {{.name = "a", .memory = 1_GB}}, star{}); }),
                              sentence([&] { return cluster("c", {{.name = "a", .memory = 1_GB}}, hierarchical{}); }),
                              sentence([&] { return cluster("c", {{.name = "a", .memory = 1_GB}}, widest_routes<shared_medium>{}); })})
    CHECK_FALSE(shipped.empty());

  const planning_graph model = test::chain(2);
  const device bare{.name = "bare", .memory = 1_GB};
  const work w{.layer = model[layer_id(0)], .phase = phase::forward};
  CHECK(sentence([&] { return roofline{}.time(w, bare); }).starts_with("roofline: device \"bare\" has no compute"));
  CHECK(sentence([&] { return profiled{}.time(w, bare); }).find("has no profile for that kind") != std::string::npos);
  CHECK(sentence([&] { return measured_power{}.energy({}, bare); }).empty());  // falls back
  const auto slow = [&](std::vector<double> factor) {
    return sentence([&] {
      const planning_problem problem{model, c, slow_down(roofline{}, std::move(factor))};
      return recipes::on_device(problem, minimize_latency{});
    });
  };
  CHECK(slow({}) == "slowed: 0 factors, none for device 0 \"fast\"; expected one for each device of the cluster");
  CHECK(slow({0.5, 0.5}) == "slowed: 2 factors, none for device 2 \"slow\"; expected one for each device of the cluster");
  CHECK(slow({0.5, 0.5, 0.5}).empty());
  CHECK(sentence([&] { return mix::device_energy{}.value({}); }).starts_with("device_energy: device -1"));
  const mix::plan_rates rates{.plans = {{1, 1}}};
  CHECK(sentence([&] { return mix::program_mixing{}(rates, {.horizon_s = 1, .progress = 1}); }) ==
        "program_mixing: holds no LP solver; expected one, such as program_mixing{glpk_lp{}}");
  const plan p{.model = model.name(),
               .cluster = c.name(),
               .stages = {{.name = "a", .layers = {layer_id(0)}, .devices = {{device_id(0)}}},
                          {.name = "b", .layers = {layer_id(1)}, .devices = {{device_id(1)}}}}};
  const schedule::cep_graph cep(tasks::expand(p, model, c, roofline{}), c.network());
  CHECK(sentence([&] { return schedule::any_search_start(schedule::given_rules{})(cep, {}); }).starts_with("search start: "));
  CHECK_FALSE(sentence([&] { return schedule::local_search(cep, {.starts = {}}); }).empty());

  const test::serving_setting s = test::small_cloud(2);
  const serve::request_stream requests({{0.1, serve::service_id(0), serve::server_id(0), 0, 1}});
  const auto play = [&](auto handler) {
    return sentence([&] { return serve::serve_requests(s.cloud, s.services, *s.times, requests, s.placed, handler); });
  };
  CHECK(play(serve::offload_by_idle_goodput{}) ==
        "offload_by_idle_goodput: services = nothing; expected the services whose requests it handles, such as "
        "offload_by_idle_goodput{&services}");
  CHECK(play(serve::offload_by_idle_goodput{&s.services}).empty());
  const std::vector<serve::service> none;
  CHECK(play(serve::offload_by_idle_goodput{&none}) ==
        "offload_by_idle_goodput: services = 0 services, but a request is for service 0; expected all services whose requests it handles");
  const auto timed = [&](std::vector<std::vector<serve::variant_times>> times) {
    serve::serve_locally handler;
    const serve::service_time_table table(std::move(times));
    return sentence([&] { return serve::serve_requests(s.cloud, s.services, table, requests, s.placed, handler); });
  };
  const std::string missing =
      "none of service 0 \"" + s.services[0].name + "\", variant 0; expected those of every service and variant " + "that runs";
  CHECK(timed({}) == "service_time_table: times of 0 services, " + missing);
  CHECK(timed(std::vector<std::vector<serve::variant_times>>(1)) == "service_time_table: times of 1 services, " + missing);
  CHECK(play(serve::any_request_handler{}) == "any_request_handler: holds no handler; expected one, such as serve_locally{}");
  const serve::cloud_damage damage;
  const serve::any_service_time times = *s.times;
  const serve::placement_question q{s.cloud, s.services, times, {}, 1_s, damage, s.placed};
  CHECK(sentence([&] { return serve::any_placement_policy{}.place(q); }) ==
        "any_placement_policy: holds no policy; expected one, such as submodular_placement{}");
  CHECK(sentence([&] { return serve::fixed_placement({}).place(q); }) == "fixed_placement: holds no deployment; expected one at least");
}

TEST_CASE("an empty function, or a null pointer, where a callable is expected ends in a sentence that names the door") {
  const std::string given = ": was given an empty function or a null pointer; expected ";
  using answers = std::function<plan_result(const planning_problem&)>;
  using answers_by_pointer = plan_result (*)(const planning_problem&);
  CHECK(sentence([] { return adapt::any_planner(answers{}); }) == "any_planner" + given + "a planner");
  CHECK(sentence([] { return adapt::any_planner(answers_by_pointer{}); }) == "any_planner" + given + "a planner");
  CHECK(sentence([] { return adapt::plan_menu{answers{}}; }) == "any_planner" + given + "a planner");
  CHECK(sentence([] { return decompose::any_decomposition(std::function<layer_sequence(const planning_graph&)>{}); }) ==
        "any_decomposition" + given + "a decomposition, such as joined_chains{}");
  using mixes = std::function<mix::mixture(const mix::plan_rates&, const mix::mixing_goal&)>;
  CHECK(sentence([] { return mix::any_mixing_controller(mixes{}); }) ==
        "any_mixing_controller" + given + "a mixing controller, such as exact_mixing{}");
  using schedules = std::function<schedule::network_schedule(const schedule::cep_graph&, const schedule::scheduling_limits&)>;
  CHECK(sentence([] { return schedule::any_transfer_scheduler(schedules{}); }) ==
        "any_transfer_scheduler" + given + "a transfer scheduler, such as searched_transfers{}");
  using starts = std::function<schedule::message_rules(const schedule::cep_graph&, const trace&)>;
  CHECK(sentence([] { return schedule::any_search_start(starts{}); }).starts_with("any_search_start" + given));
  using moves = std::function<schedule::message_rules(const schedule::cep_graph&, schedule::message_rules, const schedule::contention&)>;
  CHECK(sentence([] { return schedule::any_search_move(moves{}); }).starts_with("any_search_move" + given));
  using orders = std::function<std::vector<partition::device_space>(const partition::search_tables&, int)>;
  CHECK(sentence([] { return partition::any_device_ordering(orders{}); }).starts_with("any_device_ordering" + given));

  const planning_graph model = test::chain(2);
  const cluster c = test::three();
  const planning_problem problem{model, c, roofline{}};
  const auto compared = [&](const recipes::named_planner& p) {
    return sentence([&] { return recipes::compare(problem, minimize_latency{}, {{"fine", recipes::on_device}, p}); });
  };
  CHECK(compared({"mine", static_cast<recipes::named_planner::recipe>(nullptr)}) ==
        "compare: planner \"mine\"" + given + "a planner, such as recipes::dora");
  CHECK(compared({"mine", std::function<plan_result(const planning_problem&, const any_objective&)>{}}) ==
        "compare: planner \"mine\"" + given + "a planner, such as recipes::dora");
  CHECK(sentence([&] { return recipes::dora(problem, minimize_latency{}, 1, {.incumbents = {recipes::incumbent_planner{}}}); }) ==
        "dora: incumbent 0" + given + "a planner, such as recipes::pipeline");
  CHECK(sentence([&] { return recipes::plan_placement(problem, minimize_latency{}, "mine", {}, {}); }) ==
        "mine" + given + "a placement_search");
}

TEST_CASE("what keeps references to nouns is not made of temporaries") {
  const auto of = []<class Noun, class... Arguments>(std::type_identity<Noun>, std::type_identity<std::tuple<Arguments...>>) {
    return std::is_constructible_v<Noun, Arguments...>;
  };
#define CHECK_LIVES(NOUN, ...) STATIC_REQUIRE(of(std::type_identity<NOUN>{}, std::type_identity<std::tuple<__VA_ARGS__>>{}))
#define CHECK_DIES(NOUN, ...) STATIC_REQUIRE(!of(std::type_identity<NOUN>{}, std::type_identity<std::tuple<__VA_ARGS__>>{}))
  CHECK_LIVES(planning_problem, const planning_graph&, cluster&, roofline);
  CHECK_DIES(planning_problem, planning_graph, const cluster&, roofline);
  CHECK_DIES(planning_problem, const planning_graph&, cluster, roofline);
  CHECK_DIES(planning_problem, planning_graph, cluster, roofline);
  CHECK_DIES(planning_problem, const planning_graph, const cluster&, roofline, job);
  CHECK_LIVES(stage_costs, const planning_problem&, plan&);
  CHECK_DIES(stage_costs, const planning_problem&, plan);
  CHECK_DIES(stage_costs, planning_problem, const plan&);
  CHECK_LIVES(stage_costs, const plan&, const planning_graph&, const cluster&, roofline);
  CHECK_DIES(stage_costs, plan, const planning_graph&, const cluster&, roofline);
  CHECK_DIES(stage_costs, const plan&, planning_graph, const cluster&, roofline);
  CHECK_DIES(stage_costs, const plan&, const planning_graph&, cluster, roofline);
  CHECK_LIVES(remembered_cost, roofline, const planning_graph&, const cluster&);
  CHECK_DIES(remembered_cost, roofline, planning_graph, const cluster&);
  CHECK_DIES(remembered_cost, roofline, const planning_graph&, cluster);
  CHECK_LIVES(partition::search_tables, const planning_graph&, const layer_sequence&, const cluster&, roofline, plain_memory, linear_power,
              workload, int);
  CHECK_DIES(partition::search_tables, planning_graph, const layer_sequence&, const cluster&, roofline, plain_memory, linear_power,
             workload, int);
  CHECK_DIES(partition::search_tables, const planning_graph&, layer_sequence, const cluster&, roofline, plain_memory, linear_power,
             workload, int);
  CHECK_DIES(partition::search_tables, const planning_graph&, const layer_sequence&, cluster, roofline, plain_memory, linear_power,
             workload, int);
  CHECK_LIVES(schedule::cep_graph, tasks::task_graph, const network&);
  CHECK_DIES(schedule::cep_graph, tasks::task_graph, network);
  using services = std::vector<serve::service>;
  CHECK_LIVES(serve::fluid_goodput, const serve::edge_cloud&, services&, const serve::service_demand&);
  CHECK_DIES(serve::fluid_goodput, const serve::edge_cloud&, services, const serve::service_demand&);
  CHECK_LIVES(serve::placement_candidates, const serve::edge_cloud&, services&, const serve::any_service_time&,
              const serve::parallelism_operators&);
  CHECK_DIES(serve::placement_candidates, const serve::edge_cloud&, services, const serve::any_service_time&,
             const serve::parallelism_operators&);
  CHECK_LIVES(serve::serving_run, serve::edge_cloud&, services&, serve::any_service_time, const serve::request_stream&, serve::deployment,
              serve::serving_options);
  CHECK_DIES(serve::serving_run, serve::edge_cloud, services&, serve::any_service_time, const serve::request_stream&, serve::deployment,
             serve::serving_options);
  CHECK_DIES(serve::serving_run, serve::edge_cloud&, services, serve::any_service_time, const serve::request_stream&, serve::deployment,
             serve::serving_options);
  CHECK_DIES(serve::serving_run, serve::edge_cloud&, services&, serve::any_service_time, serve::request_stream, serve::deployment,
             serve::serving_options);
  CHECK_LIVES(place::partial_schedule, place::placement_table&, place::placement_rules);
  CHECK_DIES(place::partial_schedule, place::placement_table, place::placement_rules);
  CHECK_LIVES(wait_states, tasks::task_graph&, trace&);
  CHECK_DIES(wait_states, tasks::task_graph, const trace&);
  CHECK_DIES(wait_states, const tasks::task_graph&, trace);
  CHECK_LIVES(draw::trace_view, plan&, cluster&, judgement&);
  CHECK_DIES(draw::trace_view, plan, cluster&, judgement&);
  CHECK_DIES(draw::trace_view, plan&, cluster, judgement&);
  CHECK_DIES(draw::trace_view, plan&, cluster&, judgement);
  CHECK_LIVES(ranking, const planning_problem&, minimize_latency, int);
  CHECK_DIES(ranking, planning_problem, minimize_latency, int);
  CHECK_LIVES(recipes::dora_adapter, const planning_problem&);
  CHECK_DIES(recipes::dora_adapter, planning_problem);
  CHECK_DIES(adapt::known_plans, planning_problem);
  CHECK_DIES(adapt::plan_search, planning_problem, recipes::dora_planner);
  CHECK_DIES(adapt::replanning, planning_problem, recipes::dora_planner);
  CHECK_DIES(adapt::ladder, planning_problem, recipes::dora_planner);
  CHECK_DIES(adapt::mixing_policy, planning_problem, recipes::dora_planner);
  CHECK_LIVES(adapt::ladder, const planning_problem&, recipes::dora_planner);
  CHECK_LIVES(adapt::environment, const cluster&, const adapt::timeline&, adapt::heartbeat, qoe_target);
  CHECK_DIES(adapt::environment, cluster, const adapt::timeline&, adapt::heartbeat, qoe_target);
  CHECK_DIES(adapt::environment, const cluster&, adapt::timeline, adapt::heartbeat, qoe_target);
  using services = std::vector<serve::service>;
  CHECK_LIVES(serve::gpu_choice, const serve::edge_cloud&, const services&, serve::cloud_damage, serve::deployment);
  CHECK_DIES(serve::gpu_choice, serve::edge_cloud, const services&, serve::cloud_damage, serve::deployment);
  CHECK_DIES(serve::gpu_choice, const serve::edge_cloud&, services, serve::cloud_damage, serve::deployment);
#undef CHECK_LIVES
#undef CHECK_DIES
}

namespace {

/// Notes where two threads are inside at once.
struct turnstile {
  std::atomic<int> inside = 0;
  std::atomic<bool> met = false;
  std::atomic<long long> asked = 0;

  struct visit {
    turnstile& at;
    explicit visit(turnstile& t) : at(t) {
      ++at.asked;
      if (at.inside.fetch_add(1) > 0) at.met = true;
      if (at.asked % 64 == 0) std::this_thread::yield();
    }
    ~visit() { --at.inside; }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
  };
};

struct counted_cost {
  turnstile* door;
  [[nodiscard]] seconds time(const work& w, const device& d) const {
    const turnstile::visit here(*door);
    return roofline{}.time(w, d);
  }
};
struct counted_memory {
  turnstile* door;
  [[nodiscard]] bytes state(const layer& l, const workload& w) const {
    const turnstile::visit here(*door);
    return plain_memory{}.state(l, w);
  }
  [[nodiscard]] bytes activations(const layer& l, const workload& w) const {
    const turnstile::visit here(*door);
    return plain_memory{}.activations(l, w);
  }
  [[nodiscard]] bytes cache(const layer& l, const workload& w) const { return plain_memory{}.cache(l, w); }
};
struct counted_energy {
  turnstile* door;
  [[nodiscard]] joules energy(const device_usage& u, const device& d) const {
    const turnstile::visit here(*door);
    return linear_power{}.energy(u, d);
  }
};
struct counted_row {
  turnstile* door;
  layer_sequence operator()(const planning_graph& model) const {
    const turnstile::visit here(*door);
    return decompose::joined_chains{}(model);
  }
};
struct counted_orders {
  turnstile* door;
  std::vector<partition::device_space> operator()(const partition::search_tables& t, int largest) const {
    const turnstile::visit here(*door);
    return partition::affordable_orders{}(t, largest);
  }
};

}  // namespace

TEST_CASE("with threads, models that are asked one question at a time never meet a second one") {
  const planning_graph model = test::chain(12);
  const cluster c = test::three();
  turnstile cost, memory, energy, row, orders, observer;
  const planning_problem problem{
      model, c, counted_cost{&cost}, job{.batch = 8}, {.memory = counted_memory{&memory}, .energy = counted_energy{&energy}}};
  recipes::dora_options how;
  how.partitioner.threads = how.network.threads = 4;
  how.partitioner.rows = {counted_row{&row}};
  how.partitioner.orders = counted_orders{&orders};
  const auto caller = std::this_thread::get_id();
  bool elsewhere = false;
  const plan_result many = recipes::dora(problem, minimize_latency{}, 5, how, [&](const candidate_judged&) {
    const turnstile::visit here(observer);
    elsewhere = elsewhere || std::this_thread::get_id() != caller;
    return control::go;
  });
  REQUIRE_FALSE(many.plans.empty());
  CHECK_FALSE(elsewhere);
  for (const turnstile* t : {&cost, &memory, &energy, &row, &orders, &observer}) {
    CHECK(t->asked > 0);
    CHECK_FALSE(t->met);
  }
  how.partitioner.threads = how.network.threads = 1;
  const plan_result one = recipes::dora(problem, minimize_latency{}, 5, how);
  REQUIRE(one.plans.size() == many.plans.size());
  for (std::size_t i = 0; i < one.plans.size(); ++i) CHECK(one.plans[i] == many.plans[i]);
}

}  // namespace test_shipped_models
