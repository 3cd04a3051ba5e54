// SPDX-License-Identifier: BSL-1.0
// refine() improves the transfer schedules of candidates: none becomes worse, for any number of threads.

#include <hetplan/schedule/transfer_scheduler.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/solve/glpk.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "support/by_hand.hpp"
#include "support/message_of.hpp"
#include "support/random_cep.hpp"
#include "support/random_instance.hpp"
#include "support/sound.hpp"
#include "support/three_devices.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// A chain on three devices of one slow medium, and plans for it.
struct small_problem {
  planning_graph model = chain(9);
  hetplan::cluster cluster = three(4_GB, 200_Mbit_per_s);
  job what{.batch = 8};

  [[nodiscard]] auto problem() const { return planning_problem{model, cluster, roofline{}, what, judge_models{}, glpk_lp{}}; }
  [[nodiscard]] std::vector<ranked_plan> ranked(int k = 6) const {
    return recipes::dora_partitioner(problem(), minimize_latency{}, k, recipes::partitioner_options{.k = k}).plans;
  }
  [[nodiscard]] std::vector<plan> candidates() const { return plans_of(ranked()); }
};

schedule::refine_options quick(int threads = 1, std::uint64_t seed = 1) {
  return {.threads = threads, .scheduler = schedule::searched_transfers{.search = {.steps = 40, .seed = seed}, .orders = {.solves = 3}}};
}

/// Returns true if the plans differ at most in how transfers run.
bool same_partition(const plan& a, const plan& b) {
  return a.stages == b.stages && a.microbatch_size == b.microbatch_size && a.microbatches == b.microbatches &&
         a.schedule.kind == b.schedule.kind && a.schedule.warmup == b.schedule.warmup && a.schedule.orders == b.schedule.orders;
}
template <class Problem, class Objective>
double score_of(const Problem& problem, const Objective& objective, const plan& p) {
  return score(objective, judge(p, problem.model, problem.cluster, problem.cost, problem.models).evaluation);
}
bool equal(const plan_result& a, const plan_result& b) {
  return a.plans == b.plans && a.status == b.status && a.candidates == b.candidates;
}

/// User-defined rule: later microbatches first.
struct backwards {
  [[nodiscard]] int tier(const tasks::transfer& t) const { return -t.microbatch; }
  [[nodiscard]] route_access access() const { return route_access::shared; }
};

}  // namespace

TEST_CASE("a candidate whose own rules hold it up is freed of them, also where its network is fair") {
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 2}});
  const cluster c = wired(2);
  plan late = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  late.schedule.transfers = {
      {.from = device_id(0), .to = device_id(1), .from_stage = stage_id(0), .to_stage = stage_id(1), .release = 9_s}};
  const planning_problem p{m, c, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 1}};
  REQUIRE(judge(late, m, c, roofline{}).evaluation.latency.value() == near(12));
  const plan_result r = schedule::refine(p, minimize_latency{}, std::vector{late}, 1);
  REQUIRE(r.status.ok());
  CHECK(r.plans.front().evaluation.latency.value() == near(4));
  CHECK(r.plans.front().plan.schedule.transfers.empty());
}

TEST_CASE("no candidate comes out worse than it went in, for every mode and objective") {
  int better = 0;
  for (const mode how : {mode::training, mode::inference, mode::generation}) {
    small_problem s;
    s.what.workload.mode = how;
    s.what.workload.tokens = 3;
    const auto problem = s.problem();
    const std::vector<ranked_plan> ranked = s.ranked();
    const std::vector<plan> given = plans_of(ranked);
    REQUIRE(given.size() >= 4);
    const auto check = [&](const auto& objective) {
      const plan_result r = schedule::refine(problem, objective, given, static_cast<int>(given.size()), quick());
      require_sound(r, problem, objective);
      REQUIRE(r.plans.size() == given.size());
      REQUIRE(r.candidates == static_cast<long long>(given.size()));
      for (const plan& p : given) {
        const auto out = std::find_if(r.plans.begin(), r.plans.end(), [&](const ranked_plan& q) { return same_partition(p, q.plan); });
        REQUIRE(out != r.plans.end());
        const double before = score_of(problem, objective, p), after = score(objective, out->evaluation);
        REQUIRE(after <= before);
        if (out->plan != p) REQUIRE(after < before);  // a tie keeps the given plan
        better += after < before;
      }
    };
    check(minimize_latency{});
    check(minimize_energy{});
    check(keep_qoe{seconds(ranked.front().evaluation.latency.value() * 0.8), 50});
    check(maximize_throughput{});
  }
  CHECK(better >= 10);
}

TEST_CASE("random plans with rules or ports of their own compete as given") {
  int improved = 0, with_rules = 0, exclusive = 0;
  for_random_instances(10, [&](const instance& i) {
    const planning_graph model = i.model();
    const cluster c = i.cluster();
    const planning_problem problem{model, c, roofline{},
                                   job{.workload = i.plan.workload, .batch = i.plan.microbatch_size * i.plan.microbatches}};
    const double before = score_of(problem, minimize_latency{}, i.plan);
    const plan_result r = schedule::refine(problem, minimize_latency{}, std::span(&i.plan, 1), 1, quick());
    REQUIRE(r.status.ok());
    REQUIRE(r.plans.size() == 1);
    const auto& [out, e] = r.plans.front();
    REQUIRE(same_partition(out, i.plan));
    REQUIRE(score_of(problem, minimize_latency{}, out) == score(minimize_latency{}, e));
    const double after = score(minimize_latency{}, e);
    REQUIRE(after <= before);
    if (out == i.plan) {
      REQUIRE(after == before);
      with_rules += !i.plan.schedule.transfers.empty();
      exclusive += i.plan.sharing_policy == sharing::exclusive && c.size() > 2;
    } else {
      REQUIRE(after < before);
      REQUIRE(out.sharing_policy != sharing::exclusive);
      ++improved;
    }
    // The schedule without the plan's rules is always tried.
    plan alone = i.plan;
    alone.sharing_policy = sharing::fair_share;
    alone.schedule.transfers.clear();
    REQUIRE(after <= score_of(problem, minimize_latency{}, alone));
  });
  CHECK(improved >= 20);
  CHECK(with_rules >= 1);
  CHECK(exclusive >= 1);
}

TEST_CASE("refined plans are the same for any number of threads, and the seed decides") {
  small_problem s;
  const auto problem = s.problem();
  const std::vector<plan> given = s.candidates();
  const plan_result one = schedule::refine(problem, minimize_latency{}, given, 10, quick(1));
  REQUIRE(one.plans.size() == given.size());
  for (const int threads : {0, 2, 4, 16}) {
    INFO("threads " << threads);
    CHECK(equal(schedule::refine(problem, minimize_latency{}, given, 10, quick(threads)), one));
  }
  CHECK(equal(schedule::refine(problem, minimize_latency{}, given, 10, quick(1)), one));
  int differ = 0, all = 0;  // over plans whose transfers leave a choice
  for_random_instances(40, [&](const instance& i) {
    const planning_graph model = i.model();
    const cluster c = i.cluster();
    const planning_problem random_one{model, c, roofline{},
                                      job{.workload = i.plan.workload, .batch = i.plan.microbatch_size * i.plan.microbatches}};
    const auto with = [&](std::uint64_t seed) {
      return schedule::refine(random_one, minimize_latency{}, std::span(&i.plan, 1), 1,
                              {.scheduler = schedule::searched_transfers{.search = {.steps = 12, .seed = seed}}});
    };
    const plan_result first = with(1);
    REQUIRE(equal(with(1), first));
    differ += !equal(with(2), first);
    ++all;
  });
  CHECK(all == 560);
  CHECK(differ >= 3);
}

TEST_CASE("refine keeps as many as it is told, the best of all") {
  small_problem s;
  const auto problem = s.problem();
  const std::vector<plan> given = s.candidates();
  const plan_result all = schedule::refine(problem, minimize_latency{}, given, 100, quick()),
                    two = schedule::refine(problem, minimize_latency{}, given, 2, quick());
  REQUIRE(two.plans.size() == 2);
  CHECK(two.plans[0] == all.plans[0]);
  CHECK(two.plans[1] == all.plans[1]);
  CHECK(two.candidates == all.candidates);
  const plan_result none = schedule::refine(problem, minimize_latency{}, {}, 2, quick());
  CHECK(none.status.result == outcome::none_found);
  CHECK(none.plans.empty());
}

TEST_CASE("an observer hears of candidates in order, on the caller's thread, and stops refining") {
  small_problem s;
  const auto problem = s.problem();
  const std::vector<plan> given = s.candidates();
  for (const int threads : {1, 3}) {
    std::vector<long long> heard;
    bool here = true;
    const auto me = std::this_thread::get_id();
    const plan_result r = schedule::refine(problem, minimize_latency{}, given, 10, quick(threads), [&](const candidate_judged& e) {
      heard.push_back(e.judged);
      here = here && std::this_thread::get_id() == me && e.best != nullptr;
      return heard.size() < 3 ? control::go : control::stop;
    });
    CHECK(here);
    CHECK(heard == std::vector<long long>{1, 2, 3});
    CHECK(r.status.result == outcome::stopped);
    CHECK_THAT(r.status.reason, Catch::Contains("stopped by an observer after 3 candidates"));
    CHECK(r.candidates == 3);
    REQUIRE(r.plans.size() == 3);
    for (const ranked_plan& p : r.plans) {
      const bool among_first = std::any_of(given.begin(), given.begin() + 3, [&](const plan& q) { return same_partition(p.plan, q); });
      CHECK(among_first);
    }
  }
}

TEST_CASE("a time limit of nothing leaves candidates as given or better, and says so") {
  small_problem s;
  const auto problem = s.problem();
  const std::vector<plan> given = s.candidates();
  for (const int threads : {1, 2}) {
    schedule::refine_options o = quick(threads);
    o.time_limit = 0_s;
    const plan_result r = schedule::refine(problem, minimize_latency{}, given, 10, o);
    CHECK(r.status.result == outcome::stopped);
    CHECK_THAT(r.status.reason, Catch::Contains("refine: stopped by its time limit"));
    REQUIRE(r.plans.size() == given.size());
    for (const ranked_plan& p : r.plans) {
      const auto in = std::find_if(given.begin(), given.end(), [&](const plan& q) { return same_partition(p.plan, q); });
      REQUIRE(in != given.end());
      CHECK(p.evaluation.latency.value() <= score_of(problem, minimize_latency{}, *in));
      CHECK(p.evaluation.bound.value() > 0);
    }
    o.time_limit = 1000_s;
    CHECK(equal(schedule::refine(problem, minimize_latency{}, given, 10, o),
                schedule::refine(problem, minimize_latency{}, given, 10, quick())));
  }
}

TEST_CASE("candidates that are too large for the limit of steps are charged what was done for them: nothing") {
  small_problem s;
  const std::vector<ranked_plan> given = s.ranked();
  schedule::refine_options o = quick();
  o.steps = 50;
  const plan_result r = schedule::refine_judged(s.problem(), minimize_latency{}, given, 10, o);
  CHECK(r.steps == 0);
  CHECK(r.out_of_steps);
  REQUIRE(r.plans.size() == given.size());
  for (std::size_t i = 0; i < given.size(); ++i) CHECK(r.plans[i].plan == given[i].plan);
}

TEST_CASE("an invalid candidate is refused, whatever the threads") {
  small_problem s;
  const auto problem = s.problem();
  for (const int threads : {1, 4}) {
    std::vector<plan> given = s.candidates();
    given[2].stages.front().layers.clear();
    CHECK_THROWS_AS(schedule::refine(problem, minimize_latency{}, given, 10, quick(threads)), invalid_input);
  }
}

TEST_CASE("under the user's own network no candidate comes out worse either") {
  small_problem s;
  const judge_models judges{.network = backwards{}};
  const planning_problem problem{s.model, s.cluster, roofline{}, s.what, judges};
  const std::vector<plan> given = s.candidates();
  const plan_result r = schedule::refine(problem, minimize_latency{}, given, 10, quick());
  require_sound(r, problem, minimize_latency{});
  REQUIRE(r.plans.size() == given.size());
  for (const ranked_plan& p : r.plans) {
    const auto in = std::find_if(given.begin(), given.end(), [&](const plan& q) { return same_partition(p.plan, q); });
    REQUIRE(in != given.end());
    CHECK(p.evaluation.latency.value() <= score_of(problem, minimize_latency{}, *in));
    CHECK(judge(p.plan, s.model, s.cluster, roofline{}, judges).evaluation.latency == p.evaluation.latency);
  }
}

TEST_CASE("candidates over their memory are out, and where all are, the limit is named") {
  small_problem s;
  const std::vector<ranked_plan> ranked = s.ranked();
  const std::vector<plan> given = plans_of(ranked);
  double least = 1e300, most = 0;
  for (const ranked_plan& p : ranked) {
    least = std::min(least, p.evaluation.peak_memory().value());
    most = std::max(most, p.evaluation.peak_memory().value());
  }
  REQUIRE(least < most * 0.999);
  s.cluster = three(bytes((least + most) / 2), 200_Mbit_per_s);
  const plan_result some = schedule::refine(s.problem(), minimize_latency{}, given, 10, quick());
  REQUIRE(some.status.ok());
  CHECK(some.plans.size() >= 1);
  CHECK(some.plans.size() < given.size());
  s.cluster = three(bytes(least * 0.9), 200_Mbit_per_s);
  const plan_result none = schedule::refine(s.problem(), minimize_latency{}, given, 10, quick());
  CHECK(none.status.result == outcome::none_found);
  REQUIRE(none.binding.has_value());
  CHECK(none.binding->kind == limit_kind::memory);
}

TEST_CASE("searched transfers make a schedule that devices can follow, no worse than local search") {
  int by_orders = 0;
  for_random_instances(6, [&](const instance& i) {
    plan alone = i.plan;
    alone.sharing_policy = sharing::fair_share;
    alone.schedule.transfers.clear();
    const cluster c = i.cluster();
    const schedule::cep_graph cep(tasks::expand(alone, i.model(), c, roofline{}), c.network());
    const schedule::searched_transfers o{.search = {.steps = 10, .most_chunks = 1}, .orders = {.solves = 3, .most_rows = 150}};
    const schedule::network_schedule local = schedule::local_search(cep, o.search), s = o(cep, {.lp = glpk_lp{}});
    REQUIRE_FALSE(s.is_prescribed());
    REQUIRE(s.latency <= local.latency);
    REQUIRE(s.latency == schedule::run(cep, s).latency);
    REQUIRE(s.latency.value() >= cep.bound().value() * (1 - 1e-9));
    REQUIRE(o(cep).latency == local.latency);  // no solver, no order search
    by_orders += s.latency < local.latency;
  });
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 100; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 6, 12);
    const schedule::cep_graph cep(r.graph, r.cluster.network());
    const schedule::searched_transfers o{.search = {.steps = 1}};  // leaves the order to the program
    const schedule::network_schedule local = schedule::local_search(cep, o.search), s = o(cep, {.lp = glpk_lp{}});
    REQUIRE(s.latency <= local.latency);
    REQUIRE(s.latency == schedule::run(cep, s).latency);
    by_orders += s.latency < local.latency;
  }
  CHECK(by_orders >= 20);
}

TEST_CASE("Dora's two phases are no worse than the first alone, on the zoo, and better where transfers leave a gap", "[long]") {
  int better = 0;
  const auto check = [&](const char* name, const char* setting, const job& what) {
    INFO(name << " on " << setting << ", " << to_string(what.workload.mode));
    const cluster c = zoo::cluster(setting);
    const bool token = what.workload.mode == mode::generation;
    const planning_graph model = token ? zoo::model(name, {.tokens = 1}) : zoo::model(name, {});
    const planning_problem problem{model, c, roofline{}, what};
    const recipes::dora_options o{.partitioner = {.k = 3},
                                  .network = {.scheduler = schedule::searched_transfers{.search = {.steps = 100}}},
                                  .incumbents = {},
                                  .drafts = {.slots = 0}};
    const plan_result first = recipes::dora_partitioner(problem, minimize_latency{}, 3, o.partitioner);
    const plan_result both = recipes::dora(problem, minimize_latency{}, 3, o);
    require_sound(both, problem, minimize_latency{});
    REQUIRE(both.plans.size() == first.plans.size());
    REQUIRE(both.candidates == first.candidates + static_cast<long long>(first.plans.size()));
    for (std::size_t i = 0; i < both.plans.size(); ++i) {
      REQUIRE(score(minimize_latency{}, both.plans[i].evaluation) <= score(minimize_latency{}, first.plans[i].evaluation));
    }
    better += score(minimize_latency{}, both.plans.front().evaluation) < score(minimize_latency{}, first.plans.front().evaluation);
  };
  for (const char* setting : {"smart-home-1", "smart-home-2", "traffic-monitor"}) {
    for (const mode how : {mode::training, mode::inference, mode::generation}) {
      check("bert-small", setting, job{.workload = {.mode = how, .context = 64, .tokens = 4}, .batch = 8});
    }
    for (const char* name : {"qwen3-0.6b", "qwen3-1.7b"}) check(name, setting, job{.batch = 16, .microbatch_sizes = {1, 2, 4}});
  }
  CHECK(better >= 1);
}

TEST_CASE("a scheduler that forgets a message, leaves one without a chunk or answers a solver's rates is refused") {
  const random_cep r = random_small_cep(3, 6, 12);
  const schedule::cep_graph cep(r.graph, r.cluster.network());
  REQUIRE(cep.messages() > 1);
  const auto refusal = [&](const schedule::any_transfer_scheduler& s) -> std::string {
    return test::message_of<invalid_model>([&] { return s(cep); });
  };
  const auto with_rules = [](auto change) {
    return [change](const schedule::cep_graph& g, const schedule::scheduling_limits&) {
      schedule::network_schedule s = schedule::list_schedule(g);
      change(s);
      return s;
    };
  };
  const std::string all = std::to_string(cep.messages());
  CHECK(refusal(with_rules([](schedule::network_schedule& s) { s.rules.pop_back(); })) ==
        "transfer scheduler: rules for " + std::to_string(cep.messages() - 1) + " messages; expected all " + all);
  CHECK(refusal(with_rules([](schedule::network_schedule& s) { s.rules[1].clear(); })) ==
        "transfer scheduler: no chunk of message 1; expected at least one");
  CHECK(refusal(with_rules([](schedule::network_schedule& s) { s.rules[1].assign(1'000'000, {}); })) ==
        "transfer scheduler: 1000000 chunks of message 1; expected at most 100000");
  CHECK(refusal(with_rules([](schedule::network_schedule& s) { s.sharing_policy = static_cast<sharing>(99); })) ==
        "transfer scheduler: sharing_policy = 99; expected a sharing with a name");
  CHECK(refusal(with_rules([](schedule::network_schedule& s) { s.rates.rates.resize(1); })) ==
        "transfer scheduler: the schedule has a solver's rates, which devices cannot follow; expected rules");
  CHECK(refusal(schedule::listed_transfers<>{}) == "no error");
  CHECK(refusal(schedule::searched_transfers{}) == "no error");
  CHECK(schedule::listed_transfers<>{}(cep).latency <= schedule::uncontrolled(cep).latency);
}
