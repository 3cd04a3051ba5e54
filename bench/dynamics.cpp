// SPDX-License-Identifier: BSL-1.0
// Generation while a laptop downloads a video and then shows it (Dora's Fig 16): tokens per second of policies side by side.
// Prints tables of docs/reproduction/dora.md; --json: one array; --svg FILE draws the first case.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/adapt/run.hpp>
#include <hetplan/draw/adaptation_svg.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "measure.hpp"
#include "report.hpp"

using namespace hetplan;

namespace {

using problem = planning_problem;

std::string number(const char* format, double x) {
  char text[48];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

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
planning_graph model_of(const scenario& s) {
  return s.how == mode::generation ? zoo::model("qwen3-1.7b", {.tokens = 1}) : zoo::model("qwen3-1.7b", {});
}

/// All in seconds, with the first device as the one that somebody uses.
adapt::timeline timeline_of(const scenario& s, const cluster& c) {
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
double made_between(const adapt::history& h, const job& j, double from, double to) {
  return adapt::iterations_between(h, from, to) * j.batch * j.workload.steps();
}

struct reports {
  bench::report rates{"What policies make, as a part of the oracle's",
                      {"setting", "job", "lasts", "oracle", "static", "network-only", "dora", "replan-always", "dora: first decision",
                       "done", "moved", "stall"}};
  bench::report phases{"Made per second", {"setting and job", "policy", "before", "download", "between", "video", "after", "all"}};
};

std::vector<io::policy_history> compare(const scenario& s, bool in_phases, reports& all) {
  const cluster devices = zoo::cluster(s.setting);
  const planning_graph model = model_of(s);
  job wanted{.workload = {.mode = s.how}, .batch = s.batch};
  if (s.how == mode::generation) {
    wanted.workload.context = 512;
    wanted.workload.tokens = s.tokens;
  }
  const problem p{model, devices, profiled_or_roofline{}, wanted, {}, {}};
  const adapt::timeline t = timeline_of(s, devices);
  const recipes::dora_planner planner;
  const plan_result first = planner(p);
  const adapt::heartbeat beats;
  const adapt::storage_options storage{.archive = adapt::elect_coordinator(devices, adapt::nominal(devices))};
  std::vector<io::policy_history> rows;
  const auto run = [&](const char* name, auto policy, const auto& detector) {
    rows.push_back({name, adapt::run(p, t, policy, adapt::run_options<std::remove_cvref_t<decltype(detector)>>{detector, storage})});
  };
  run("static", adapt::static_plan(first.plans.front()), beats);
  run("network-only", adapt::network_only(p, first.plans.front()), beats);
  run("dora", recipes::dora_adapter(p, {.planner = planner}), beats);
  run("replan-always", adapt::replan_always(p, planner), beats);
  run("oracle", adapt::oracle(p, planner), adapt::immediate{});

  const std::string times_tokens = s.how == mode::generation ? " x " + std::to_string(s.tokens) : "";
  const std::string job_text = std::string(to_string(s.how)) + " of " + std::to_string(s.batch) + times_tokens;
  const std::string lasts = readable(seconds(s.times.back()));
  const double most = made_between(rows.back().history, wanted, 0, s.times.back());
  std::vector<std::string> row{s.setting, job_text, lasts, number("%.2f /s", most / s.times.back())};
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    row.push_back(number("%.1f %%", 100 * made_between(rows[i].history, wanted, 0, s.times.back()) / most));
  }
  const adapt::history& dora = rows[2].history;
  const adapt::adoption* one = dora.adoptions.empty() ? nullptr : &dora.adoptions.front();
  row.push_back(one == nullptr ? "-" : number("%.1f s", one->decided_s));
  row.push_back(one == nullptr ? "-" : number("%.1f s", one->done_s));
  row.push_back(dora.moved_bytes > 0 ? readable(bytes(dora.moved_bytes)) : "-");
  row.push_back(dora.stall_s > 0 ? readable(seconds(dora.stall_s)) : "-");
  all.rates.add(std::move(row));
  if (!in_phases) return rows;
  for (const io::policy_history& r : rows) {
    std::vector<std::string> parts{std::string(s.setting) + ", " + job_text + ", " + lasts, r.policy};
    for (std::size_t i = 0; i < s.times.size(); ++i) {
      const double from = i == 0 ? 0 : s.times[i - 1];
      parts.push_back(number("%.2f", made_between(r.history, wanted, from, s.times[i]) / (s.times[i] - from)));
    }
    parts.push_back(number("%.2f", made_between(r.history, wanted, 0, s.times.back()) / s.times.back()));
    all.phases.add(std::move(parts));
  }
  return rows;
}

void write_picture(const std::string& file, const std::vector<io::policy_history>& rows, const scenario& s) {
  const cluster devices = zoo::cluster(s.setting);
  io::write_atomically(file, draw::adaptation_svg(rows, timeline_of(s, devices), model_of(s), devices));
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  std::string svg;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--svg") == 0) svg = argv[i + 1];
  }
  const std::vector<double> paper{25, 45, 50, 70, 80}, longer{250, 450, 500, 1700, 1800};
  std::vector<scenario> cases;
  for (const auto& times : {longer, paper}) {
    const int tokens = times == paper ? 2 : 8;
    cases.push_back({"smart-home-2", mode::generation, 16, tokens, times});
    if (options.quick) break;
    if (tokens > 2) cases.push_back({"smart-home-2", mode::generation, 16, 2, times});
    for (const int batch : {8, 4}) cases.push_back({"smart-home-2", mode::generation, batch, tokens, times});
    cases.push_back({"smart-home-2", mode::inference, 16, 1, times});
    cases.push_back({"traffic-monitor", mode::generation, 8, tokens, times});
    cases.push_back({"traffic-monitor", mode::inference, 8, 1, times});
  }
  reports all;
  for (const scenario& s : cases) {
    const std::vector<io::policy_history> rows = compare(s, &s == &cases.front(), all);
    if (!svg.empty() && &s == &cases.front()) write_picture(svg, rows, s);
  }
  bench::print({all.rates, all.phases}, options);
}
