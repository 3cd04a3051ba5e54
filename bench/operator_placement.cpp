// SPDX-License-Identifier: BSL-1.0
// Operators placed for the smallest makespan: graphs of Moirai's Table IV's sizes on the clusters of its Table III, as they are,
// coarsened and fused; from a graph to a schedule with its gap. And the paper's sample graphs.
//   bench_operator_placement [--quick] [--json]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/coarsen/fused_graph.hpp>
#include <hetplan/cost/roofline.hpp>
#include <hetplan/exchange/moirai_json.hpp>
#include <hetplan/place/find_schedule.hpp>
#include <hetplan/place/getf.hpp>
#include <hetplan/place/heft.hpp>
#include <hetplan/place/m_sct.hpp>
#include <hetplan/place/make_placement_table.hpp>
#include <hetplan/solve/glpk.hpp>
#include <hetplan/zoo/moirai_setting.hpp>

#include "measure.hpp"
#include "report.hpp"

namespace {

using namespace hetplan;

std::string number(const char* format, double v) {
  char text[32];
  std::snprintf(text, sizeof text, format, v);
  return text;
}

/// Moirai's Table V, in minutes, and Table IV's coarsened sizes.
struct printed {
  double original_min, coarsened_min;
  std::size_t coarsened_operators;
};
constexpr std::array<printed, 11> in_print{{{2.15, 1.64, 5204},
                                            {13.28, 10.51, 11512},
                                            {22.54, 15.46, 17947},
                                            {1.38, 1.04, 3682},
                                            {9.02, 6.88, 7308},
                                            {11.48, 8.51, 9825},
                                            {16.5, 11.07, 15283},
                                            {1.9, 1.38, 3618},
                                            {12.87, 8.75, 9252},
                                            {23.91, 18.02, 26824},
                                            {38.42, 22.18, 35096}}};

const place::placement_rules rules{place::contention::shared, transfer_copies::per_device};

place::find_options budget(bool quick) {
  place::find_options o;
  o.steps = quick ? 20'000 : standard_steps;
  o.lp = glpk_lp{};
  return o;
}

/// The largest and the geometric mean of some ratios.
class ratios {
 public:
  void add(double r) { largest_ = std::max(largest_, r), log_sum_ += std::log(r), ++count_; }
  [[nodiscard]] std::string text() const { return number("%.2f", largest_) + number(" (%.2f)", std::exp(log_sum_ / count_)); }

 private:
  double largest_ = 0, log_sum_ = 0;
  int count_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::report sizes("Graphs of Table IV's sizes: from a graph to a schedule with its gap",
                      {"cluster", "model", "operators", "makespan", "bound", "gap", "time", "printed", "times faster"});
  bench::report baselines("List schedules' makespans over ours: largest (geometric mean)", {"cluster", "graph", "HEFT", "m-SCT", "GETF"});
  bench::report gains("What coarsening does", {"cluster", "model", "operators", "coarsened", "printed", "as it is", "coarsened", "fused"});
  for (const std::string_view cluster : zoo::moirai_cluster_names) {
    const hetplan::cluster c = zoo::moirai_cluster(cluster);
    std::array<std::array<ratios, 3>, 2> over;
    for (std::size_t i = 0; i < zoo::moirai_models.size(); ++i) {
      const zoo::moirai_model& m = zoo::moirai_models[i];
      if (options.quick && m.operators > 5000) continue;
      const planning_graph g = zoo::moirai_graph(m);
      const job one{.workload = {.mode = mode::inference}, .batch = 1};
      const planning_problem problem{g, c, roofline{}, one};
      std::vector<double> makespans;
      std::size_t left = 0;
      for (const bool coarsened : {false, true}) {
        place::operator_schedule s;
        coarsen::blocks blocks;
        const double took_s = bench::seconds_of([&] {
          blocks = coarsened ? coarsen::fuse_operators(g, coarsen::tensorrt_like()) : coarsen::each_layer(g);
          s = place::find_schedule(place::make_placement_table(problem, blocks), rules, budget(options.quick));
          return s.makespan_s;
        });
        left = blocks.size();
        makespans.push_back(s.makespan_s);
        const place::placement_table t = place::make_placement_table(problem, blocks);
        over[coarsened][0].add(place::heft(t, rules).makespan_s / s.makespan_s);
        over[coarsened][1].add(place::m_sct(t, rules, glpk_lp{}).makespan_s / s.makespan_s);
        over[coarsened][2].add(place::getf(t, rules, glpk_lp{}).makespan_s / s.makespan_s);
        const double printed_s = 60 * (coarsened ? in_print[i].coarsened_min : in_print[i].original_min);
        sizes.add({std::string(cluster), std::string(m.name) + (coarsened ? ", coarsened" : ""), std::to_string(left),
                   number("%.1f ms", 1e3 * s.makespan_s), number("%.1f ms", 1e3 * s.bound_s), number("%.1f %%", 100 * s.gap()),
                   number("%.2f s", took_s), number("%.0f s", printed_s), number("%.0f", printed_s / took_s)});
      }
      const auto rules_of_backend = coarsen::tensorrt_like();
      const planning_graph fused = coarsen::fused_graph(g, coarsen::fuse_operators(g, rules_of_backend), rules_of_backend, c.devices());
      const planning_problem of_kernels{fused, c, roofline{}, one};
      makespans.push_back(place::find_schedule(place::make_placement_table(of_kernels), rules, budget(options.quick)).makespan_s);
      const auto gain = [&](double s) { return number("%.1f ms", 1e3 * s) + number(" (%+.1f %%)", 100 * (s / makespans[0] - 1)); };
      gains.add({std::string(cluster), std::string(m.name), std::to_string(m.operators), std::to_string(left),
                 std::to_string(in_print[i].coarsened_operators), number("%.1f ms", 1e3 * makespans[0]), gain(makespans[1]),
                 gain(makespans[2])});
    }
    for (const bool coarsened : {false, true}) {
      const auto& [heft, m_sct, getf] = over[coarsened];
      baselines.add({std::string(cluster), coarsened ? "coarsened" : "as it is", heft.text(), m_sct.text(), getf.text()});
    }
  }

  const std::string folder = HETPLAN_SOURCE_DIR "/../shared/data/moirai";
  if (!std::filesystem::is_directory(folder)) {
    std::fprintf(stderr, "SKIPPED: %s is absent\n", folder.c_str());
    bench::print({sizes, baselines, gains}, options);
    return 0;
  }
  bench::report samples("Moirai's sample graphs, ms", {"graph", "contention", "HEFT", "found", "bound", "gap", "time"});
  for (const char* name : {"example-1", "GoogLeNet", "transformer"}) {
    const place::placement_table t = exchange::read_moirai(io::json_document::load(folder + "/" + name + ".json"));
    for (const place::contention c : {place::contention::none, place::contention::per_link, place::contention::one_port}) {
      place::operator_schedule s;
      const double took_s = bench::seconds_of([&] {
        s = place::find_schedule(t, {c}, budget(options.quick));
        return s.makespan_s;
      });
      samples.add({name, std::string(to_string(c)), number("%.4f", 1e3 * place::heft(t, {c}).makespan_s),
                   number("%.4f", 1e3 * s.makespan_s), number("%.4f", 1e3 * s.bound_s), number("%.1f %%", 100 * s.gap()),
                   number("%.2f s", took_s)});
    }
  }
  bench::print({sizes, baselines, gains, samples}, options);
  return 0;
}
