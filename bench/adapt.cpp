// SPDX-License-Identifier: BSL-1.0
// How fast the runtime adapter reacts and decides, and what a day of a changing network takes to work out.
//
// Targets: a network-only reaction in 50 ms, a re-plan in 1 s, a day at steps of a second in 10 s for static, network-only
// and dora. Conditions that differ are planned and scheduled once by a policy that remembers; here nothing is remembered.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/adapt/environment.hpp>
#include <hetplan/adapt/run.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "measure.hpp"
#include "support/random_source.hpp"

using namespace hetplan;

namespace {

using problem = planning_problem;

job job_of(mode how, const std::string& model) {
  job j{.workload = {.mode = how}, .batch = how == mode::training ? 32 : how == mode::inference ? 8 : 4};
  if (model == "qwen-omni") j.workload.optimizer_factor = 0;
  if (how == mode::generation) j.workload.context = 512;
  return j;
}

/// All resources at a part of their capacity; `gone` has left.
adapt::conditions changed(const cluster& c, double factor, std::optional<device_id> gone = {}) {
  adapt::conditions now = adapt::nominal(c);
  for (bytes_per_second& capacity : now.capacity) capacity = factor * capacity;
  if (gone) now.present[gone->index()] = 0;
  return now;
}

/// The two kinds of reaction that compute, for a job in a setting.
void reactions(bench::table& table, const std::string& name, const problem& p, bool quick) {
  const recipes::dora_planner planner;
  const plan_result found = planner(p);
  if (found.plans.empty()) return;
  // Another bandwidth each time, all near half.
  const auto capacity = [](std::size_t i) { return 0.5 + 0.001 * static_cast<double>(i); };
  table.run_within("network alone: " + name, quick ? 3 : 21, 0.050, [&](std::size_t i) {
    return adapt::reschedule(p, found.plans[i % found.plans.size()].plan, changed(p.cluster, capacity(i)), {}, p.job.qoe);
  });
  // Each device is missed once.
  table.run_within("re-plan, a device gone: " + name, quick ? 1 : p.cluster.size(), 1, [&](std::size_t i) {
    const adapt::present_problem there(p, changed(p.cluster, 1, device_id(i)), p.job.qoe);
    return planner(*there).plans.size();
  });
  table.run_within("re-plan, half the network: " + name, quick ? 1 : 7, 1, [&](std::size_t i) {
    const adapt::present_problem there(p, changed(p.cluster, capacity(i)), p.job.qoe);
    return planner(*there).plans.size();
  });
}

/// What mixing takes at its start and at each decision.
void mixtures(bench::table& table, const std::string& name, problem p, bool quick) {
  plan_result menu;
  const adapt::plan_menu asks{recipes::dora_planner{}};
  table.run_within("menu of plans: " + name, quick ? 1 : 5, 0, [&](std::size_t) { return (menu = asks(p)).plans.size(); });
  if (menu.plans.empty()) return;
  const auto answers = [&](const auto&) { return menu; };
  const double fastest = menu.plans.front().evaluation.latency.value();
  p.job.qoe.iterations = 6000;
  p.job.qoe.deadline = seconds(1.5 * fastest * 6000);
  const adapt::conditions now = adapt::nominal(p.cluster);
  const adapt::holdings held = adapt::holdings_of(menu.plans.front().plan, p.model, p.cluster.size());
  adapt::situation s{.now = {}, .since = {}, .noticed = now, .held = held, .traffic = {}, .wanted = p.job.qoe};
  const std::string size = name + ", " + std::to_string(menu.plans.size()) + " plans";
  table.run_within("first mixture: " + size, quick ? 1 : 5, 0,
                   [&](std::size_t) { return adapt::mixing_policy(p, answers).react(s).next.has_value(); });
  adapt::mixing_policy policy(p, answers);
  const plan first = policy.react(s).next.value_or(menu.plans.front().plan);
  s.running = &first;
  s.can_run = true;
  static_cast<void>(policy.react(s));  // looks up what switching from it takes
  table.run_within("next decision: " + size, quick ? 3 : 101, 0, [&](std::size_t i) {
    s.now = seconds(static_cast<double>(i));
    return policy.react(s).next.has_value();
  });
}

/// A day at steps of a second: most of them drift, some jump.
adapt::bandwidth_trace made_up(bytes_per_second mean, double duration_s) {
  test::random_source random(1);
  adapt::bandwidth_trace t;
  double level = 1;
  for (int i = 0; i < static_cast<int>(duration_s); ++i) {
    level = random.chance(0.01) ? random.between(0.2, 1.8) : level + 0.05 * (random.between(-1, 1) + (1 - level));
    t.steps.push_back({seconds(i), std::max(0.05, level) * mean});
  }
  return adapt::scaled(std::move(t), mean);
}

/// The same share of their capacity for all resources.
adapt::timeline day(const cluster& c, adapt::bandwidth_trace shape, double duration_s) {
  shape = adapt::scaled(std::move(shape), bytes_per_second(1));
  adapt::timeline t{seconds(duration_s)};
  for (const adapt::event& e : adapt::events_of(shape, resource_id(0), t.duration, adapt::past_the_end::repeats)) {
    const double factor = std::get<adapt::capacity_becomes>(e.what).capacity.value();
    for (std::size_t r = 0; r < c.network().resources().size(); ++r) {
      t.events.push_back({e.at, adapt::capacity_becomes{resource_id(r), factor * c.network().resources()[r].capacity}});
    }
  }
  return t;
}

/// @param bounds  also the policies that plan at every step, over its first ten minutes.
void days(bench::table& table, const std::string& name, problem p, adapt::timeline t, bool bounds, const bench::options& options) {
  const recipes::dora_planner planner;
  const plan_result found = planner(p);
  if (found.plans.empty()) return;
  const plan& first = found.plans.front().plan;
  if (p.job.workload.mode == mode::training) p.job.qoe.latency = 1.25 * found.plans.front().evaluation.response();
  const adapt::heartbeat beats;
  const adapt::storage_options storage{.archive = adapt::elect_coordinator(p.cluster, adapt::nominal(p.cluster))};
  const auto run = [&](const char* policy_name, double target, const auto& make, const auto& detector) {
    adapt::history h;
    table.run_within(name + ", " + policy_name, options.quick || !bounds ? 1 : 3, target, [&](std::size_t) {
      auto policy = make();
      h = adapt::run(p, t, policy, adapt::run_options<std::remove_cvref_t<decltype(detector)>>{detector, storage});
    });
    if (!options.json) {
      std::printf("    %lld iterations, %lld late, %.4g J each, %zu adoptions, %lld switches, %.0f s stalled\n", h.iterations, h.violations,
                  h.energy_J / static_cast<double>(std::max(1LL, h.iterations)), h.adoptions.size(), h.switches, h.stall_s);
    }
  };
  run(
      "static", 10, [&] { return adapt::static_plan(first); }, beats);
  run(
      "network-only", 10, [&] { return adapt::network_only(p, first); }, beats);
  run(
      "dora", 10, [&] { return recipes::dora_adapter(p, {.planner = planner}); }, beats);
  if (options.quick || !bounds) return;
  t.duration = seconds(600);
  run(
      "replan-always, 10 min", 0, [&] { return adapt::replan_always(p, planner); }, beats);
  run(
      "oracle, 10 min", 0, [&] { return adapt::oracle(p, planner); }, adapt::immediate{});
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::table table(options);
  for (const char* setting : {"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"}) {
    const cluster devices = zoo::cluster(setting);
    for (const auto& [name, how] :
         {std::pair{"qwen3-1.7b", mode::training}, {"qwen3-1.7b", mode::inference}, {"qwen-omni", mode::training}}) {
      if (options.quick && std::string(setting) != "smart-home-2") continue;
      const planning_graph model = zoo::model(name, {});
      const problem p{model, devices, profiled_or_roofline{}, job_of(how, name), {}, {}};
      const std::string what = std::string(name) + " " + std::string(to_string(how)) + ", " + setting;
      reactions(table, what, p, options.quick);
      if (how == mode::training) mixtures(table, what, p, options.quick);
    }
  }
  const std::string measured = HETPLAN_SOURCE_DIR "/../shared/data/bandwidth/norway_bus_1";
  const double duration_s = options.quick ? 600 : 86400;
  for (const char* setting : {"smart-home-2", "traffic-monitor"}) {
    const cluster devices = zoo::cluster(setting);
    const planning_graph model = zoo::model("qwen3-1.7b", {}), token = zoo::model("qwen3-1.7b", {.tokens = 1});
    std::vector<std::pair<const char*, adapt::timeline>> all{
        {"made up", day(devices, made_up(bytes_per_second(1), duration_s), duration_s)}};
    if (std::filesystem::exists(measured)) all.emplace_back("measured", day(devices, io::read_bandwidth_trace(measured), duration_s));
    for (const auto& [trace, t] : all) {
      for (const mode how : {mode::training, mode::inference, mode::generation}) {
        if (options.quick && how != mode::training) continue;
        const problem p{how == mode::generation ? token : model, devices, profiled_or_roofline{}, job_of(how, "qwen3-1.7b"), {}, {}};
        const bool bounds = std::string(trace) == "made up" && std::string(setting) == "smart-home-2";
        days(table, std::string("a day, ") + trace + ", " + setting + ", " + std::string(to_string(how)), p, t, bounds, options);
      }
    }
  }
}
