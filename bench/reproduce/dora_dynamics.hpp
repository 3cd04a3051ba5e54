// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Generation while a laptop downloads a video and then shows it (Dora's Fig 16): tokens per second of policies side by side.

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/adapt/run.hpp>
#include <hetplan/draw/adaptation_report.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "reproduce/sections.hpp"

namespace bench {

namespace dynamics {

using namespace hetplan;

/// A device downloads from the times[0]-th second to times[1], and is busy from [2] to [3]. Plans change between iterations:
/// batches in inference, in generation `tokens` for each sequence.
struct scenario {
  const char* setting;
  mode how;
  int batch, tokens;
  std::vector<double> times;  ///< ascending; the last is the end of what is counted
  double air = 0.25;          ///< what the download leaves of the network
  double speed = 0.5;         ///< of the device that shows the video
};

/// 512 tokens a sample; in generation one, the token of a step.
inline planning_graph model_of(const scenario& s) {
  return s.how == mode::generation ? zoo::model("qwen3-1.7b", {.tokens = 1}) : zoo::model("qwen3-1.7b", {});
}

/// All in seconds, with the first device as the one that somebody uses.
inline adapt::timeline timeline_of(const scenario& s, const cluster& c) {
  adapt::timeline t{seconds(s.times.back() + 60)};  // the last iteration that counts should end
  const auto network = [&](double at, double factor) {
    for (const resource& r : c.network().resources()) {
      t.events.push_back({seconds(at), adapt::capacity_becomes{resource_id(&r - c.network().resources().data()), factor * r.capacity}});
    }
  };
  network(s.times[0], s.air);
  network(s.times[1], 1);
  t.events.push_back({seconds(s.times[2]), adapt::speed_becomes{device_id(0), s.speed}});
  t.events.push_back({seconds(s.times[3]), adapt::speed_becomes{device_id(0), 1}});
  return t;
}

/// Tokens that were made in a part of the time, in inference samples.
inline double made_between(const adapt::history& h, const job& j, double from, double to) {
  return adapt::iterations_between(h, from, to) * j.batch * (j.workload.mode == mode::generation ? j.workload.tokens : 1);
}

struct tables {
  std::vector<row> rates{{"setting", "job", "lasts", "oracle", "static", "network-only", "dora", "replan-always", "dora: first decision",
                          "done", "moved", "stall"}};
  std::vector<row> phases{{"policy", "before", "download", "between", "video", "after", "all"}};
};

inline std::vector<io::policy_history> compare(const scenario& s, bool in_phases, tables& all) {
  const cluster devices = zoo::cluster(s.setting);
  const planning_graph model = model_of(s);
  job wanted{.workload = {.mode = s.how}, .batch = s.batch};
  if (s.how == mode::generation) {
    wanted.workload.context = 512;
    wanted.workload.tokens = s.tokens;
  }
  const planning_problem p{model, devices, profiled_or_roofline{}, wanted, {}, {}};
  const adapt::timeline t = timeline_of(s, devices);
  const recipes::dora_planner planner;
  const plan_result first = planner(p);
  const adapt::heartbeat beats;
  const adapt::storage_options storage{.archive = adapt::elect_coordinator(devices, adapt::nominal(devices))};
  std::vector<io::policy_history> rows;
  const auto run = [&](const char* name, auto policy, const auto& detector) {
    rows.push_back({name, adapt::run(p, t, policy, adapt::run_options<std::remove_cvref_t<decltype(detector)>>{detector, storage})});
  };
  run("static", adapt::static_plan(first.plans.front().plan), beats);
  run("network-only", adapt::network_only(p, first.plans.front().plan), beats);
  run("dora", recipes::dora_adapter(p, {.planner = planner}), beats);
  run("replan-always", adapt::replan_always(p, planner), beats);
  run("oracle", adapt::oracle(p, planner), adapt::immediate{});

  const std::string times_tokens = s.how == mode::generation ? " x " + std::to_string(s.tokens) : "";
  const std::string job_text = std::string(to_string(s.how)) + " of " + std::to_string(s.batch) + times_tokens;
  const std::string lasts = readable(seconds(s.times.back()));
  const double most = made_between(rows.back().history, wanted, 0, s.times.back());
  row r{s.setting, job_text, lasts, number("%.2f /s", most / s.times.back())};
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    r.push_back(number("%.1f %%", 100 * made_between(rows[i].history, wanted, 0, s.times.back()) / most));
  }
  const adapt::history& dora = rows[2].history;
  const adapt::adoption* one = dora.adoptions.empty() ? nullptr : &dora.adoptions.front();
  r.push_back(one == nullptr ? "-" : number("%.1f s", one->decided_s));
  r.push_back(one == nullptr ? "-" : number("%.1f s", one->done_s));
  r.push_back(dora.moved_bytes > 0 ? readable(bytes(dora.moved_bytes)) : "-");
  r.push_back(dora.stall_s > 0 ? readable(seconds(dora.stall_s)) : "-");
  all.rates.push_back(std::move(r));
  if (!in_phases) return rows;
  for (const io::policy_history& of : rows) {
    row parts{of.policy};
    for (std::size_t i = 0; i < s.times.size(); ++i) {
      const double from = i == 0 ? 0 : s.times[i - 1];
      parts.push_back(number("%.2f", made_between(of.history, wanted, from, s.times[i]) / (s.times[i] - from)));
    }
    parts.push_back(number("%.2f", made_between(of.history, wanted, 0, s.times.back()) / s.times.back()));
    all.phases.push_back(std::move(parts));
  }
  return rows;
}

}  // namespace dynamics

inline void add_dynamics(const sections& page) {
  using namespace dynamics;
  const std::vector<double> paper{25, 45, 50, 70, 80}, longer{250, 450, 500, 1700, 1800};
  tables all;
  const auto add = [&](const scenario& s) {
    const bool first = all.rates.size() == 1;
    const std::vector<io::policy_history> rows = compare(s, first, all);
    const cluster devices = zoo::cluster(s.setting);
    if (first) page.add_image("adapt.smart-home-2.svg", draw::adaptation_svg(rows, timeline_of(s, devices), model_of(s), devices));
  };
  for (const auto& times : {longer, paper}) {
    const int tokens = times == paper ? 2 : 8;
    add({"smart-home-2", mode::generation, 16, tokens, times});
    if (page.quick()) break;
    if (tokens > 2) add({"smart-home-2", mode::generation, 16, 2, times});
    for (const int batch : {8, 4}) add({"smart-home-2", mode::generation, batch, tokens, times});
    add({"smart-home-2", mode::inference, 16, 1, times});
    add({"traffic-monitor", mode::generation, 8, tokens, times});
    add({"traffic-monitor", mode::inference, 8, 1, times});
  }
  page.add_csv("dora.dynamics.csv", all.rates);
  page.add_csv("dora.dynamics-phases.csv", all.phases);
  std::vector<row> spans{{"job", "lasts", "static", "dora", "replan-always"}};
  for (const mode how : {mode::generation, mode::inference}) {
    for (const auto& times : {longer, paper}) {
      const std::string job(to_string(how)), lasts = readable(seconds(times.back()));
      spans.push_back({job, lasts});
      for (const std::size_t k : {4, 6, 7}) {
        const auto keep = [&](const row& r) { return r[1].starts_with(job) && r[2] == lasts; };
        spans.back().push_back(span_of(all.rates, k, keep).text("%.1f", " %"));
      }
    }
  }
  page.add("dynamics", markdown_table(spans));
}

}  // namespace bench
