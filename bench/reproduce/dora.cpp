// SPDX-License-Identifier: BSL-1.0
// The tables and figures of Dora's evaluation, ours beside the paper's: the sections of docs/reproduction/dora.md (update.py).
//
// Everything is judged by the simulator on the real, shared network. Jobs: training of a batch of 32 with Adam (Qwen-Omni: plain
// SGD), inference of 8 samples, generation for 4 sequences after 512 tokens of context. Models, clusters and jobs are those of
// bench/settings; in generation a sample is one token, so the built-in models serve there.

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/solve/glpk.hpp>
#include <hetplan/tasks/expand.hpp>
#include <hetplan/tasks/task_graph.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "reproduce/dora_deadlines.hpp"
#include "reproduce/dora_dynamics.hpp"
#include "reproduce/dora_order.hpp"
#include "reproduce/dora_quality.hpp"
#include "reproduce/plot_svg.hpp"
#include "reproduce/sections.hpp"

using namespace hetplan;
using bench::number;
using bench::row;

namespace {

using problem = planning_problem;

problem problem_of(const planning_graph& model, const cluster& devices, const job& wanted) {
  return {model, devices, profiled_or_roofline{}, wanted, {}, glpk_lp{}};
}

io::json_document setting_file(const std::string& name) {
  return io::json_document::load(HETPLAN_SOURCE_DIR "/bench/settings/" + name + ".json");
}
/// A language model of 512 tokens a sample; in generation of one, the token of a step.
planning_graph model_of(mode how, const std::string& name) {
  return how == mode::generation ? zoo::model(name, {.tokens = 1}) : io::read_model(setting_file(name));
}
cluster cluster_of(const std::string& name) { return io::read_cluster(setting_file(name)); }
job job_of(mode how, const std::string& model) {
  const bool own = how == mode::training && model == "qwen-omni";
  return io::read_job(setting_file(std::string(to_string(how)) + (own ? "." + model : "")));
}

/// A token of each sequence without a key/value cache: an inference of all tokens so far.
job job_without_cache() {
  job wanted = job_of(mode::generation, "qwen3-1.7b");
  wanted.workload = {.mode = mode::inference, .tokens = 1};
  return wanted;
}

/// A target that is a limit: no energy buys lateness.
qoe_target within(double latency_s) { return {.latency = seconds(latency_s), .lambda_J_per_s = 1e6}; }

const std::vector<std::string> settings{"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"};
const std::vector<std::string> models{"bert-base", "qwen3-0.6b", "qwen3-1.7b", "qwen-omni"};

/// What a job wants, in the paper's measure of speed: the time between tokens in generation, whatever the job calls latency.
struct by_response {
  explicit by_response(const job& j) : wanted(j) {}
  objective_of_job wanted;
  [[nodiscard]] double score(seconds response, joules energy) const { return wanted.score(response, energy); }
};

/// Who is compared: the paper's four last. Each answers what the problem's job wants.
struct baseline {
  std::string name;
  std::function<plan_result(const problem&, const by_response&)> plan;
};
const std::vector<baseline> baselines{
    {"on-device", [](auto&... args) { return recipes::on_device(args..., 1); }},
    {"data-parallel", [](auto&... args) { return recipes::data_parallel(args..., 1); }},
    {"pipeline", [](auto&... args) { return recipes::pipeline(args..., 1); }},
    {"gpipe", [](auto&... args) { return recipes::gpipe(args..., 1); }},
    {"pipedream", [](auto&... args) { return recipes::pipedream(args..., 1); }},
    {"dapple", [](auto&... args) { return recipes::dapple(args..., 1); }},
    {"hetpipe", [](auto&... args) { return recipes::hetpipe(args..., 1); }},
    {"edgeshard", [](auto&... args) { return recipes::edgeshard(args..., 1); }},
    {"alpa", [](auto&... args) { return recipes::alpa(args..., 1); }},
    {"metis", [](auto&... args) { return recipes::metis(args..., 1); }},
    {"asteroid", [](auto&... args) { return recipes::asteroid(args..., 1); }},
};
constexpr std::size_t papers_first = 7;  // of the baselines that the paper compares with

/// Its best plan under the judge: nothing where it runs out of memory.
struct answer {
  std::optional<ranked_plan> best = {};
  double on_wires_s = 0;  ///< the same plan where every pair of devices has its peak bandwidth to itself

  answer() = default;
  explicit answer(const plan_result& r) {
    if (!r.plans.empty()) best = r.plans.front();
  }
  [[nodiscard]] double time_s() const { return best->evaluation.response().value(); }
  [[nodiscard]] double energy_J() const { return best->evaluation.energy().value(); }
  [[nodiscard]] std::string time() const { return best ? number("%.4g", time_s()) : "OOM"; }
};

constexpr double tolerance = 1 + 1e-9;  // sums of the same numbers in another order

/// Least and largest of what the answers that ran say; nothing where none ran.
template <class Value>
std::optional<std::pair<double, double>> range_of(const std::vector<answer>& answers, std::size_t first, Value&& value) {
  std::optional<std::pair<double, double>> range;
  for (std::size_t i = first; i < answers.size(); ++i) {
    if (!answers[i].best) continue;
    const double v = value(answers[i]);
    range = range ? std::pair(std::min(range->first, v), std::max(range->second, v)) : std::pair(v, v);
  }
  return range;
}
constexpr auto time_of = [](const answer& a) { return a.time_s(); };
constexpr auto energy_of = [](const answer& a) { return a.energy_J(); };

/// What all find for one question.
struct field {
  std::vector<answer> others = {};  ///< by baseline
  answer dora = {};
};

/// One setting, model and mode: who is fastest, and who needs least energy within the target.
struct comparison {
  mode how = mode::training;
  std::string setting, model;
  field fastest = {}, in_time = {};  ///< in time: nothing also where the answer is late, but for Dora
  answer printed = {};
  double target_s = 0;  ///< the best baseline's latency / 0.8

  [[nodiscard]] row names() const { return {setting, model}; }
};

comparison compare(mode how, const std::string& setting, const std::string& name) {
  comparison c{how, setting, name};
  const planning_graph model = model_of(how, name);
  const cluster devices = cluster_of(setting);
  problem p = problem_of(model, devices, job_of(how, name));
  const auto ask_all = [&] {
    std::vector<answer> all;
    for (const baseline& b : baselines) all.emplace_back(b.plan(p, by_response(p.job)));
    return all;
  };
  c.fastest.others = ask_all();
  c.fastest.dora = answer(recipes::dora(p, by_response(p.job), 1));
  const cluster wires = uncontended(devices);
  const auto judge_on_wires = [&](answer& a) {
    if (a.best) a.on_wires_s = judge(a.best->plan, model, wires, p.cost).evaluation.response().value();
  };
  for (answer& a : c.fastest.others) judge_on_wires(a);
  judge_on_wires(c.fastest.dora);
  c.printed = answer(recipes::dora_as_printed(p, by_response(p.job)));
  if (const auto range = range_of(c.fastest.others, 0, time_of)) {
    c.target_s = range->first / 0.8;
    p.job.qoe = within(c.target_s);
    c.in_time.others = ask_all();
    for (answer& a : c.in_time.others) {
      if (a.best && a.time_s() > c.target_s * tolerance) a.best.reset();
    }
    c.in_time.dora = answer(recipes::dora(p, by_response(p.job), 1));
  }
  return c;
}

// Who is faster (Figs 8 and 9).

std::vector<row> times_table(const std::vector<comparison>& all) {
  row headings{"setting", "model"};
  for (const baseline& b : baselines) headings.push_back(b.name);
  headings.insert(headings.end(), {"dora", "over best", "over worst", "dora-printed"});
  std::vector<row> rows{headings};
  for (const comparison& c : all) {
    row r = c.names();
    for (const answer& a : c.fastest.others) r.push_back(a.time());
    const auto range = range_of(c.fastest.others, 0, time_of);
    r.push_back(c.fastest.dora.time());
    for (const bool worst : {false, true}) {
      r.push_back(range && c.fastest.dora.best ? number("%.3g x", (worst ? range->second : range->first) / c.fastest.dora.time_s()) : "-");
    }
    r.push_back(c.printed.time());
    rows.push_back(std::move(r));
  }
  return rows;
}

/// Bars relative to Dora's, so that one axis serves all models: the paper's four, the best of the other baselines, Dora.
template <class Value, class Title>
std::string relative_image(bench::plot_style style, const std::vector<comparison>& all, field comparison::*of, const std::string& missing,
                           Value&& value, Title&& title_of) {
  std::vector<bench::plot_series> series;
  for (std::size_t i = papers_first; i < baselines.size(); ++i) series.push_back({baselines[i].name, bench::plot_color(i - papers_first)});
  series.push_back({"best of the other baselines", bench::plot_color(7)});
  series.push_back({"dora", bench::plot_own});
  std::vector<bench::bar_panel> panels;
  for (const comparison& c : all) {
    const auto& [others, dora] = c.*of;
    const std::string title = title_of(c);
    if (panels.empty() || panels.back().title != title) panels.push_back({title, {}});
    bench::bar_group g{c.model, {}};
    const double one = dora.best ? value(dora) : 0;
    const auto add = [&](const answer& a) { g.values.push_back(a.best && one > 0 ? std::optional(value(a) / one) : std::nullopt); };
    for (std::size_t i = papers_first; i < others.size(); ++i) add(others[i]);
    answer best;
    for (std::size_t i = 0; i < std::min(papers_first, others.size()); ++i) {
      if (others[i].best && (!best.best || value(others[i]) < value(best))) best = others[i];
    }
    add(best);
    add(dora);
    panels.back().groups.push_back(std::move(g));
  }
  style.unit = "";
  style.logarithmic = false;
  return bench::bars_svg(style, series, panels, missing);
}

/// Every baseline that is better than Dora somewhere.
template <class Value, class Text>
std::vector<row> losses(const std::vector<comparison>& all, field comparison::*of, Value&& value, Text&& text) {
  std::vector<row> rows{{"job", "setting", "model", "baseline", "its", "dora's", "dora's is more by"}};
  for (const comparison& c : all) {
    const auto& [others, dora] = c.*of;
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (!others[i].best || (dora.best && value(others[i]) >= value(dora) / tolerance)) continue;
      const double its = value(others[i]);
      rows.push_back({std::string(to_string(c.how)), c.setting, c.model, baselines[i].name, text(its),
                      dora.best ? text(value(dora)) : "OOM", dora.best ? number("%.2f %%", 100 * (value(dora) / its - 1)) : "-"});
    }
  }
  return rows;
}

/// Where Dora loses: what it finds with more candidates, or with a finer grain.
std::vector<row> searched_harder(const std::vector<comparison>& all) {
  const auto text = [](const answer& a) { return a.best ? readable(seconds(a.time_s())) : "OOM"; };
  std::vector<row> rows{{"job", "setting", "model", "best baseline", "dora", "K 30", "blocks of 1 %", "both"}};
  for (const comparison& c : all) {
    const auto& [others, dora] = c.fastest;
    const auto range = range_of(others, 0, time_of);
    if (!range || (dora.best && range->first >= dora.time_s() / tolerance)) continue;
    const planning_graph model = model_of(c.how, c.model);
    const cluster devices = cluster_of(c.setting);
    const problem p = problem_of(model, devices, job_of(c.how, c.model));
    row r{std::string(to_string(c.how)), c.setting, c.model, readable(seconds(range->first)), text(dora)};
    recipes::partitioner_options fine;
    fine.rows = {decompose::joined_chains{0.01}, decompose::light_row{}};
    fine.polish.boundaries = polish_boundaries::of_layers;  // as behind the usual rows
    recipes::partitioner_options more = fine;
    more.k = 30;
    for (const recipes::partitioner_options& how : {recipes::partitioner_options{.k = 30}, fine, more}) {
      const answer other(recipes::dora(p, by_response(p.job), 1, recipes::dora_options{.partitioner = how}));
      r.push_back(text(other));
    }
    rows.push_back(std::move(r));
  }
  return rows;
}

/// How many times as fast Dora is: the extremes and the geometric mean over the cases, each against its best and its worst.
std::vector<row> headline(const std::vector<comparison>& all) {
  std::vector<row> rows{
      {"job", "baselines", "cases", "over the best: least", "mean", "most", "over the worst: least", "mean", "most", "not fastest in"}};
  for (const mode how : {mode::training, mode::inference, mode::generation}) {
    for (const std::size_t first : {papers_first, std::size_t{0}}) {
      std::vector<double> best, worst;
      int lost = 0;
      for (const comparison& c : all) {
        const auto range = range_of(c.fastest.others, first, time_of);
        if (c.how != how || !range || !c.fastest.dora.best) continue;
        best.push_back(range->first / c.fastest.dora.time_s());
        worst.push_back(range->second / c.fastest.dora.time_s());
        lost += best.back() < 1 / tolerance;
      }
      if (best.empty()) continue;
      row r{std::string(to_string(how)), first == 0 ? "all" : "the paper's four", std::to_string(best.size())};
      for (const auto& ratios : {best, worst}) {
        double logarithms = 0;
        for (const double x : ratios) logarithms += std::log(x);
        r.push_back(number("%.2f", *std::min_element(ratios.begin(), ratios.end())));
        r.push_back(number("%.2f", std::exp(logarithms / static_cast<double>(ratios.size()))));
        r.push_back(number("%.2f", *std::max_element(ratios.begin(), ratios.end())));
      }
      r.push_back(std::to_string(lost));
      rows.push_back(std::move(r));
    }
  }
  return rows;
}

/// The cases for which the paper's text has a number.
std::string quoted(const std::vector<comparison>& all) {
  struct claim {
    const char *setting, *model, *where, *paper;
    bool worst;
  };
  std::vector<row> rows{{"where", "paper", "here, over the paper's four", "here, over all"}};
  const claim claims[] = {{"smart-home-1", "qwen3-0.6b", "training Qwen3-0.6B in smart home 1, over the best", "1.9 x", false},
                          {"smart-home-2", "qwen3-0.6b", "training Qwen3-0.6B in smart home 2, over the best", "3.3 x", false},
                          {"edge-cluster", "", "training in the edge cluster, least over the best", "at least 1.1 x", false},
                          {"smart-home-2", "", "training in smart home 2, most over the worst", "6.3 x", true}};
  for (const claim& q : claims) {
    row r{q.where, q.paper};
    for (const std::size_t first : {papers_first, std::size_t{0}}) {
      std::optional<double> found;
      for (const comparison& c : all) {
        if (c.how != mode::training || c.setting != q.setting || (*q.model != '\0' && c.model != q.model)) continue;
        const auto range = range_of(c.fastest.others, first, time_of);
        if (!range || !c.fastest.dora.best) continue;
        const double x = (q.worst ? range->second : range->first) / c.fastest.dora.time_s();
        found = !found ? x : q.worst ? std::max(*found, x) : std::min(*found, x);
      }
      r.push_back(found ? number("%.2f x", *found) : "-");
    }
    rows.push_back(std::move(r));
  }
  return bench::markdown_table(rows, 1);
}

/// What contention does to the plans: the time on the real network over that on private wires.
std::vector<row> slower_models(const std::vector<comparison>& all) {
  row headings{"setting", "model"};
  for (std::size_t i = papers_first; i < baselines.size(); ++i) headings.push_back(baselines[i].name);
  headings.push_back("dora");
  std::vector<row> rows{headings};
  for (const comparison& c : all) {
    if (c.how != mode::training) continue;
    row r = c.names();
    const auto add = [&](const answer& a) { r.push_back(a.best ? number("%.2f x", a.time_s() / a.on_wires_s) : "OOM"); };
    for (std::size_t i = papers_first; i < c.fastest.others.size(); ++i) add(c.fastest.others[i]);
    add(c.fastest.dora);
    rows.push_back(std::move(r));
  }
  return rows;
}

// Who needs less energy in time (Figs 10 and 11).

std::vector<row> energy_table(const std::vector<comparison>& all) {
  row headings{"setting", "model", "target [s]", "dora [s]"};
  for (const baseline& b : baselines) headings.push_back(b.name);
  headings.insert(headings.end(), {"dora [J]", "less than the least", "than the most"});
  std::vector<row> rows{headings};
  for (const comparison& c : all) {
    row r = c.names();
    r.push_back(c.target_s > 0 ? number("%.4g", c.target_s) : "-");
    r.push_back(c.in_time.dora.best ? c.in_time.dora.time() + (c.in_time.dora.time_s() > c.target_s * tolerance ? " late" : "") : "OOM");
    for (std::size_t i = 0; i < c.in_time.others.size(); ++i) {
      const answer& a = c.in_time.others[i];
      r.push_back(a.best ? number("%.4g", a.energy_J()) : c.fastest.others[i].best ? "late" : "OOM");
    }
    r.resize(headings.size() - 3, "-");
    const auto range = range_of(c.in_time.others, 0, energy_of);
    r.push_back(c.in_time.dora.best ? number("%.4g", c.in_time.dora.energy_J()) : "-");
    for (const bool most : {false, true}) {
      const double other = !range ? 0 : most ? range->second : range->first;
      r.push_back(range && c.in_time.dora.best ? number("%.1f %%", 100 * (1 - c.in_time.dora.energy_J() / other)) : "-");
    }
    rows.push_back(std::move(r));
  }
  return rows;
}

/// Energy saved against the baselines that meet the target, by setting: the extremes over the models.
std::vector<row> energy_headline(const std::vector<comparison>& all, bool quick) {
  const auto paper = [](mode how, const std::string& setting) -> std::string {
    if (how == mode::generation) return setting == "smart-home-2" || setting == "traffic-monitor" ? "15 to 82 %" : "-";
    if (how != mode::training) return "-";
    return setting == "smart-home-2" ? "57.5 to 82.2 %" : setting == "smart-home-1" ? "10 to 82 %" : "over 15 %";
  };
  std::vector<row> rows{
      {"job", "setting", "paper", "the paper's four: under the least", "under the most", "all: under the least", "under the most"}};
  for (const mode how : {mode::training, mode::inference, mode::generation}) {
    for (const std::string& setting : settings) {
      row r{std::string(to_string(how)), setting, paper(how, setting)};
      bool any = false;
      for (const std::size_t first : {papers_first, std::size_t{0}}) {
        std::vector<double> least, most;
        for (const comparison& c : all) {
          if (c.how != how || c.setting != setting || !c.in_time.dora.best) continue;
          const auto range = range_of(c.in_time.others, first, energy_of);
          if (!range) continue;
          least.push_back(100 * (1 - c.in_time.dora.energy_J() / range->first));
          most.push_back(100 * (1 - c.in_time.dora.energy_J() / range->second));
        }
        any = any || !least.empty();
        for (const auto& x : {least, most}) {
          const auto [low, high] = std::minmax_element(x.begin(), x.end());
          r.push_back(x.empty() ? "-" : number("%.1f", *low) + number(" to %.1f %%", *high));
        }
      }
      if (any || !quick) rows.push_back(std::move(r));
    }
  }
  return rows;
}

// Parts taken away (Fig 14), candidates (Fig 17), graph or chain, contention (Fig 2).

std::string response(const plan_result& r) { return r.plans.empty() ? "-" : readable(r.plans.front().evaluation.response()); }

/// Calls f(setting, devices, name) for the settings and the names of the two models of the paper's ablations.
template <class F>
void for_each_ablation(bool quick, F&& f) {
  for (const std::string& setting : settings) {
    if (quick && setting != "smart-home-2") continue;
    const cluster devices = cluster_of(setting);
    for (const char* name : {"qwen3-1.7b", "qwen-omni"}) {
      if (quick && std::string(name) == "qwen-omni") continue;
      f(setting, devices, std::string(name));
    }
  }
}

/// A plan that was chosen for another network, on the real one.
plan_result judged_on(const problem& real, const plan_result& seen) {
  plan_result judged;
  for (const plan& p : plans_of(seen.plans)) judged.plans.push_back({p, judge(p, real.model, real.cluster, real.cost).evaluation});
  return judged;
}
plan_result best_on_paper(const problem& real) {
  const cluster private_network = uncontended(real.cluster);
  return judged_on(real, recipes::dora_partitioner(problem_of(real.model, private_network, real.job), minimize_latency{}, 1));
}
plan_result scheduled_even_split(const problem& p) {
  const plan_result even = recipes::even_split(p, minimize_latency{}, 10);
  return even.plans.empty() ? even : schedule::refine(p, minimize_latency{}, plans_of(even.plans), 1);
}
/// How far the best plan's transfers are from the best order, at most.
std::string order_gap(const plan_result& r) {
  if (r.plans.empty()) return "-";
  const evaluation& e = r.plans.front().evaluation;
  const double percent = 100 * (e.latency / e.contention_bound - 1);
  return percent < 1e-7 ? "0" : percent < 0.01 ? "< 0.01 %" : number("%.2f %%", percent);
}

/// How much less than before, in percent.
std::string gain(const plan_result& before, const plan_result& after) {
  if (before.plans.empty() || after.plans.empty()) return "-";
  return number("%.1f %%", 100 * (1 - after.plans.front().evaluation.response() / before.plans.front().evaluation.response()) + 1e-9);
}

void add_phases(const bench::sections& page) {
  std::vector<row> rows{{"job", "setting", "model", "on paper", "even split", "phase 2 only", "phase 1 only", "both", "order at most off",
                         "phase 2 gains on the even split", "on phase 1", "phase 1 gains on phase 2"}};
  for_each_ablation(page.quick(), [&](const std::string& setting, const cluster& devices, const std::string& name) {
    for (const mode how : {mode::training, mode::inference, mode::generation}) {
      const planning_graph model = model_of(how, name);
      const problem p = problem_of(model, devices, job_of(how, name));
      const plan_result even = recipes::even_split(p, minimize_latency{}, 1), second = scheduled_even_split(p),
                        first = recipes::dora_partitioner(p, minimize_latency{}, 1),
                        both = recipes::dora(p, minimize_latency{}, 1, {.incumbents = {}, .drafts = {.slots = 0}});
      rows.push_back({std::string(to_string(how)), setting, name, response(best_on_paper(p)), response(even), response(second),
                      response(first), response(both), order_gap(both), gain(even, second), gain(first, both), gain(second, both)});
    }
  });
  std::vector<row> spans{{"job", "phase 2 gains on the even split", "on phase 1", "phase 1 gains on phase 2"}};
  for (const mode how : {mode::training, mode::inference, mode::generation}) {
    spans.push_back({std::string(to_string(how))});
    const auto keep = [&](const row& r) { return r[0] == to_string(how); };
    for (std::size_t k = 9; k < 12; ++k) spans.back().push_back(bench::span_of(rows, k, keep).text("%.1f", " %"));
  }
  rows.push_back({"training", "paper, not named", "qwen3-1.7b", "", "", "99.3 s", "109.2 s", "87 s", "", "", "20.3 %", "12.4 %"});
  rows.push_back({"training", "paper, not named", "qwen-omni", "", "", "173.6 s", "182.2 s", "133.1 s", "", "", "26.9 %", "23.3 %"});
  rows.push_back({"generation", "paper, not named", "qwen3-1.7b", "", "", "200 ms", "320 ms", "140 ms", "", "", "56.2 %", "30.0 %"});
  rows.push_back({"generation", "paper, not named", "qwen-omni", "", "", "340 ms", "520 ms", "330 ms", "", "", "36.5 %", "2.9 %"});
  page.add_csv("dora.phases.csv", rows);
  page.add("phases", bench::markdown_table(spans, 1));
}

std::vector<row> top_k(bool quick) {
  const std::vector<int> ks = quick ? std::vector{1, 3} : std::vector{1, 3, 5, 10, 15, 30};
  row headings{"setting", "model"};
  for (const int k : ks) headings.push_back("K " + std::to_string(k));
  std::vector<row> rows{headings};
  for_each_ablation(quick, [&](const std::string& setting, const cluster& devices, const std::string& name) {
    row r{setting, name};
    const planning_graph model = model_of(mode::training, name);
    for (const int k : ks) {
      const problem p = problem_of(model, devices, job_of(mode::training, name));
      r.push_back(response(recipes::dora(p, minimize_latency{}, 1, {.partitioner = {.k = k}, .incumbents = {}, .drafts = {.slots = 0}})));
    }
    rows.push_back(std::move(r));
  });
  if (!quick) rows.push_back({"paper, not named", "qwen-omni", "204.4 s", "", "155.4 s", "144.4 s", "144.0 s", ""});
  return rows;
}

std::vector<row> parts(bool quick) {
  struct variant {
    const char* name;
    recipes::partitioner_options how;
  };
  variant variants[] = {{"K 1", {.k = 1}},   {"K 3", {.k = 3}},     {"K 20", {}},
                        {"K 30", {.k = 30}}, {"blocks of 3 %", {}}, {"two substates only", {}}};
  variants[4].how.rows = {decompose::joined_chains{0.03}, decompose::light_row{}};
  variants[5].how.rows = {decompose::serial_chains{}};
  for (variant& v : variants) v.how.polish.boundaries = polish_boundaries::of_layers;  // as behind the usual rows
  row headings{"setting", "model"};
  for (const variant& v : variants) headings.emplace_back(v.name);
  std::vector<row> rows{headings};
  for (const std::string& setting : settings) {
    const cluster devices = cluster_of(setting);
    for (const std::string& name : models) {
      if (quick && name != "bert-base") continue;
      const planning_graph model = model_of(mode::training, name);
      const problem p = problem_of(model, devices, job_of(mode::training, name));
      row r{setting, name};
      for (const variant& v : variants) r.push_back(response(recipes::dora_partitioner(p, minimize_latency{}, 1, v.how)));
      rows.push_back(std::move(r));
    }
  }
  return rows;
}

std::vector<row> chain_or_graph(bool quick) {
  const planning_graph graph = model_of(mode::training, "qwen-omni"), chain = chain_view(graph);
  std::vector<row> rows{{"setting", "job", "chain", "graph", "less"}};
  for (const std::string& setting : settings) {
    if (quick && setting != "edge-cluster") continue;
    const cluster devices = cluster_of(setting);
    for (const auto& [how, batch] : {std::pair{mode::inference, 1}, {mode::inference, 2}, {mode::training, 32}}) {
      job wanted = job_of(how, "qwen-omni");
      wanted.batch = batch;
      const plan_result in_row = recipes::dora(problem_of(chain, devices, wanted), minimize_latency{}, 1);
      const plan_result as_is = recipes::dora(problem_of(graph, devices, wanted), minimize_latency{}, 1);
      const std::string less =
          in_row.plans.empty() || as_is.plans.empty()
              ? "-"
              : number("%.1f %%", 100 * (1 - as_is.plans.front().evaluation.latency / in_row.plans.front().evaluation.latency));
      rows.push_back({setting, std::string(to_string(how)) + " of " + std::to_string(batch), response(in_row), response(as_is), less});
    }
  }
  return rows;
}

/// Two laptops and two phones on 650 Mbit/s: a plan for private wires there, the same plan in the air, the best for the air.
std::vector<row> contention(bool quick) {
  const std::vector<device> home{zoo::device("rtx4050", "laptop0"), zoo::device("rtx4050", "laptop1"),
                                 zoo::device("snapdragon-8-elite", "phone0"), zoo::device("snapdragon-8-elite", "phone1")};
  const cluster air("two laptops, two phones", home, shared_medium{650_Mbit_per_s, 2_ms});
  const cluster wires = uncontended(air);
  std::vector<row> rows{
      {"job", "model", "planner", "private wires", "in the air", "slower", "in the air, scheduled", "best for the air", "gain"}};
  for (const mode how : {mode::training, mode::inference, mode::generation}) {
    for (const char* name : {"qwen3-0.6b", "qwen3-1.7b"}) {
      if (quick && how != mode::training) continue;
      const planning_graph model = model_of(how, name);
      const job wanted = job_of(how, name);
      const problem in_air = problem_of(model, air, wanted), on_wires = problem_of(model, wires, wanted);
      const plan_result best = recipes::dora(in_air, minimize_latency{}, 1, {.partitioner = {.k = 30}, .drafts = {.slots = 0}});
      for (const bool asteroid : {true, false}) {
        const plan_result ideal =
            asteroid ? recipes::asteroid(on_wires, minimize_latency{}) : recipes::dora_partitioner(on_wires, minimize_latency{}, 1);
        const plan_result real = judged_on(in_air, ideal);
        const plan_result scheduled = real.plans.empty() ? real : schedule::refine(in_air, minimize_latency{}, plans_of(real.plans), 1);
        std::string slower = "-", gain = "-";
        if (!real.plans.empty() && !best.plans.empty()) {
          const seconds t = real.plans.front().evaluation.response();
          slower = number("%.2f x", t / ideal.plans.front().evaluation.response());
          gain = number("%.2f x", t / best.plans.front().evaluation.response());
        }
        rows.push_back({std::string(to_string(how)), name, asteroid ? "asteroid" : "dora, phase 1", response(ideal), response(real), slower,
                        response(scheduled), response(best), gain});
      }
    }
  }
  if (!quick) {
    rows.push_back({"paper: training", "qwen3-0.6b", "asteroid", "12.3 s", "28.4 s", "2.3 x", "", "10.4 s", "2.7 x"});
    rows.push_back({"paper: training", "qwen3-1.7b", "asteroid", "15.5 s", "34.3 s", "2.2 x", "", "13.2 s", "2.6 x"});
    rows.push_back({"paper: generation", "qwen3-0.6b", "asteroid", "800 ms", "1.8 s", "2.3 x", "", "600 ms", "3.0 x"});
    rows.push_back({"paper: generation", "qwen3-1.7b", "asteroid", "900 ms", "2.2 s", "2.4 x", "", "800 ms", "2.8 x"});
  }
  return rows;
}

/// One device alone generates for one sequence (Figs 1b and 3a).
std::vector<row> alone() {
  struct reported {
    const char *kind, *paper;
  };
  std::vector<row> rows{{"device", "the paper's, Qwen3-0.6B", "Qwen3-0.6B", "its energy", "without a cache", "its energy", "Qwen3-1.7B",
                         "its energy", "without a cache", "its energy"}};
  for (const reported& d : {reported{"snapdragon-8-elite", "190 ms, 200 ms"},
                            {"rtx4050", "170 ms"},
                            {"rtx4060ti", "150 ms"},
                            {"v100", "110 ms"},
                            {"a40", "60 ms"}}) {
    row r{d.kind, d.paper};
    for (const char* name : {"qwen3-0.6b", "qwen3-1.7b"}) {
      for (const bool cached : {true, false}) {
        job wanted = cached ? job_of(mode::generation, name) : job_without_cache();
        wanted.batch = 1;
        const planning_graph model = model_of(wanted.workload.mode, name);
        const answer a(recipes::on_device(problem_of(model, cluster("alone", zoo::device(d.kind, "one")), wanted), minimize_latency{}, 1));
        r.push_back(readable(seconds(a.time_s())));
        r.push_back(number("%.2f J", a.energy_J() / wanted.workload.tokens));
      }
    }
    rows.push_back(std::move(r));
  }
  return rows;
}

/// How much of the network a training iteration uses without and with phase 2 (Fig 13).
std::vector<row> network_use(bool quick) {
  std::vector<row> rows{{"model", "phases", "an iteration", "moved", "on average", "the busiest wire's use"}};
  const cluster devices = cluster_of("traffic-monitor");
  for (const char* name : {"qwen3-1.7b", "qwen-omni"}) {
    if (quick && std::string(name) == "qwen-omni") continue;
    const planning_graph model = model_of(mode::training, name);
    const problem p = problem_of(model, devices, job_of(mode::training, name));
    const auto add = [&](const char* phases, const plan_result& found) {
      const auto& [best, e] = found.plans.at(0);
      const tasks::task_graph g = tasks::expand(best, model, devices, p.cost);
      const double iteration_s = e.latency.value();
      double moved = 0;
      std::vector<double> busy_s(devices.network().resources().size(), 0);
      for (const tasks::transfer& t : g.transfers) {
        moved += t.volume_bytes;
        for (const resource_use& u : g.routes[t.route].via)
          busy_s[u.resource.index()] += t.volume_bytes * u.weight / devices.network()[u.resource].capacity.value();
      }
      rows.push_back({name, phases, readable(seconds(iteration_s)), readable(bytes(moved)),
                      number("%.3g Mbit/s", 8e-6 * moved / iteration_s),
                      number("%.1f %%", 100 * *std::ranges::max_element(busy_s) / iteration_s)});
    };
    add("1", recipes::dora_partitioner(p, minimize_latency{}, 1));
    add("1 + 2", recipes::dora(p, minimize_latency{}, 1, {.incumbents = {}, .drafts = {.slots = 0}}));
  }
  return rows;
}

/// What lambda buys: energy + lambda x time, Qwen3-1.7B in the traffic monitor (Fig 15).
std::vector<row> tradeoffs(bool quick) {
  std::vector<row> rows{{"lambda [J/s]", "training: an iteration", "its energy", "watts", "generation: a token", "its energy", "watts",
                         "without a cache", "its energy", "watts"}};
  const cluster devices = cluster_of("traffic-monitor");
  for (const double lambda : quick ? std::vector{1.0} : std::vector{0.1, 0.5, 1.0, 3.0, 10.0, 100.0, 1000.0}) {
    row r{number("%g", lambda)};
    for (const mode how : {mode::training, mode::generation, mode::inference}) {
      const planning_graph model = model_of(how, "qwen3-1.7b");
      const job wanted = how == mode::inference ? job_without_cache() : job_of(how, "qwen3-1.7b");
      const answer a(recipes::dora(problem_of(model, devices, wanted), keep_qoe{seconds(0), lambda}, 1));
      const double energy_J = a.energy_J() / (how == mode::generation ? wanted.workload.tokens : 1);
      r.push_back(readable(seconds(a.time_s())));
      r.push_back(number("%.4g J", energy_J));
      r.push_back(number("%.3g", energy_J / a.time_s()));
    }
    rows.push_back(std::move(r));
  }
  if (!quick)
    rows.push_back({"paper, 0.1 to 1", "150 to 250 s", "80 to 180 J", "", "4 to 10 s", "5 to 15 J", "", "4 to 10 s", "5 to 15 J", ""});
  return rows;
}

/// What recomputation and sharded states buy in training; "infeasible" is proven of all plans.
std::vector<row> memory_savers_buy(bool quick) {
  std::vector<row> rows{{"setting", "model", "optimizer", "without", "recompute", "shard_state", "both", "faster"}};
  for (const std::string& setting : settings) {
    for (const std::string& name : models) {
      if (quick && (name != "bert-base" || setting != "smart-home-2")) continue;
      const planning_graph model = model_of(mode::training, name);
      const cluster devices = cluster_of(setting);
      for (const bool adam : {true, false}) {
        if (!adam && name != "qwen-omni") continue;
        job wanted = job_of(mode::training, name);
        wanted.workload.optimizer_factor = adam ? 2 : 0;
        std::vector<plan_result> found;
        row r{setting, name, adam ? "Adam" : "SGD"};
        for (const memory_savers use : {memory_savers{}, {.recompute = true}, {.shard_state = true}, {true, true}}) {
          wanted.memory_savers = use;
          found.push_back(recipes::dora(problem_of(model, devices, wanted), minimize_latency{}, 1));
          const answer a(found.back());
          r.push_back(a.best ? readable(seconds(a.time_s())) : std::string(to_string(found.back().status.result)));
        }
        const answer before(found.front()), after(found.back());
        r.push_back(before.best && after.best ? number("%.2f x", before.time_s() / after.time_s()) : "-");
        rows.push_back(std::move(r));
      }
    }
  }
  return rows;
}

/// How long planners think (Table 4): medians of what they say themselves.
std::vector<row> planning_times(bool quick) {
  struct reported {
    const char *setting, *model, *metis, *asteroid, *dora;
  };
  const reported paper[] = {
      {"smart-home-2", "bert-base", "320 ms", "170 ms", "120 ms"},     {"smart-home-2", "qwen3-1.7b", "850 ms", "500 ms", "200 ms"},
      {"smart-home-2", "qwen-omni", "1.383 s", "1.14 s", "790 ms"},    {"traffic-monitor", "bert-base", "280 ms", "130 ms", "110 ms"},
      {"traffic-monitor", "qwen3-1.7b", "780 ms", "390 ms", "170 ms"}, {"traffic-monitor", "qwen-omni", "1.25 s", "1.02 s", "720 ms"}};
  std::vector<row> rows{{"setting", "model", "metis", "paper", "asteroid", "paper", "dora", "paper", "dora, phase 1", "dora-printed"}};
  for (const reported& r : paper) {
    if (quick && std::string(r.model) != "bert-base") continue;
    const planning_graph model = model_of(mode::training, r.model);
    const cluster devices = cluster_of(r.setting);
    const problem p = problem_of(model, devices, job_of(mode::training, r.model));
    const auto median_s = [&](auto&& planner) {
      std::vector<double> times;
      for (int i = 0; i < (quick ? 1 : 7); ++i) times.push_back(planner().elapsed.value());
      return readable(seconds(bench::median(times)));
    };
    rows.push_back({r.setting, r.model, median_s([&] { return recipes::metis(p, minimize_latency{}); }), r.metis,
                    median_s([&] { return recipes::asteroid(p, minimize_latency{}); }), r.asteroid,
                    median_s([&] { return recipes::dora(p, minimize_latency{}, 1); }), r.dora,
                    median_s([&] { return recipes::dora_partitioner(p, minimize_latency{}, 1); }),
                    median_s([&] { return recipes::dora_as_printed(p, minimize_latency{}); })});
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::sections page(argc, argv);
  const bool quick = page.quick();
  std::vector<comparison> all;
  for (const mode how : {mode::training, mode::inference, mode::generation}) {
    std::vector<comparison> cases;
    for (const std::string& setting : settings) {
      for (const std::string& model : models) {
        if (!quick || (model == "bert-base" && setting == "smart-home-2")) cases.push_back(compare(how, setting, model));
      }
    }
    const std::string name(to_string(how));
    page.add_csv("dora." + name + ".csv", times_table(cases));
    const char* title = how == mode::training    ? "Training: time of an iteration of 32 samples"
                        : how == mode::inference ? "Inference: time of 8 samples"
                                                 : "Generation: time between tokens of 4 sequences";
    page.add_image("dora." + name + ".svg",
                   relative_image({.title = title, .note = "As a multiple of Dora's, judged under contention. OOM: no plan fits."}, cases,
                                  &comparison::fastest, "OOM", time_of, [](const comparison& c) { return c.setting; }));
    page.add_csv("dora.energy-" + name + ".csv", energy_table(cases));
    all.insert(all.end(), cases.begin(), cases.end());
  }
  std::vector<row> faster = headline(all);
  page.add_csv("dora.headline.csv", faster);
  std::erase_if(faster, [](const row& r) { return r[1] == "all"; });
  for (row& r : faster) r.erase(r.begin() + 1);
  page.add("headline", bench::markdown_table(faster, 1));
  page.add("quoted", quoted(all));
  page.add_csv("dora.slowed.csv", slower_models(all));
  const auto in_seconds = [](double s) { return readable(seconds(s)); };
  const auto in_joules = [](double j) { return readable(joules(j)); };
  page.add_csv("dora.losses.csv", losses(all, &comparison::fastest, time_of, in_seconds));
  page.add_csv("dora.searched-harder.csv", searched_harder(all));
  std::vector<row> saved = energy_headline(all, quick);
  page.add_csv("dora.energy.csv", saved);
  std::erase_if(saved, [](const row& r) { return r[2] == "-"; });
  for (row& r : saved) r = {r[0], r[1], r[2], r[3], r[5]};
  page.add("energy", bench::markdown_table(saved));
  page.add_csv("dora.energy-losses.csv", losses(all, &comparison::in_time, energy_of, in_joules));
  std::erase_if(all, [](const comparison& c) { return c.how == mode::inference; });  // the paper's: training, and serving by token
  page.add_image("dora.energy.svg", relative_image({.title = "Energy within 1 / 0.8 of the best baseline's time",
                                                    .note = "As a multiple of Dora's. x: out of memory, or late."},
                                                   all, &comparison::in_time, "x", energy_of,
                                                   [](const comparison& c) { return std::string(to_string(c.how)) + ", " + c.setting; }));
  page.add_csv("dora.parts.csv", parts(quick));
  page.add_csv("dora.chain-or-graph.csv", chain_or_graph(quick));
  add_phases(page);
  page.add_csv("dora.top-k.csv", top_k(quick));
  page.add_csv("dora.contention.csv", contention(quick));
  page.add_csv("dora.alone.csv", alone());
  page.add_csv("dora.network-use.csv", network_use(quick));
  page.add_csv("dora.tradeoffs.csv", tradeoffs(quick));
  page.add_csv("dora.savers.csv", memory_savers_buy(quick));
  bench::add_quality(page);
  bench::add_order(page);
  bench::add_deadlines(page);
  bench::add_dynamics(page);
  page.add_csv("dora.planning.timed.csv", planning_times(quick));
}
