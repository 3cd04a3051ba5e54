// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What mixing plans saves under a deadline (Dora's Fig 12): 6 000 training iterations in smart home 2, each mixture run with its
/// switches and pauses, against the best single plan of the same menu that ends in time.

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/adapt/run.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "reproduce/sections.hpp"

namespace bench {

namespace deadlines {

using namespace hetplan;

inline constexpr long long iterations = 6000;

inline job training_of(const std::string& model, int batch) {
  job j{.batch = batch};
  if (model == "qwen-omni") j.workload.optimizer_factor = 0;
  return j;
}

inline std::string megajoules(double x) { return number("%.2f MJ", 1e-6 * x); }
inline std::string percent(double share) { return number("%.1f %%", 100 * share); }

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
inline std::vector<point> front_of(const plan_result& menu) {
  std::vector<point> all;
  for (const auto& [p, e] : menu.plans) all.push_back({e.latency.value(), e.energy().value()});
  std::ranges::sort(all, [](const point& a, const point& b) { return std::pair(a.time_s, a.energy_J) < std::pair(b.time_s, b.energy_J); });
  std::vector<point> front;
  for (const point& x : all) {
    if (front.empty() || x.energy_J < front.back().energy_J) front.push_back(x);
  }
  return front;
}
inline double best_single_J(const std::vector<point>& front, double deadline_s) {
  double best = std::numeric_limits<double>::infinity();
  for (const point& x : front) {
    if (x.time_s * iterations <= deadline_s) best = std::min(best, x.energy_J * iterations);
  }
  return best;
}
/// With free switches; the job's energy counts until it is done, so idling takes none.
inline double clairvoyant_J(const std::vector<point>& front, double deadline_s) {
  mix::rate_period all{.seconds = deadline_s};
  for (const point& x : front) all.rates.plans.push_back({1 / x.time_s, x.energy_J / x.time_s});
  return mix::clairvoyant(std::span(&all, 1), iterations).energy_J;
}
/// The most that any mixture can save against a single plan: just before the deadline at which the next one would do.
struct gap {
  double saving = 0;
  double deadline_s = 0;
};
inline gap largest_gap(const std::vector<point>& front) {
  gap most;
  for (std::size_t i = 0; i + 1 < front.size(); ++i) {
    const double deadline = front[i + 1].time_s * iterations;
    const double saving = 1 - clairvoyant_J(front, deadline) / (front[i].energy_J * iterations);
    if (saving > most.saving) most = {saving, deadline};
  }
  return most;
}

inline adapt::history mixture(planning_problem p, const plan_result& menu, double deadline_s, double pessimism) {
  p.job.qoe.deadline = seconds(deadline_s);
  p.job.qoe.iterations = iterations;
  adapt::mixing_policy policy(p, answers_a_menu{&menu}, {.progress = {.pessimism = pessimism}});
  return adapt::run(p, adapt::timeline{seconds(1.2 * deadline_s)}, policy, adapt::run_options<>{});
}

/// Of a sweep over the deadlines of a front: the most, the mean and the least that is saved.
class sweep {
 public:
  void add(const adapt::history& h, double single_J) {
    savings_.push_back(1 - h.energy_J / single_J);
    missed_ += h.missed_deadline ? 1 : 0;
  }
  void tell(row& r) const {
    double sum = 0;
    for (const double x : savings_) sum += x;
    r.push_back(savings_.empty() ? "-" : percent(*std::ranges::max_element(savings_)));
    r.push_back(savings_.empty() ? "-" : percent(sum / static_cast<double>(savings_.size())));
    r.push_back(savings_.empty() ? "-" : percent(*std::ranges::min_element(savings_)));
    r.push_back(std::to_string(missed_));
  }

 private:
  std::vector<double> savings_;
  int missed_ = 0;
};

/// What menus of more and of fewer plans leave to gain.
inline std::string ceiling(const planning_problem& p, int keep, int between, int k, bool ends_only = false) {
  const recipes::dora_planner planner{.keep = keep, .options = {.partitioner = {.k = k}}};
  std::vector<point> front = front_of(adapt::plan_menu{planner, between}(p));
  if (ends_only && front.size() > 2) front = {front.front(), front.back()};
  return percent(largest_gap(front).saving);
}

}  // namespace deadlines

inline void add_deadlines(const sections& page) {
  using namespace deadlines;
  std::vector<row> simulated{{"model", "deadline", "as x the fastest", "single plan", "free switches", "mixture, reserve for 20 %",
                              "switches", "pauses", "mixture, no reserve", "switches", "pauses"}};
  std::vector<row> swept{{"model", "plans", "time", "energy", "ceiling", "at", "reserve for 20 %: best", "mean", "worst", "missed",
                          "none: best", "mean", "worst", "missed"}};
  std::vector<row> menus{
      {"model", "fastest and most frugal alone", "one plan per question", "ten per question, the default", "thirty, K 30"}};
  // Of 8 samples, because then the paper's 3.9 to 5.4 s an iteration come near.
  for (const auto& [model_name, batch] :
       {std::pair{"bert-base", 32}, {"qwen3-0.6b", 32}, {"qwen3-1.7b", 32}, {"qwen-omni", 32}, {"qwen3-0.6b", 8}}) {
    if (page.quick() && std::string(model_name) != "bert-base") continue;
    const std::string name = std::string(model_name) + " x " + std::to_string(batch);
    const cluster devices = zoo::cluster("smart-home-2");
    const planning_graph model = zoo::model(model_name, {});
    const planning_problem p{model, devices, profiled_or_roofline{}, training_of(model_name, batch), {}, {}};
    const plan_result menu = adapt::plan_menu{recipes::dora_planner{}}(p);
    const std::vector<point> front = front_of(menu);
    const double first_s = front.front().time_s * iterations, last_s = front.back().time_s * iterations;
    const auto at = [&](int i, int n) { return first_s + (last_s - first_s) * i / n; };

    const int shown = page.quick() ? 1 : 4;
    for (int i = 1; i <= shown && front.size() > 1; ++i) {
      const double deadline = at(2 * i - 1, 2 * shown), single = best_single_J(front, deadline);
      row r{name, number("%.1f h", deadline / 3600), number("%.2f", deadline / first_s), megajoules(single),
            percent(1 - clairvoyant_J(front, deadline) / single)};
      for (const double pessimism : {0.2, 0.0}) {
        const adapt::history h = mixture(p, menu, deadline, pessimism);
        r.push_back(percent(1 - h.energy_J / single) + (h.missed_deadline ? " (late)" : ""));
        r.push_back(std::to_string(h.switches));
        r.push_back(readable(seconds(h.stall_s)));
      }
      simulated.push_back(std::move(r));
    }
    const gap most = largest_gap(front);
    row r{name,
          std::to_string(front.size()),
          readable(seconds(front.front().time_s)) + " - " + readable(seconds(front.back().time_s)),
          readable(joules(front.back().energy_J)) + " - " + readable(joules(front.front().energy_J)),
          percent(most.saving),
          front.size() > 1 ? number("%.2f", most.deadline_s / first_s) : "-"};
    for (const double pessimism : {0.2, 0.0}) {
      sweep s;
      const int runs = page.quick() ? 2 : 60;
      for (int i = 1; i <= runs && front.size() > 1; ++i) {
        const double deadline = at(i, runs);
        s.add(mixture(p, menu, deadline, pessimism), best_single_J(front, deadline));
      }
      s.tell(r);
    }
    swept.push_back(std::move(r));
    menus.push_back(
        {name, ceiling(p, 1, 0, 20, true), ceiling(p, 1, 4, 20), percent(most.saving), ceiling(p, 30, 4, page.quick() ? 20 : 30)});
  }
  page.add_csv("dora.deadlines.csv", simulated);
  page.add_csv("dora.deadlines-swept.csv", swept);
  page.add_csv("dora.deadlines-menus.csv", menus);
  for (row& r : swept) r = {r[0], r[1], r[4], r[6], r[7], r[8]};
  page.add("deadlines", markdown_table(swept, 1));
}

}  // namespace bench
