// SPDX-License-Identifier: BSL-1.0
// The tables and figures of Asteroid's evaluation, ours beside the paper's: the sections of docs/reproduction/asteroid.md (update.py).

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/estimate/estimate.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/plan_on_view.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/tasks/expand.hpp>

#include "reproduce/asteroid_faults.hpp"
#include "reproduce/asteroid_motivation.hpp"
#include "reproduce/asteroid_setting.hpp"
#include "reproduce/plot_svg.hpp"
#include "reproduce/sections.hpp"

using namespace hetplan;
using bench::edge_costs, bench::environment, bench::environments, bench::number, bench::on_a_switch, bench::planners, bench::edge_problem,
    bench::row, bench::sections, bench::speeds, bench::stages_of, bench::trained_model;

namespace {

/// 137.4; nothing fits: what binds.
std::string rate_text(const plan_result& r) {
  const auto rate = bench::rate_of(r);
  if (rate) return number("%.4g", *rate);
  return r.binding && r.binding->kind == limit_kind::memory ? "OOM" : "-";
}
std::string times(std::optional<double> one, std::optional<double> other) { return one && other ? number("%.1f", *one / *other) : "-"; }

/// The paper's speeds for a model; ResNet-50's parts for what Table 1 does not have.
speeds as_in_table_1(const std::vector<trained_model>& models, const trained_model& m) { return {m, models[2]}; }

void add_speeds(const sections& page, const std::vector<trained_model>& models) {
  std::vector<row> rows{{"model", "device", "the paper's Table 1, samples/s", "data sheet under our roofline", "part"}};
  for (const trained_model& m : models) {
    for (const char* kind : {"jetson-nano", "jetson-tx2", "jetson-nx"}) {
      const std::string k = kind;
      const double measured = k == "jetson-nano" ? m.nano_rate : k == "jetson-tx2" ? m.tx2_rate : 0;
      rows.push_back({m.title, k.substr(7), measured > 0 ? number("%.4g", measured) : "-", number("%.4g", bench::data_sheet_rate(m, k)),
                      number("%.2f %%", 100 * as_in_table_1(models, m).part(k))});
    }
  }
  page.add_csv("asteroid.speeds.csv", rows);
}

/// Table 4: on-device, DP, PP; what Asteroid is faster by.
void add_speedups(const sections& page, const std::vector<trained_model>& models) {
  const std::map<std::string, row> paper{{"efficientnet-b1", {"4.4", "2.1", "", "2.8", "3.0", "4.8", "", "9.7", "3.7", "2.1", "", "1.4"}},
                                         {"mobilenetv2", {"4.5", "1.5", "", "3.5", "3.2", "2.3", "", "11.2", "3.8", "1.2", "", "1.3"}},
                                         {"resnet50", {"3.4", "3.6", "", "5.8", "1.5", "6.1", "", "12.2", "3.7", "2.9", "", "3.1"}},
                                         {"bert-small", {"3.5", "6.4", "", "1", "1.3", "6.8", "", "1", "3.9", "4.2", "", "1.3"}}};
  std::vector<row> rows{{"model", "mini-batch, speeds", "A 100: device", "DP, ring", "DP, server", "PP", "B 100: device", "DP, ring",
                         "DP, server", "PP", "B 1000: device", "DP, ring", "DP, server", "PP"}};
  const auto add = [&](const trained_model& m, int batch, const speeds& fast, const std::string& name) {
    row r{m.title, std::to_string(batch) + name};
    for (const auto& [e, mbit] : {std::pair{environments[0], 100.0}, {environments[1], 100.0}, {environments[1], 1000.0}}) {
      const cluster c = on_a_switch(e, mbit);
      const edge_problem p{m.graph, c, fast.on(c), trained_model::job(batch, m.microbatch_sizes)};
      const auto own = bench::rate_of(planners[bench::asteroid_at].ask(p));
      r.push_back(times(own, bench::rate_of(planners[bench::on_device_at].ask(p))));
      r.push_back(times(own, bench::rate_of(planners[bench::dp_at].ask(p))));
      r.push_back(times(own, bench::rate_of(bench::through_a_server(p))));
      r.push_back(times(own, bench::rate_of(planners[bench::pp_at].ask(p))));
    }
    rows.push_back(std::move(r));
  };
  for (const trained_model& m : models) {
    if (page.quick() && m.name != "mobilenetv2") continue;
    row given{m.title, "the paper's"};
    for (const std::string& cell : paper.at(m.name)) given.push_back(cell);
    rows.push_back(std::move(given));
    const speeds slow = as_in_table_1(models, m);
    add(m, m.batch, slow, "");
    add(m, 2 * m.batch, slow, "");
    add(m, m.batch / 4, slow, "");
    if (const auto other = bench::with_published_strides(m)) add(*other, m.batch, as_in_table_1(models, *other), ", published strides");
    add(m, m.batch, speeds(), ", data sheets");
  }
  page.add_csv("asteroid.speedups.csv", rows);
  std::erase_if(rows, [&](const row& r) {
    const auto is_own = [&](const trained_model& m) { return r[0] == m.title && r[1] == std::to_string(m.batch); };
    return r[0] != "model" && r[1] != "the paper's" && std::ranges::none_of(models, is_own);
  });
  page.add("speedups", bench::markdown_table(rows));
}

/// One bandwidth: all environments, models and planners.
struct throughput {
  std::vector<row> rows;
  std::vector<bench::bar_panel> panels;                     ///< by model
  std::map<std::string, std::pair<double, double>> faster;  ///< by baseline: the least and the most in B and C
  std::map<std::string, int> out_of_memory;
};
throughput measure_throughput(const sections& page, const std::vector<trained_model>& models, double mbit, bool slow) {
  throughput t;
  row head{"model", "env."};
  for (const auto& p : planners) head.emplace_back(p.name);
  t.rows.push_back(head);
  for (const trained_model& m : models) {
    if (page.quick() && m.name != "mobilenetv2") continue;
    t.panels.push_back({m.title, {}});
    const speeds fast = slow ? as_in_table_1(models, m) : speeds();
    for (const environment& e : environments) {
      if (page.quick() && e.name != "D") continue;
      const cluster c = on_a_switch(e, mbit);
      const edge_problem p{m.graph, c, fast.on(c), m.job()};
      row r{m.title, e.name};
      bench::bar_group bars{e.name, {}};
      std::vector<plan_result> all;
      for (const auto& planner : planners) {
        all.push_back(planner.ask(p));
        r.push_back(rate_text(all.back()));
        bars.values.push_back(bench::rate_of(all.back()));
        if (r.back() == "OOM") ++t.out_of_memory[planner.name];
      }
      const auto own = bench::rate_of(all[bench::asteroid_at]);
      for (std::size_t i = 0; own && i < planners.size() && (e.name == "B" || e.name == "C"); ++i) {
        const auto other = bench::rate_of(all[i]);
        if (!other) continue;
        const auto [it, fresh] = t.faster.try_emplace(planners[i].name, *own / *other, *own / *other);
        it->second = {std::min(it->second.first, *own / *other), std::max(it->second.second, *own / *other)};
      }
      t.rows.push_back(std::move(r));
      t.panels.back().groups.push_back(std::move(bars));
    }
  }
  return t;
}

void add_throughput(const sections& page, const std::vector<trained_model>& models) {
  std::vector<bench::plot_series> series;
  for (std::size_t i = 0; i < planners.size(); ++i)
    series.push_back({planners[i].name, i == bench::asteroid_at ? bench::plot_own : bench::plot_color(i)});
  std::vector<row> gains{
      {"B and C: Asteroid's rate over that of", "100 Mbit/s", "1000 Mbit/s", "100 Mbit/s, data sheets", "1000 Mbit/s, data sheets"}};
  std::vector<throughput> all;
  for (const bool slow : {true, false}) {
    for (const int mbit : {100, 1000}) {
      all.push_back(measure_throughput(page, models, mbit, slow));
      const throughput& t = all.back();
      const std::string name = "throughput-" + std::to_string(mbit) + (slow ? "" : "-data-sheet");
      page.add_csv("asteroid." + name + ".csv", t.rows);
      if (!slow) continue;
      page.add_image("reproduction.asteroid." + name + ".svg",
                     bench::bars_svg({.title = "Samples per second, " + std::to_string(mbit) + " Mbit/s",
                                      .note = "Environments A to D; devices as fast as in the paper's Table 1; simulated on a switch",
                                      .unit = ""},
                                     series, t.panels));
    }
  }
  for (const auto& p : planners) {
    const std::string planner = p.name;
    if (planner == planners[bench::asteroid_at].name) continue;
    row r{planner};
    for (const throughput& t : all) {
      const auto it = t.faster.find(planner);
      r.push_back(it == t.faster.end() ? "-" : number("%.2f", it->second.first) + " to " + number("%.2f", it->second.second));
    }
    gains.push_back(std::move(r));
  }
  page.add_csv("asteroid.gains.csv", gains);
  for (row& r : gains) r.resize(3);
  page.add("gains", bench::markdown_table(gains, 1));
}

/// What Asteroid chose, and where its estimate and the simulation part.
void add_plans(const sections& page, const std::vector<trained_model>& models) {
  std::vector<row> rows{
      {"model", "env.", "planner", "layers:devices", "microbatches", "its estimate", "simulated on its view", "simulated"}};
  for (const trained_model& m : models) {
    if (page.quick() && m.name != "mobilenetv2") continue;
    const planning_graph chain = chain_view(m.graph);
    for (const auto& [e, mbit] : {std::pair{environments[0], 100.0}, {environments[1], 100.0}, {environments[1], 1000.0}}) {
      const cluster c = on_a_switch(e, mbit);
      const edge_problem p{m.graph, c, as_in_table_1(models, m).on(c), m.job()};
      const auto add = [&](const char* planner, const plan_result& r, const planning_graph& model, const cluster& view) {
        if (r.plans.empty()) return;
        const auto& [x, predicted] = r.plans.front();
        rows.push_back({m.title, e.name + " " + number("%.0f", mbit), planner, stages_of(x, c),
                        std::to_string(x.microbatches) + " x " + std::to_string(x.microbatch_size),
                        readable(estimate(x, model, view, p.cost).latency), readable(judge(x, model, view, p.cost).evaluation.latency),
                        readable(predicted.latency)});
      };
      add("Asteroid", recipes::asteroid(p, minimize_latency{}, 1), chain, uncontended(c, duplex::half));
      add("Asteroid, full duplex", bench::asteroid_on_full_duplex(p), chain, uncontended(c));
      add("Dora", recipes::dora(p, minimize_latency{}, 1, {.drafts = {.slots = 0}}), m.graph,
          c);  // the estimate knows one stage per device
    }
  }
  page.add_csv("asteroid.plans.csv", rows);
}

/// What the recipe is faster by than with full-duplex wires in its view.
void add_duplex(const sections& page, const std::vector<trained_model>& models) {
  std::vector<row> rows{{"model"}};
  for (const trained_model& m : models) {
    if (page.quick() && m.name != "mobilenetv2") continue;
    row r{m.title};
    for (const double mbit : {100.0, 1000.0}) {
      for (const environment& e : environments) {
        if (rows.size() == 1) rows[0].push_back(e.name + number(" %.0f", mbit));
        const cluster c = on_a_switch(e, mbit);
        const edge_problem p{m.graph, c, as_in_table_1(models, m).on(c), m.job()};
        const auto own = bench::rate_of(recipes::asteroid(p, minimize_latency{}, 1)),
                   full = bench::rate_of(bench::asteroid_on_full_duplex(p));
        r.push_back(own && full ? number("%.2f", *own / *full) : "-");
      }
    }
    rows.push_back(std::move(r));
  }
  page.add_csv("asteroid.duplex.csv", rows);
}

/// Table 2: five Nanos.
void add_volume(const sections& page, const std::vector<trained_model>& models) {
  const std::map<std::string, std::pair<double, double>> paper{
      {"efficientnet-b1", {171.4, 76.2}}, {"mobilenetv2", {98.0, 52.1}}, {"resnet50", {576.2, 212.4}}};
  std::vector<row> rows{{"model", "mini-batch", "HDP: workers", "exchange, MB", "tensors, MB", "HDP in all", "HPP: plan", "reductions, MB",
                         "tensors, MB", "HPP in all", "HDP / HPP", "the paper's HDP", "its HPP", "HDP / HPP"}};
  const cluster c = on_a_switch(environments[0], 100), roomy = without_memory_limits(c);  // HetPipe's plan counts though it may not fit
  const auto add = [&](const trained_model& m, int batch, const std::string& name) {
    const auto [hdp_mb, hpp_mb] = paper.at(m.name);
    const job wanted = trained_model::job(batch, m.microbatch_sizes);
    const edge_costs slow = as_in_table_1(models, m).on(c);
    const auto volume = [&](const plan& x) {  // reductions and exchanges, tensors
      std::pair<double, double> mb{0, 0};
      const tasks::task_graph g = tasks::expand(x, m.graph, c, slow, plain_memory{});
      for (const tasks::transfer& t : g.transfers) (t.kind == transfer_kind::sync ? mb.first : mb.second) += t.volume_bytes / 1e6;
      return mb;
    };
    const plan hdp = recipes::hetpipe(edge_problem{m.graph, roomy, slow, wanted}, minimize_latency{}, 1).plans.at(0).plan;
    const plan hpp = recipes::asteroid(edge_problem{m.graph, c, slow, wanted}, minimize_latency{}, 1).plans.at(0).plan;
    const auto a = volume(hdp), b = volume(hpp);
    const double both = a.first + a.second, own = b.first + b.second;
    rows.push_back({m.title, std::to_string(batch) + name, std::to_string(hdp.pipeline_count()), number("%.1f", a.first),
                    number("%.1f", a.second), number("%.1f", both), stages_of(hpp, c), number("%.1f", b.first), number("%.1f", b.second),
                    number("%.1f", own), number("%.1f", both / own), number("%.1f", hdp_mb), number("%.1f", hpp_mb),
                    number("%.1f", hdp_mb / hpp_mb)});
  };
  for (const trained_model& m : models) {
    if (!paper.contains(m.name) || (page.quick() && m.name != "mobilenetv2")) continue;
    add(m, m.batch, "");
    add(m, m.batch / 4, "");
    if (const auto other = bench::with_published_strides(m)) add(*other, m.batch, ", published strides");
  }
  page.add_csv("asteroid.volume.csv", rows);
  std::vector<row> sums{{"model", "HDP, MB: paper", "ours", "HPP, MB: paper", "ours", "HDP / HPP: paper", "ours"}};
  for (const row& r : rows) {
    if (std::ranges::any_of(models, [&](const trained_model& m) { return r[0] == m.title && r[1] == std::to_string(m.batch); }))
      sums.push_back({r[0], r[11], r[5], r[12], r[9], r[13], r[10]});
  }
  page.add("volume", bench::markdown_table(sums, 1));
}

struct warmup_policy {
  warmup_rule rule;
  const char* name;
};
constexpr std::array<warmup_policy, 4> policies{{{warmup_rule::everything, "M"},
                                                 {warmup_rule::one_more, "2(P-p)+1"},
                                                 {warmup_rule::depth, "P-p"},
                                                 {warmup_rule::hide_communication, "2(P-p)-1"}}};

/// Equal stages on equal devices with wires of their own; a transfer takes `ratio` of a forward, a backward takes two forwards.
std::pair<double, int> uniform_pipeline(int stages, int microbatches, double ratio, warmup_rule rule) {
  planning_graph_builder b("uniform");
  plan p{.microbatch_size = 1, .microbatches = microbatches};
  std::vector<device> devices;
  for (int i = 0; i < stages; ++i) {
    const std::string name = std::to_string(i);
    b.add_layer({.name = "l" + name, .forward_flops = flops(1e9), .activation = bytes(1)});
    if (i > 0) b.add_edge(layer_id(static_cast<std::size_t>(i - 1)), layer_id(static_cast<std::size_t>(i)), bytes(ratio * 1e6));
    devices.push_back({.name = "d" + name, .memory = bytes(1e9), .compute = flops_per_second(1e9)});
    p.stages.push_back(
        {.name = "s" + name, .layers = {layer_id(static_cast<std::size_t>(i))}, .devices = {{device_id(static_cast<std::size_t>(i)), 1}}});
  }
  const planning_graph model = std::move(b).build();
  const cluster c("uniform", devices, mesh{bytes_per_second(1e6)});
  set_warmup(p, model, rule);
  const evaluation e = judge(p, model, c, roofline{}).evaluation;
  return {e.latency.value(), static_cast<int>(e.peak_memory().value() + 0.5)};
}

/// Section 5.4 (b).
void add_warmups(const sections& page, const std::vector<trained_model>& models) {
  std::vector<row> uniform{
      {"transfer / forward", "microbatches", "M", "2(P-p)+1", "P-p", "2(P-p)-1", "in flight: M", "2(P-p)+1", "P-p", "2(P-p)-1"}};
  std::vector<bench::bar_panel> panels;
  for (const double ratio : {0.1, 0.5, 1.0, 1.5}) {
    panels.push_back({"A transfer takes " + number("%g", ratio) + " of a forward", {}});
    for (const int microbatches : {4, 8, 16}) {
      row r{number("%g", ratio), std::to_string(microbatches)}, held;
      bench::bar_group bars{"M = " + std::to_string(microbatches), {}};
      const double all = uniform_pipeline(3, microbatches, ratio, warmup_rule::everything).first;
      for (const warmup_policy& p : policies) {
        const auto [latency_s, in_flight] = uniform_pipeline(3, microbatches, ratio, p.rule);
        r.push_back(number("%+.1f %%", 100 * (latency_s / all - 1) + 1e-9));
        held.push_back(std::to_string(in_flight));
        bars.values.emplace_back(latency_s / all);
      }
      r.insert(r.end(), held.begin(), held.end());
      uniform.push_back(std::move(r));
      panels.back().groups.push_back(std::move(bars));
    }
  }
  page.add_csv("asteroid.warmup-uniform.csv", uniform);
  std::vector<bench::plot_series> series;
  for (std::size_t i = 0; i < policies.size(); ++i) series.push_back({policies[i].name, i == 3 ? bench::plot_own : bench::plot_color(i)});
  page.add_image("reproduction.asteroid.warmup.svg",
                 bench::bars_svg({.title = "What the warm-up costs",
                                  .note = "Time of an iteration over that with all M microbatches let in at once; three equal stages",
                                  .unit = "",
                                  .logarithmic = false},
                                 series, panels));

  const trained_model& m = models.front();
  const cluster c = on_a_switch({"three", {"jetson-tx2", "jetson-tx2", "jetson-tx2"}}, 100);
  std::vector<row> rows{{"policy", "an iteration", "samples/s", "peak memory, stage 1", "stage 2", "stage 3"}};
  const edge_problem p{m.graph, c, as_in_table_1(models, m).on(c), trained_model::job(m.batch, {64})};
  plan three = recipes::edgeshard(p, minimize_latency{}, 1).plans.at(0).plan;
  const auto tell = [&](const char* name) {
    const evaluation e = judge(three, m.graph, c, p.cost).evaluation;
    row r{name, readable(e.latency), number("%.4g", m.batch / e.latency.value())};
    for (const stage& s : three.stages) r.push_back(readable(e.devices[s.devices.front().device.index()].peak_memory));
    rows.push_back(std::move(r));
  };
  for (const warmup_policy& w : policies) {
    set_warmup(three, m.graph, w.rule);
    tell(w.name);
  }
  three.schedule = {.kind = schedule_kind::gpipe};
  tell("all forwards first");
  page.add_csv("asteroid.warmup-efficientnet.csv", rows);
}

/// Each device of a stage takes as many samples as any other of it.
plan with_even_shares(plan p) {
  for (stage& s : p.stages) {
    const int n = static_cast<int>(s.devices.size()), all = p.size_of(s);
    for (int i = 0; i < n; ++i) s.devices[static_cast<std::size_t>(i)].samples = all / n + (i < all % n ? 1 : 0);
  }
  return p;
}

/// Fig 15 (a), Env. C.
void add_ablation(const sections& page, const std::vector<trained_model>& models) {
  std::vector<row> rows{
      {"model", "Mbit/s", "naive", "+ bandwidth", "+ inter-stage", "+ intra-stage = Asteroid", "inter / naive", "Asteroid / inter"}};
  for (std::size_t i = page.quick() ? 1 : 0; i < 2; ++i) {
    const trained_model& m = models[i];
    for (const double mbit : {100.0, 1000.0}) {
      const cluster c = on_a_switch(environments[2], mbit);
      const edge_problem p{m.graph, c, as_in_table_1(models, m).on(c), m.job()};
      const planning_graph chain = chain_view(m.graph);
      const auto judged = [&](const cluster& view) {
        return recipes::judge_choice(p, minimize_latency{},
                                     with_even_shares(recipes::choose_on_view(p, "part", chain, view, recipes::asteroid_search)));
      };
      const cluster equal = homogeneous(without_memory_limits(c));
      const plan_result naive = judged(without_network_costs(equal)), wired = judged(uncontended(equal, duplex::half)),
                        inter = judged(uncontended(without_memory_limits(c), duplex::half)),
                        full = recipes::asteroid(p, minimize_latency{}, 1);
      rows.push_back({m.title, number("%.0f", mbit), rate_text(naive), rate_text(wired), rate_text(inter), rate_text(full),
                      times(bench::rate_of(inter), bench::rate_of(naive)), times(bench::rate_of(full), bench::rate_of(inter))});
    }
  }
  page.add_csv("asteroid.ablation.csv", rows);
}

/// Fig 18: 32 samples of a microbatch for every Nano, 16 microbatches.
void add_scalability(const sections& page, const std::vector<trained_model>& models) {
  std::vector<row> rows{{"model", "Nanos", "DP, ring", "DP, server", "PP", "Asteroid", "Asteroid / one Nano", "Asteroid / DP, ring",
                         "/ DP, server", "Asteroid's plan"}};
  std::vector<bench::curve_panel> panels;
  for (std::size_t i = page.quick() ? 1 : 0; i < 2; ++i) {
    const trained_model& m = models[i];
    bench::curve_panel panel{m.title, "Jetson Nanos", std::vector<std::vector<std::pair<double, double>>>(5)};
    double alone = 0;
    for (int n = 1; n <= (page.quick() ? 2 : 8); ++n) {
      const cluster c = on_a_switch(bench::nanos(n), 100);
      const edge_problem p{m.graph, c, as_in_table_1(models, m).on(c), trained_model::job(512 * n, {32 * n})};
      const std::array<plan_result, 4> all{planners[bench::dp_at].ask(p), bench::through_a_server(p), planners[bench::pp_at].ask(p),
                                           planners[bench::asteroid_at].ask(p)};
      row r{m.title, std::to_string(n)};
      for (std::size_t k = 0; k < all.size(); ++k) {
        r.push_back(rate_text(all[k]));
        if (const auto rate = bench::rate_of(all[k])) panel.curves[k].emplace_back(n, *rate);
      }
      const auto own = bench::rate_of(all[3]);
      if (n == 1) alone = own.value_or(0);
      panel.curves[4].emplace_back(n, n * alone);
      r.push_back(times(own, alone));
      r.push_back(times(own, bench::rate_of(all[0])));
      r.push_back(times(own, bench::rate_of(all[1])));
      r.push_back(all[3].plans.empty() ? "-" : stages_of(all[3].plans.front().plan, c));
      rows.push_back(std::move(r));
    }
    panels.push_back(std::move(panel));
  }
  page.add_csv("asteroid.scalability.csv", rows);
  std::vector<row> last{{"model", "Nanos", "Asteroid / one Nano", "/ DP, ring", "/ DP, server"}};
  for (std::size_t r = 1; r < rows.size(); ++r) {
    if (r + 1 == rows.size() || rows[r + 1][0] != rows[r][0]) last.push_back({rows[r][0], rows[r][1], rows[r][6], rows[r][7], rows[r][8]});
  }
  page.add("scalability", bench::markdown_table(last, 1));
  page.add_image(
      "reproduction.asteroid.scalability.svg",
      bench::curves_svg({.title = "Samples per second on one to eight Jetson Nanos, 100 Mbit/s",
                         .note = "Microbatches of 32 samples for every device, 16 of them; a Nano as fast as in the paper's Table 1",
                         .unit = "",
                         .logarithmic = false},
                        {{"DP, ring", bench::plot_color(0)},
                         {"DP, server", bench::plot_color(1)},
                         {"PP", bench::plot_color(2)},
                         {"Asteroid", bench::plot_own},
                         {"linear", draw::palette::quiet}},
                        panels));
}

/// Section 5.7: EfficientNet-B1 on Env. D.
void add_energy(const sections& page, const std::vector<trained_model>& models) {
  const trained_model& m = models.front();
  std::vector<row> rows{
      {"speeds", "Mbit/s", "on-device", "DP, ring", "DP, server", "Asteroid", "Dora", "DP, ring / Asteroid", "DP, server / Asteroid"}};
  for (const bool slow : {true, false}) {
    for (const double mbit : {100.0, 1000.0}) {
      const cluster c = on_a_switch(environments[3], mbit);
      const edge_problem p{m.graph, c, slow ? as_in_table_1(models, m).on(c) : speeds().on(c), m.job()};
      const auto each = [&](const plan_result& r) {
        return r.plans.empty() ? std::nullopt : std::optional(r.plans.front().evaluation.energy().value() / m.batch);
      };
      const auto ring = each(planners[bench::dp_at].ask(p)), served = each(bench::through_a_server(p)),
                 own = each(planners[bench::asteroid_at].ask(p));
      row r{slow ? "Table 1" : "data sheet", number("%.0f", mbit)};
      for (const auto& joules :
           {each(planners[bench::on_device_at].ask(p)), ring, served, own, each(recipes::dora(p, minimize_latency{}, 1))}) {
        r.push_back(joules ? number("%.3g J", *joules) : "OOM");
      }
      r.push_back(times(ring, own));
      r.push_back(times(served, own));
      rows.push_back(std::move(r));
    }
  }
  page.add_csv("asteroid.energy.csv", rows);
}

/// How fast would devices have to be for BERT-small to come out as in Table 4?
void add_bert(const sections& page, const std::vector<trained_model>& models) {
  const trained_model& m = models.back();
  std::vector<row> rows{{"part of the data sheet", "A 100: device", "DP, ring", "DP, server", "PP", "B 100: device", "DP, ring",
                         "DP, server", "PP", "B 1000: device", "DP, ring", "DP, server", "PP"},
                        {"the paper's", "3.5", "6.4", "", "1", "1.3", "6.8", "", "1", "3.9", "4.2", "", "1.3"}};
  for (const double part : {1.0, 0.5, 0.25, 0.125}) {
    row r{number("%g", part)};
    for (const auto& [e, mbit] : {std::pair{environments[0], 100.0}, {environments[1], 100.0}, {environments[1], 1000.0}}) {
      const cluster c = on_a_switch(e, mbit);
      const edge_problem p{m.graph, c, edge_costs{{}, std::vector<double>(c.size(), part)}, m.job()};
      const auto own = bench::rate_of(planners[bench::asteroid_at].ask(p));
      for (const auto& other : {planners[bench::on_device_at].ask(p), planners[bench::dp_at].ask(p), bench::through_a_server(p),
                                planners[bench::pp_at].ask(p)}) {
        r.push_back(times(own, bench::rate_of(other)));
      }
    }
    rows.push_back(std::move(r));
    if (page.quick()) break;
  }
  page.add_csv("asteroid.bert.csv", rows);
}

/// Table 7: Env. C.
void add_planning(const sections& page, const std::vector<trained_model>& models) {
  const std::map<std::string, const char*> paper{
      {"efficientnet-b1", "480 s"}, {"mobilenetv2", "261 s"}, {"resnet50", "192 s"}, {"bert-small", "69 s"}};
  std::vector<row> rows{
      {"model", "layers", "microbatch sizes", "Asteroid's search", "and judged, with its bound", "Dora", "the paper's, on a Jetson NX"}};
  const cluster c = on_a_switch(environments[2], 100);
  for (const trained_model& m : models) {
    const edge_problem p{m.graph, c, as_in_table_1(models, m).on(c), m.job()};
    const auto least = [&](int runs, auto&& ask) {
      std::vector<double> all;
      for (int i = 0; i < (page.quick() ? 1 : runs); ++i) all.push_back(bench::seconds_of(ask));
      return readable(seconds(*std::min_element(all.begin(), all.end())));
    };
    rows.push_back({m.title, std::to_string(m.graph.size()), std::to_string(m.microbatch_sizes.size()),
                    least(21,
                          [&] {
                            return recipes::choose_on_view(p, "asteroid", chain_view(m.graph), uncontended(c, duplex::half),
                                                           recipes::asteroid_search);
                          }),
                    least(21, [&] { return recipes::asteroid(p, minimize_latency{}, 1); }),
                    least(3, [&] { return recipes::dora(p, minimize_latency{}, 1); }), paper.at(m.name)});
  }
  page.add_csv("asteroid.planning.timed.csv", rows);
}

}  // namespace

int main(int argc, char** argv) {
  const sections page(argc, argv);
  const std::vector<trained_model> models = bench::trained_models();
  bench::add_communication(page, models);
  bench::add_memory(page, models);
  add_speeds(page, models);
  add_speedups(page, models);
  add_throughput(page, models);
  add_plans(page, models);
  add_duplex(page, models);
  add_bert(page, models);
  add_volume(page, models);
  add_warmups(page, models);
  add_ablation(page, models);
  add_scalability(page, models);
  add_energy(page, models);
  add_planning(page, models);
  bench::add_profiling(page, models);
  bench::add_faults(page);
}
