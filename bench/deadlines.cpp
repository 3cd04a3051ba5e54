// SPDX-License-Identifier: BSL-1.0
// What mixing plans saves under a deadline (Dora's Fig 12): 6 000 training iterations in smart home 2, each mixture run
// with its switches and pauses, against the best single plan of the same menu that ends in time.
// Prints tables of docs/reproduction/dora.md; --json: one array.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/adapt/run.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/mix/clairvoyant.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "measure.hpp"
#include "report.hpp"

using namespace hetplan;

namespace {

using problem = planning_problem;

constexpr long long iterations = 6000;

job training_of(const std::string& model, int batch) {
  job j{.batch = batch};
  if (model == "qwen-omni") j.workload.optimizer_factor = 0;
  return j;
}

std::string number(const char* format, double x) {
  char text[48];
  std::snprintf(text, sizeof text, format, x);
  return text;
}
std::string megajoules(double x) { return number("%.2f MJ", 1e-6 * x); }
std::string percent(double share) { return number("%.1f %%", 100 * share); }

/// Nothing changes here, so a planner would always say the same.
struct answers_a_menu {
  const plan_result* menu;
  template <class Problem>
  plan_result operator()(const Problem&) const {
    return *menu;
  }
};

/// An iteration of a plan.
struct point {
  double time_s, energy_J;
};

/// The plans of a menu by time; none is beaten in both by another.
std::vector<point> front_of(const plan_result& menu) {
  std::vector<point> all;
  for (const plan& p : menu.plans) all.push_back({p.predicted->latency.value(), p.predicted->energy().value()});
  std::ranges::sort(all, [](const point& a, const point& b) { return std::pair(a.time_s, a.energy_J) < std::pair(b.time_s, b.energy_J); });
  std::vector<point> front;
  for (const point& x : all) {
    if (front.empty() || x.energy_J < front.back().energy_J) front.push_back(x);
  }
  return front;
}
double best_single_J(const std::vector<point>& front, double deadline_s) {
  double best = std::numeric_limits<double>::infinity();
  for (const point& x : front) {
    if (x.time_s * iterations <= deadline_s) best = std::min(best, x.energy_J * iterations);
  }
  return best;
}
/// With free switches; the job's energy counts until it is done, so idling takes none.
double clairvoyant_J(const std::vector<point>& front, double deadline_s) {
  mix::rate_period all{.seconds = deadline_s};
  for (const point& x : front) all.rates.plans.push_back({1 / x.time_s, x.energy_J / x.time_s});
  return mix::clairvoyant(std::span(&all, 1), iterations).energy_J;
}
/// The most that any mixture can save against a single plan: just before the deadline at which the next one would do.
struct gap {
  double saving = 0;
  double deadline_s = 0;
};
gap largest_gap(const std::vector<point>& front) {
  gap most;
  for (std::size_t i = 0; i + 1 < front.size(); ++i) {
    const double deadline = front[i + 1].time_s * iterations;
    const double saving = 1 - clairvoyant_J(front, deadline) / (front[i].energy_J * iterations);
    if (saving > most.saving) most = {saving, deadline};
  }
  return most;
}

adapt::history mixture(problem p, const plan_result& menu, double deadline_s, double pessimism) {
  p.job.qoe.deadline = seconds(deadline_s);
  p.job.qoe.iterations = iterations;
  adapt::mixing_policy policy(p, answers_a_menu{&menu}, {.progress = {.pessimism = pessimism}});
  return adapt::run(p, adapt::timeline{seconds(1.2 * deadline_s)}, policy, adapt::run_options<>{});
}

/// What a sweep over the deadlines of a front came to.
struct sweep {
  double best = -1, worst = 1, sum = 0, at = 0;
  int missed = 0, runs = 0;
  void add(const adapt::history& h, double single_J, double deadline_s, double fastest_s) {
    const double saving = 1 - h.energy_J / single_J;
    ++runs;
    missed += h.missed_deadline ? 1 : 0;
    sum += saving;
    worst = std::min(worst, saving);
    if (!h.missed_deadline && saving > best) {
      best = saving;
      at = deadline_s / (fastest_s * iterations);
    }
  }
};

struct reports {
  bench::report simulated{"Deadlines: energy of 6 000 iterations in smart home 2",
                          {"model", "deadline", "as x the fastest", "single plan", "free switches", "mixture, reserve for 20 %", "switches",
                           "pauses", "mixture, no reserve", "switches ", "pauses "}};
  bench::report swept{"Sweeps over the deadlines",
                      {"model", "plans", "ceiling", "at", "reserve for", "best", "at ", "mean", "worst", "missed"}};
  bench::report ceilings{"What a menu leaves to gain", {"model", "menu", "plans", "time", "energy", "ceiling", "planning"}};
};

void menus(reports& all, const std::string& name, const problem& p, bool quick) {
  struct variant {
    const char* name;
    int keep, between, k;
    bool ends_only = false;
  };
  const variant variants[] = {{"fastest and most frugal alone", 1, 0, 10, true},
                              {"one per question", 1, 4, 10},
                              {"default", 10, 4, 10},
                              {"30 per question", 30, 4, 30},
                              {"20 questions, 30 each", 30, 20, 30}};
  for (const variant& v : variants) {
    if (quick && v.k > 10) continue;
    const recipes::dora_planner planner{.keep = v.keep, .options = {.partitioner = {.k = v.k}}};
    plan_result menu;
    const double took = bench::seconds_of([&] { return (menu = adapt::plan_menu{planner, v.between}(p)).plans.size(); });
    std::vector<point> front = front_of(menu);
    if (v.ends_only && front.size() > 2) front = {front.front(), front.back()};
    const gap most = largest_gap(front);
    all.ceilings.add({name, v.name, std::to_string(front.size()),
                      readable(seconds(front.front().time_s)) + " - " + readable(seconds(front.back().time_s)),
                      readable(joules(front.back().energy_J)) + " - " + readable(joules(front.front().energy_J)), percent(most.saving),
                      number("%.0f ms", 1e3 * took)});
  }
}

void deadlines(reports& all, const std::string& model_name, int batch, bool quick) {
  const std::string name = model_name + " x " + std::to_string(batch);
  const cluster devices = zoo::cluster("smart-home-2");
  const planning_graph model = zoo::model(model_name, {});
  const problem p{model, devices, profiled_or_roofline{}, training_of(model_name, batch), {}, {}};
  const plan_result menu = adapt::plan_menu{recipes::dora_planner{}}(p);
  const std::vector<point> front = front_of(menu);
  const double first_s = front.front().time_s * iterations, last_s = front.back().time_s * iterations;
  const auto at = [&](int i, int n) { return first_s + (last_s - first_s) * i / n; };

  const int rows = quick ? 2 : 8;
  for (int i = 1; i <= rows && front.size() > 1; ++i) {
    const double deadline = at(i, rows), single = best_single_J(front, deadline);
    std::vector<std::string> row{name, number("%.1f h", deadline / 3600), number("%.2f", deadline / first_s), megajoules(single),
                                 percent(1 - clairvoyant_J(front, deadline) / single)};
    for (const double pessimism : {0.2, 0.0}) {
      const adapt::history h = mixture(p, menu, deadline, pessimism);
      row.push_back(percent(1 - h.energy_J / single) + (h.missed_deadline ? " (late)" : ""));
      row.push_back(std::to_string(h.switches));
      row.push_back(readable(seconds(h.stall_s)));
    }
    all.simulated.add(std::move(row));
  }
  const gap most = largest_gap(front);
  for (const double pessimism : {0.2, 0.0}) {
    sweep s;
    const int runs = quick ? 3 : 60;
    for (int i = 1; i <= runs && front.size() > 1; ++i) {
      const double deadline = at(i, runs);
      s.add(mixture(p, menu, deadline, pessimism), best_single_J(front, deadline), deadline, front.front().time_s);
    }
    all.swept.add({name, std::to_string(front.size()), percent(most.saving), number("%.2f", most.deadline_s / first_s), percent(pessimism),
                   percent(s.best), number("%.2f", s.at), percent(s.sum / std::max(1, s.runs)), percent(s.worst),
                   std::to_string(s.missed)});
  }
  menus(all, name, p, quick);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  reports all;
  // Of 8 samples, because then the paper's 3.9 to 5.4 s an iteration are in reach.
  for (const auto& [name, batch] :
       {std::pair{"bert-base", 32}, {"qwen3-0.6b", 32}, {"qwen3-1.7b", 32}, {"qwen-omni", 32}, {"qwen3-0.6b", 8}}) {
    if (options.quick && std::string(name) != "bert-base") continue;
    deadlines(all, name, batch, options.quick);
  }
  bench::print({all.simulated, all.swept, all.ceilings}, options);
}
