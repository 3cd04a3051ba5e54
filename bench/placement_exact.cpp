// SPDX-License-Identifier: BSL-1.0
// Proven placements of operators: random graphs and Moirai's first example, by mixed-integer programming and by our branch and bound, from
// a heuristic's schedule.
//   bench_placement_exact [--quick] [--json]
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <hetplan/exchange/moirai_json.hpp>
#include <hetplan/place/optimal_schedule.hpp>
#include <hetplan/place/series_schedule.hpp>
#include <hetplan/place/solve_placement.hpp>
#include <hetplan/solve/glpk.hpp>
#ifdef HETPLAN_HAS_CBC
#include <hetplan/solve/cbc.hpp>
#endif
#include <support/random_tables.hpp>

#include "measure.hpp"
#include "report.hpp"

namespace {

using namespace hetplan;
using place::contention;
using place::formulation;

std::string number(const char* format, double v) {
  char text[32];
  std::snprintf(text, sizeof text, format, v);
  return text;
}

std::string name(formulation f) { return f == formulation::tight ? "tight" : "printed"; }

struct solver {
  std::string name;
  place::operator_schedule (*run)(const place::placement_table&, const place::placement_rules&, const place::operator_schedule&,
                                  formulation, seconds limit);
};

const std::vector<solver> solvers{
    {"GLPK",
     [](const auto& t, const auto& r, const auto& known, formulation f, seconds limit) {
       return place::solve_placement(t, r, known, glpk_milp{.max_nodes = 10'000'000, .max_iterations = 2'000'000'000, .time_limit = limit},
                                     f);
     }},
#ifdef HETPLAN_HAS_CBC
    {"Cbc", [](const auto& t, const auto& r, const auto& known, formulation f,
               seconds limit) { return place::solve_placement(t, r, known, cbc_milp{.max_nodes = 10'000'000, .time_limit = limit}, f); }},
#endif
};

const solver ours{"branch and bound", [](const auto& t, const auto& r, const auto& known, formulation, seconds) {
                    return place::optimal_schedule(t, r, known, {.steps = 20'000'000});
                  }};

struct size {
  std::size_t operators, devices;
  unsigned edge_percent;
  contention rule;
  formulation form;
};

/// Adds a row for random graphs of one size, each from the best list schedule.
void add_drawn(bench::report& r, const size& s, const solver& by, int graphs, seconds limit) {
  std::vector<double> took_s, gap, start;
  double nodes = 0;
  int proven = 0;
  for (int g = 0; g < graphs; ++g) {
    const place::placement_table t = support::random_table(
        100 + static_cast<std::uint64_t>(g), {.operators = s.operators, .devices = s.devices, .edge_percent = s.edge_percent});
    const place::operator_schedule known = place::best_list_schedule(t, {s.rule});
    place::operator_schedule found;
    took_s.push_back(bench::seconds_of([&] {
      found = by.run(t, {s.rule}, known, s.form, limit);
      return found.makespan_s;
    }));
    gap.push_back(found.gap());
    start.push_back(known.makespan_s / found.makespan_s);
    nodes += static_cast<double>(found.steps);
    proven += static_cast<int>(found.status.ok());
  }
  const bool program = &by != &ours;
  r.add({std::to_string(s.operators) + " x " + std::to_string(s.devices) + ", " + std::to_string(s.edge_percent) + " % edges",
         std::string(to_string(s.rule)), program ? name(s.form) : "", by.name, std::to_string(proven) + " of " + std::to_string(graphs),
         number("%.2f s", bench::median(took_s)), number("%.2f s", *std::max_element(took_s.begin(), took_s.end())),
         number("%.0f", nodes / graphs), number("%.1f %%", 100 * *std::max_element(gap.begin(), gap.end())),
         number("%.3f", bench::median(start))});
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  const seconds limit = options.quick ? 250_ms : 60_s, drawn_limit = options.quick ? 250_ms : 20_s;
  const int graphs = options.quick ? 1 : 10;
  bench::report drawn("Drawn graphs, from the best list schedule", {"graphs", "contention", "formulation", "solver", "proven", "median",
                                                                    "longest", "nodes", "largest gap", "start / found"});
  const std::vector<size> sizes{
      {8, 2, 25, contention::none, formulation::printed},    {12, 2, 25, contention::none, formulation::printed},
      {8, 4, 30, contention::none, formulation::printed},    {12, 2, 25, contention::none, formulation::tight},
      {16, 2, 20, contention::none, formulation::tight},     {16, 2, 35, contention::none, formulation::tight},
      {20, 2, 20, contention::none, formulation::tight},     {12, 4, 25, contention::none, formulation::tight},
      {10, 3, 25, contention::one_port, formulation::tight}, {12, 2, 25, contention::one_port, formulation::tight},
      {16, 2, 25, contention::one_port, formulation::tight}, {10, 3, 25, contention::per_link, formulation::tight}};
  for (const size& s : sizes) {
    if (options.quick && s.operators > 12) continue;
    for (const solver& by : solvers) add_drawn(drawn, s, by, graphs, drawn_limit);
    if (s.form == formulation::tight) add_drawn(drawn, s, ours, graphs, drawn_limit);
  }
  // Sizes beyond the reach of the programs.
  for (const size& s : {size{10, 4, 35, contention::none, formulation::tight}, size{20, 4, 15, contention::none, formulation::tight},
                        size{30, 4, 10, contention::none, formulation::tight}, size{20, 4, 15, contention::one_port, formulation::tight},
                        size{40, 4, 8, contention::none, formulation::tight}})
    if (!options.quick) add_drawn(drawn, s, ours, graphs, drawn_limit);

  const std::string folder = HETPLAN_SOURCE_DIR "/../shared/data/moirai";
  if (!std::filesystem::is_directory(folder)) {
    std::fprintf(stderr, "SKIPPED: %s is absent\n", folder.c_str());
    bench::print({drawn}, options);
    return 0;
  }
  bench::report example("Moirai's example-1, ms: from the best list schedule, and from a schedule of the optimum",
                        {"formulation", "contention", "solver", "start", "found", "bound", "gap", "nodes", "time"});
  const place::placement_table t = exchange::read_moirai(io::json_document::load(folder + "/example-1.json"));
  for (const formulation f : {formulation::tight, formulation::printed}) {
    for (const contention c : {contention::none, contention::per_link, contention::one_port}) {
      const place::operator_schedule listed = place::best_list_schedule(t, {c});
      std::vector<place::operator_schedule> starts{listed};
      if (!options.quick) starts.push_back(solvers[0].run(t, {c}, listed, formulation::tight, limit));
      for (place::operator_schedule known : starts) {
        known.bound_s = 0;
        std::vector<solver> all = solvers;
        if (f == formulation::tight) all.push_back(ours);
        for (const solver& by : all) {
          place::operator_schedule s;
          const double took_s = bench::seconds_of([&] {
            s = by.run(t, {c}, known, f, limit);
            return s.makespan_s;
          });
          example.add({by.name == ours.name ? "" : name(f), std::string(to_string(c)), by.name, number("%.0f", 1e3 * known.makespan_s),
                       number("%.0f", 1e3 * s.makespan_s), number("%.2f", 1e3 * s.bound_s), number("%.1f %%", 100 * s.gap()),
                       std::to_string(s.steps), number("%.2f s", took_s)});
        }
      }
    }
  }
  bench::print({drawn, example}, options);
  return 0;
}
