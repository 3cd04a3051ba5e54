// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What it takes to go on when a device is gone: Asteroid's pipeline replay against heavy rescheduling (its Figs 16 and 17).

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/adapt/environment.hpp>
#include <hetplan/adapt/ladder.hpp>
#include <hetplan/adapt/replication.hpp>
#include <hetplan/adapt/run.hpp>
#include <hetplan/draw/adaptation_report.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "reproduce/asteroid_setting.hpp"
#include "reproduce/sections.hpp"

namespace bench {

namespace faults {

using namespace hetplan;

/// Jetsons on a switch. Which four the paper's Env. D has is not in its text: this choice is ours.
inline cluster env_d() {
  std::vector<device> devices;
  for (const auto& [name, kind] : {std::pair{"A", "jetson-nx"}, {"B", "jetson-tx2"}, {"C", "jetson-nano"}, {"D", "jetson-nano"}}) {
    devices.push_back(zoo::device(kind, name, zoo::link::wire));
  }
  return {"env-d", devices, star{100_Mbit_per_s, 0.5_ms}};
}
inline job many_samples() { return trained_model::job(512, {4, 8, 16, 32}); }

/// Of several runs, the one that nothing else on the machine disturbed.
inline seconds least(const std::vector<double>& runs_s) { return seconds(*std::min_element(runs_s.begin(), runs_s.end())); }

/// How many times longer one takes than the other.
inline std::string times(seconds one, seconds other) {
  if (one / other > 1000) return "> 1000 x";
  return number(one / other < 20 ? "%.1f x" : "%.0f x", one / other);
}
inline std::string megabytes(bytes b) { return number("%.4g", b.value() / 1e6); }
inline std::string whole_seconds(seconds s) { return number("%.4g", s.value()); }

struct tables {
  std::vector<row> recovery{{"model", "lost", "replay thinks", "its moves, MB", "in, s", "running after", "the planner thinks",
                             "its moves, MB", "in, s", "running after", "heavy: moves, MB", "in, s", "running after", "heavy / replay",
                             "not counting detection", "did planning take the paper's time"}};
  std::vector<row> after{{"model", "lost", "before", "replay", "planner", "rate before", "replay by FLOP alone", "rate, replay",
                          "scheduled", "rate, planner", "replay / planner", "scheduled / planner"}};
  std::vector<row> backups{{"model", "kept by (stage's device > keeper)", "bytes", "alone on the network", "an iteration takes"}};
};

inline void add_model(tables& out, const char* name, double paper_planning_s, bool quick) {
  const cluster devices = env_d();
  const planning_graph model = vision(name, 32);
  const job wanted = many_samples();
  const planning_problem problem{model, devices, profiled_or_roofline{}, wanted};
  const minimize_latency fast;
  const plan_result first = recipes::dora(problem, fast, 1, {.drafts = {.slots = 0}});
  const auto& [running, e] = first.plans.front();
  const auto backups = adapt::replicate_by_topology(running, model, devices);
  const adapt::heartbeat detector;
  const seconds halted(100);
  const seconds noticed = detector.noticed(halted) - halted;
  const int runs = quick ? 1 : 11;
  std::string keepers;
  for (const adapt::backup& b : backups.backups)
    keepers += (keepers.empty() ? "" : ", ") + devices[b.from].name + " > " + devices[b.to].name;
  const adapt::migration copies = adapt::backup_fetches(backups, model, running.workload);
  out.backups.push_back({name, keepers.empty() ? "none needed" : keepers, readable(copies.volume()),
                         readable(adapt::run_migration(copies, devices, adapt::nominal(devices)).time), readable(e.latency)});
  const auto rate = [&](const plan_result& r) { return static_cast<double>(wanted.batch) / r.plans.at(0).evaluation.latency.value(); };

  for (const device& lost : devices.devices()) {
    if (!e.devices[lost.id.index()].used) continue;
    const std::vector<device_id> gone{lost.id};
    adapt::conditions now = adapt::nominal(devices);
    now.present[lost.id.index()] = 0;
    const adapt::holdings own = adapt::holdings_of(running, model, devices.size());
    const adapt::holdings held = adapt::with_backups(own, backups, model, running.workload, now);

    std::vector<double> light_s, heavy_s;
    plan_result light, heavy;
    const adapt::present_problem rest(problem, now, wanted.qoe);
    for (int i = 0; i < runs; ++i) {
      light_s.push_back(seconds_of([&] { return light = adapt::lightweight_replay(problem, running, gone); }));
      heavy_s.push_back(seconds_of([&] { return heavy = rest.outside(recipes::dora(*rest, fast, 1, {.drafts = {.slots = 0}})); }));
    }
    const plan_result even =
        adapt::lightweight_replay(problem, running, gone, {.measures = {adapt::work_measure::flop}, .transfer_weights = {0}});
    const plan_result scheduled = schedule::refine(problem, fast, plans_of(light.plans), 1);
    const plan &replayed = light.plans.at(0).plan, &next = heavy.plans.at(0).plan;
    const device_id coordinator = adapt::elect_coordinator(devices, now);
    const auto run = [&](const adapt::migration& m) { return adapt::run_migration(m, devices, now); };
    const adapt::migration_run by_replay = run(adapt::delta_migration(held, replayed, model, devices, now));
    const adapt::migration_run missing = run(adapt::delta_migration(held, next, model, devices, now));
    const adapt::migration_run all = run(adapt::through_coordinator(held, next, coordinator, model, devices, now));
    const seconds replay = least(light_s) + by_replay.time, delta = least(heavy_s) + missing.time, full = least(heavy_s) + all.time;
    out.recovery.push_back({name, lost.name, readable(least(light_s)), megabytes(by_replay.moved), whole_seconds(by_replay.time),
                            readable(noticed + replay), readable(least(heavy_s)), megabytes(missing.moved), whole_seconds(missing.time),
                            readable(noticed + delta), megabytes(all.moved), whole_seconds(all.time), readable(noticed + full),
                            times(noticed + full, noticed + replay), times(full, replay),
                            paper_planning_s > 0 ? times(noticed + seconds(paper_planning_s) + all.time, noticed + replay) : "-"});
    out.after.push_back({name, lost.name, stages_of(running, devices), stages_of(replayed, devices), stages_of(next, devices),
                         number("%.4g", rate(first)), number("%.4g", rate(even)), number("%.4g", rate(light)),
                         number("%.4g", rate(scheduled)), number("%.4g", rate(heavy)), number("%.0f %%", 100 * rate(light) / rate(heavy)),
                         number("%.0f %%", 100 * rate(scheduled) / rate(heavy))});
    if (quick) return;
  }
}

/// Fig 17: the pipeline lives on while B leaves for good; samples per second before, in the ten seconds behind the loss, and after.
inline void add_timeline(const sections& page) {
  const cluster devices = env_d();
  const planning_graph model = vision("efficientnet-b1", 32);
  const planning_problem problem{model, devices, profiled_or_roofline{}, many_samples()};
  const recipes::dora_planner planner{.keep = 1};
  const plan first = planner(problem).plans.front().plan;
  const double lost_s = 30, soon_s = 10;
  const adapt::timeline t{60_s, {{seconds(lost_s), adapt::device_leaves{devices.find("B")}}}};
  const adapt::run_options<> options{.storage = {.backups = adapt::backup_routine{.period = 100}}};
  std::vector<io::policy_history> all;
  const auto run = [&](const char* name, auto policy) { all.push_back({name, adapt::run(problem, t, policy, options)}); };
  run("replay", adapt::replay_policy(problem, first));
  run("heavy rescheduling", adapt::rescheduling_policy(problem, first, planner));
  run("dora's ladder", adapt::ladder(problem, planner));
  std::vector<row> rows{{"policy", "before", "running again after", "in the ten seconds behind the loss", "then", "iterations done again"}};
  for (const io::policy_history& p : all) {
    const auto rate = [&](double from, double to) {
      return number("%.4g", adapt::iterations_between(p.history, from, to) * problem.job.batch / (to - from));
    };
    rows.push_back({p.policy, rate(0, lost_s), readable(seconds(p.history.adoptions.front().done_s - lost_s)),
                    rate(lost_s, lost_s + soon_s), rate(lost_s + soon_s, 60), std::to_string(p.history.lost)});
  }
  page.add_csv("asteroid.faults-timeline.csv", rows);
  page.add_image("adapt.env-d.svg", draw::adaptation_svg(all, t, model, devices));
}

}  // namespace faults

inline void add_faults(const sections& page) {
  faults::tables out;
  faults::add_model(out, "efficientnet-b1", 480, page.quick());
  if (!page.quick()) {
    faults::add_model(out, "mobilenetv2", 261, false);
    faults::add_model(out, "bert-small", 69, false);
  }
  page.add_csv("asteroid.faults-recovery.timed.csv", out.recovery);
  page.add_csv("asteroid.faults-after.csv", out.after);
  page.add_csv("asteroid.faults-backups.csv", out.backups);
  std::vector<row> recovery{{"model", "heavy / replay: least", "most", "not counting detection: least", "most"}};
  for (std::size_t r = 1; r < out.backups.size(); ++r) {
    const auto keep = [&](const row& x) { return x[0] == out.backups[r][0]; };
    const span all = span_of(out.recovery, 13, keep), without = span_of(out.recovery, 14, keep);
    const std::string much = "> 1000 x";
    recovery.push_back({out.backups[r][0], all.least("%.1f x"), all.most("%.1f x"), without.count > 0 ? without.least("%.1f x") : much,
                        without.count > 0 ? without.most("%.1f x") : much});
  }
  page.add_timed("faults-recovery", markdown_table(recovery, 1));
  faults::add_timeline(page);
}

}  // namespace bench
