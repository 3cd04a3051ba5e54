// SPDX-License-Identifier: BSL-1.0
// What it takes to go on when a device is gone: Asteroid's pipeline replay against heavy rescheduling (its Figs 16 and 17).
// Prints the tables of docs/reproduction/asteroid.md; --json: one array; --svg FILE: a picture. Planning times are those of this
// machine.

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/adapt/coordinator.hpp>
#include <hetplan/adapt/failure_detector.hpp>
#include <hetplan/adapt/present_problem.hpp>
#include <hetplan/adapt/recovery_policies.hpp>
#include <hetplan/adapt/replay.hpp>
#include <hetplan/adapt/replication.hpp>
#include <hetplan/adapt/run.hpp>
#include <hetplan/draw/adaptation_svg.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/zoo/devices.hpp>
#include <hetplan/zoo/models.hpp>

#include "measure.hpp"
#include "report.hpp"

using namespace hetplan;

namespace {

/// Jetsons on a switch. Which four the paper's Env. D has is not in its text: this choice is ours.
cluster env_d() {
  std::vector<device> devices;
  for (const auto& [name, kind] : {std::pair{"A", "jetson-nx"}, {"B", "jetson-tx2"}, {"C", "jetson-nano"}, {"D", "jetson-nano"}}) {
    devices.push_back(zoo::device(kind, name, zoo::link::wire));
  }
  return {"env-d", devices, star{100_Mbit_per_s, 0.5_ms}};
}
planning_graph small_images(const char* name) {
  return zoo::model(name, {.input = zoo::image_shape{3, 32, 32}, .dtype = zoo::precision::fp32});
}
/// Plain SGD, as the paper moves weights only.
job many_samples() {
  job wanted{.batch = 512, .microbatch_sizes = {4, 8, 16, 32}};
  wanted.workload.optimizer_factor = 0;
  return wanted;
}

std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
/// Of several runs, the one that nothing else on the machine disturbed.
seconds least(const std::vector<double>& runs_s) { return seconds(*std::min_element(runs_s.begin(), runs_s.end())); }

std::string stages_of(const plan& p, const cluster& c) {
  std::string text;
  for (const stage& s : p.stages) {
    text += (text.empty() ? "" : " ") + std::to_string(s.layers.size()) + ":";
    for (const assignment& a : s.devices) text += c[a.device].name;
  }
  return text;
}

/// How many times longer one takes than the other.
std::string times(seconds one, seconds other) {
  if (one / other > 1000) return "> 1000 x";
  return number(one / other < 20 ? "%.1f x" : "%.0f x", one / other);
}

struct tables {
  bench::report parts{"What recovery takes, behind its detection",
                      {"model", "lost", "replay: thinking", "and scheduling", "moves", "in", "planner: thinking", "moves what is missing",
                       "in time", "moves all", "in all"}};
  bench::report recovery{"From the loss to the next iteration",
                         {"model", "lost", "noticed after", "replay", "planner, delta", "heavy", "heavy / replay", "without detection",
                          "planner, delta / replay"}};
  bench::report after{"The pipeline afterwards (layers:devices of each stage; samples/s)",
                      {"model", "lost", "before", "replay", "planner", "rate before", "replay by FLOP alone", "rate, replay", "scheduled",
                       "rate, planner", "replay / planner", "scheduled / planner"}};
  bench::report backups{"One backup of every stage that a single device runs",
                        {"model", "kept by (stage device > keeper)", "bytes", "alone on the network", "an iteration takes"}};
  bench::report slow{"If planning takes as long as on the paper's coordinator",
                     {"model", "lost", "planning", "replay", "planner, delta", "heavy", "heavy / replay"}};
};

void add_model(tables& out, const char* name, double paper_planning_s, const bench::options& options) {
  const cluster devices = env_d();
  const planning_graph model = small_images(name);
  const job wanted = many_samples();
  const planning_problem problem{model, devices, profiled_or_roofline{}, wanted};
  const minimize_latency fast;
  const plan_result first = recipes::dora(problem, fast, 1);
  const plan& running = first.plans.front();
  const auto backups = adapt::replicate_by_topology(running, model, devices);
  const adapt::heartbeat detector;
  const seconds halted(100);
  const seconds noticed = detector.noticed(halted) - halted;
  const int runs = options.quick ? 1 : 11;
  std::string keepers;
  for (const adapt::backup& b : backups.backups)
    keepers += (keepers.empty() ? "" : ", ") + devices[b.from].name + " > " + devices[b.to].name;
  const adapt::migration copies = adapt::backup_fetches(backups, model, running.workload);
  out.backups.add({name, keepers.empty() ? "none needed" : keepers, readable(copies.volume()),
                   readable(adapt::run_migration(copies, devices, adapt::nominal(devices)).time), readable(running.predicted->latency)});
  const auto rate = [&](const plan& p) { return static_cast<double>(wanted.batch) / p.predicted->latency.value(); };

  for (const device& lost : devices.devices()) {
    if (!running.predicted->devices[lost.id.index()].used) continue;
    const std::vector<device_id> gone{lost.id};
    adapt::conditions now = adapt::nominal(devices);
    now.present[lost.id.index()] = 0;
    const adapt::holdings own = adapt::holdings_of(running, model, devices.size());
    const adapt::holdings held = adapt::with_backups(own, backups, model, running.workload, now);

    std::vector<double> light_s, scheduled_s, heavy_s;
    plan_result light, scheduled, heavy;
    const adapt::present_problem rest(problem, now, wanted.qoe);
    for (int i = 0; i < runs; ++i) {
      light_s.push_back(bench::seconds_of([&] { return light = adapt::lightweight_replay(problem, running, gone); }));
      scheduled_s.push_back(bench::seconds_of([&] { return scheduled = schedule::refine(problem, fast, light.plans, 1); }));
      heavy_s.push_back(bench::seconds_of([&] { return heavy = rest.outside(recipes::dora(*rest, fast, 1)); }));
    }
    const plan_result even =
        adapt::lightweight_replay(problem, running, gone, {.measures = {adapt::work_measure::flop}, .transfer_weights = {0}});
    if (light.plans.empty() || heavy.plans.empty() || even.plans.empty()) {  // the reasons
      out.recovery.add({name, lost.name, light.status.reason, heavy.status.reason, "", "", "", "", ""});
      continue;
    }
    const plan& next = heavy.plans.front();
    const device_id coordinator = adapt::elect_coordinator(devices, now);
    const auto run = [&](const adapt::migration& m) { return adapt::run_migration(m, devices, now); };
    const adapt::migration_run replayed = run(adapt::delta_migration(held, light.plans.front(), model, devices, now));
    const adapt::migration_run missing = run(adapt::delta_migration(held, next, model, devices, now));
    const adapt::migration_run all = run(adapt::through_coordinator(held, next, coordinator, model, devices, now));
    const seconds light_thinking = least(light_s), heavy_thinking = least(heavy_s);
    const seconds by_replay = light_thinking + replayed.time, by_delta = heavy_thinking + missing.time,
                  by_heavy = heavy_thinking + all.time;
    out.parts.add({name, lost.name, readable(light_thinking), readable(least(scheduled_s)), readable(replayed.moved),
                   readable(replayed.time), readable(heavy_thinking), readable(missing.moved), readable(missing.time), readable(all.moved),
                   readable(all.time)});
    out.recovery.add({name, lost.name, readable(noticed), readable(noticed + by_replay), readable(noticed + by_delta),
                      readable(noticed + by_heavy), times(noticed + by_heavy, noticed + by_replay), times(by_heavy, by_replay),
                      times(noticed + by_delta, noticed + by_replay)});
    const double replay_rate = rate(light.plans.front()), ordered = rate(scheduled.plans.front()), planner_rate = rate(heavy.plans.front());
    out.after.add({name, lost.name, stages_of(running, devices), stages_of(light.plans.front(), devices), stages_of(next, devices),
                   number("%.4g", rate(running)), number("%.4g", rate(even.plans.front())), number("%.4g", replay_rate),
                   number("%.4g", ordered), number("%.4g", planner_rate), number("%.0f %%", 100 * replay_rate / planner_rate),
                   number("%.0f %%", 100 * ordered / planner_rate)});
    if (paper_planning_s <= 0) continue;
    const seconds long_thinking = noticed + seconds(paper_planning_s);
    out.slow.add({name, lost.name, readable(seconds(paper_planning_s)), readable(noticed + by_replay),
                  readable(long_thinking + missing.time), readable(long_thinking + all.time),
                  times(long_thinking + all.time, noticed + by_replay)});
  }
}

/// Fig 17: the pipeline lives on while B leaves for good; samples per second before, in the ten seconds behind the loss, and after.
void run_on(bench::report& out, const std::string& picture) {
  const cluster devices = env_d();
  const planning_graph model = small_images("efficientnet-b1");
  const planning_problem problem{model, devices, profiled_or_roofline{}, many_samples()};
  const recipes::dora_planner planner{.keep = 1};
  const plan first = planner(problem).plans.front();
  const double lost_s = 30, soon_s = 10;
  const adapt::timeline t{60_s, {{seconds(lost_s), adapt::device_leaves{devices.find("B")}}}};
  const adapt::run_options<> options{.storage = {.backups = adapt::backup_routine{.period = 100}}};
  std::vector<io::policy_history> rows;
  const auto run = [&](const char* name, auto policy) { rows.push_back({name, adapt::run(problem, t, policy, options)}); };
  run("replay", adapt::replay_policy(problem, first));
  run("heavy rescheduling", adapt::rescheduling_policy(problem, first, planner));
  run("dora's ladder", adapt::ladder(problem, planner));
  for (const io::policy_history& row : rows) {
    const auto rate = [&](double from, double to) {
      return number("%.4g", adapt::iterations_between(row.history, from, to) * problem.job.batch / (to - from));
    };
    const adapt::adoption& a = row.history.adoptions.front();
    out.add({row.policy, rate(0, lost_s), readable(seconds(a.done_s - lost_s)), rate(lost_s, lost_s + soon_s), rate(lost_s + soon_s, 60),
             std::to_string(row.history.lost)});
  }
  if (!picture.empty()) io::write_atomically(picture, draw::adaptation_svg(rows, t, model, devices));
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  tables out;
  add_model(out, "efficientnet-b1", 480, options);
  if (!options.quick) {
    add_model(out, "mobilenetv2", 0, options);
    add_model(out, "bert-small", 69, options);
  }
  bench::report runs{"B leaves a running pipeline (EfficientNet-B1; samples/s)",
                     {"policy", "before", "running again after", "in the ten seconds behind the loss", "then", "iterations done again"}};
  run_on(runs, options.value("--svg"));
  bench::print({out.parts, out.recovery, out.after, runs, out.backups, out.slow}, options);
}
