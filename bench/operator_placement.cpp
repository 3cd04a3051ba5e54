// SPDX-License-Identifier: BSL-1.0
// Operators placed for the smallest makespan: graphs of Moirai's Table IV's sizes on the clusters of its Table III, as they are and
// coarsened; a plan from nothing, its parts timed. And the paper's sample graphs.
//   bench_operator_placement [--quick] [--json]
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <hetplan/coarsen/fuse_operators.hpp>
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

/// Seconds of Moirai's own search, in print: original graph, coarsened graph.
struct printed {
  const char* model;
  double original_s;
};
constexpr printed table_v[] = {{"swin-1.8b", 60 * 2.15},        {"swin-6.6b", 60 * 13.28},      {"swin-13b", 60 * 22.54},
                               {"gpt3-330m", 60 * 1.38},        {"gpt3-1.3b", 60 * 9.02},       {"gpt3-2.7b", 60 * 11.48},
                               {"gpt3-13b", 60 * 16.5},         {"alphafold2-87m", 60 * 1.9},   {"alphafold2-930m", 60 * 12.87},
                               {"alphafold2-2.4b", 60 * 23.91}, {"alphafold2-3.2b", 60 * 38.42}};

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  const place::placement_rules rules{place::contention::shared, transfer_copies::per_device};
  bench::report sizes(
      "Graphs of Table IV's sizes: from a model and a cluster to a schedule with its gap",
      {"cluster", "model", "operators", "makespan", "bound", "gap", "HEFT", "m-SCT", "GETF", "time", "printed", "times faster"});
  for (const std::string_view cluster : zoo::moirai_cluster_names) {
    const hetplan::cluster c = zoo::moirai_cluster(cluster);
    for (const zoo::moirai_model& m : zoo::moirai_models) {
      if (options.quick && m.operators > 5000) continue;
      const planning_graph g = zoo::moirai_graph(m);
      const planning_problem problem{g, c, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 1}};
      for (const bool coarsened : {false, true}) {
        place::operator_schedule s;
        std::size_t operators = 0;
        const double took_s = bench::seconds_of([&] {
          const coarsen::blocks blocks = coarsened ? coarsen::fuse_operators(g, coarsen::tensorrt_like()) : coarsen::each_layer(g);
          operators = blocks.size();
          s = place::find_schedule(place::make_placement_table(problem, blocks), rules,
                                   {.steps = options.quick ? 20'000 : standard_steps, .lp = glpk_lp{}});
          return s.makespan_s;
        });
        const coarsen::blocks blocks = coarsened ? coarsen::fuse_operators(g, coarsen::tensorrt_like()) : coarsen::each_layer(g);
        const place::placement_table t = place::make_placement_table(problem, blocks);
        const auto ratio = [&](double makespan_s) { return number("%.2f", makespan_s / s.makespan_s); };
        const auto theirs = std::find_if(std::begin(table_v), std::end(table_v), [&](const printed& p) { return m.name == p.model; });
        sizes.add({std::string(cluster), std::string(m.name) + (coarsened ? ", coarsened" : ""), std::to_string(operators),
                   number("%.1f ms", 1e3 * s.makespan_s), number("%.1f ms", 1e3 * s.bound_s), number("%.1f %%", 100 * s.gap()),
                   ratio(place::heft(t, rules).makespan_s), ratio(place::m_sct(t, rules).makespan_s),
                   ratio(place::getf(t, rules).makespan_s), number("%.2f s", took_s), coarsened ? "" : number("%.0f s", theirs->original_s),
                   coarsened ? "" : number("%.0f", theirs->original_s / took_s)});
      }
    }
  }

  const std::string folder = HETPLAN_SOURCE_DIR "/../shared/data/moirai";
  if (!std::filesystem::is_directory(folder)) {
    std::fprintf(stderr, "SKIPPED: %s is absent\n", folder.c_str());
    bench::print({sizes}, options);
    return 0;
  }
  bench::report samples("Moirai's sample graphs, ms", {"graph", "contention", "HEFT", "found", "bound", "gap", "time"});
  for (const char* name : {"example-1", "GoogLeNet", "transformer"}) {
    const place::placement_table t = exchange::read_moirai(io::json_document::load(folder + "/" + name + ".json"));
    for (const place::contention c : {place::contention::none, place::contention::per_link, place::contention::one_port}) {
      place::operator_schedule s;
      const double took_s = bench::seconds_of([&] {
        s = place::find_schedule(t, {c}, {.steps = options.quick ? 20'000 : standard_steps, .lp = glpk_lp{}});
        return s.makespan_s;
      });
      samples.add({name, std::string(to_string(c)), number("%.4f", 1e3 * place::heft(t, {c}).makespan_s),
                   number("%.4f", 1e3 * s.makespan_s), number("%.4f", 1e3 * s.bound_s), number("%.1f %%", 100 * s.gap()),
                   number("%.2f s", took_s)});
    }
  }
  bench::print({sizes, samples}, options);
  return 0;
}
