// SPDX-License-Identifier: BSL-1.0
// Operators placed for the smallest makespan: graphs of Moirai's Table IV's sizes on the clusters of its Table III, as they are,
// coarsened and fused; from a graph to a schedule with its gap. And the paper's sample graphs. The sections of
// docs/reproduction/moirai.md (update.py).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/exchange/moirai_json.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/optimal_schedule.hpp>
#include <hetplan/place/series_schedule.hpp>
#include <hetplan/solve/glpk.hpp>
#include <hetplan/zoo/settings.hpp>

#include <support/random_tables.hpp>
#include "reproduce/sections.hpp"

using namespace hetplan;
using bench::number;
using bench::row;

namespace {

/// Moirai's Table V, in minutes, and Table IV's coarsened sizes and hidden sizes.
struct printed {
  double original_min, coarsened_min;
  std::size_t coarsened_operators;
  int hidden;
};
constexpr std::array<printed, 11> in_print{{{2.15, 1.64, 5204, 512},
                                            {13.28, 10.51, 11512, 768},
                                            {22.54, 15.46, 17947, 1024},
                                            {1.38, 1.04, 3682, 1024},
                                            {9.02, 6.88, 7308, 2048},
                                            {11.48, 8.51, 9825, 2560},
                                            {16.5, 11.07, 15283, 5120},
                                            {1.9, 1.38, 3618, 256},
                                            {12.87, 8.75, 9252, 512},
                                            {23.91, 18.02, 26824, 1024},
                                            {38.42, 22.18, 35096, 1024}}};

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

/// What of Table IV the synthetic graphs keep.
void add_models(const bench::sections& page) {
  std::vector<row> rows{{"model", "parameters", "layers", "heads", "hidden size, printed", "parameters of matrices of that size",
                         "hidden size here", "operators"}};
  for (std::size_t i = 0; i < zoo::moirai_models.size(); ++i) {
    const zoo::moirai_model& m = zoo::moirai_models[i];
    const auto of_width = [&](double width) { return 12 * m.layers * width * width; };
    rows.push_back({std::string(m.name), number("%.0f M", m.parameters / 1e6), std::to_string(m.layers), std::to_string(m.heads),
                    std::to_string(in_print[i].hidden), number("%.0f M", of_width(in_print[i].hidden) / 1e6),
                    number("%.0f", std::sqrt(m.parameters / 12 / m.layers)), std::to_string(m.operators)});
  }
  page.add_csv("moirai.models.csv", rows);
}

void add_graphs(const bench::sections& page) {
  std::vector<row> sizes{{"cluster", "model", "operators", "makespan [ms]", "bound [ms]", "gap", "time", "Moirai's", "printed / ours"}};
  std::vector<row> baselines{{"cluster", "graph", "HEFT", "m-SCT", "GETF"}};
  std::vector<row> gains{{"cluster", "model", "operators", "coarsened", "printed", "coarsened / operators", "as it is", "coarsened",
                          "change", "fused", "change"}};
  for (const std::string_view cluster : zoo::moirai_cluster_names) {
    const hetplan::cluster c = zoo::moirai_cluster(cluster);
    std::array<std::array<ratios, 3>, 2> over;
    for (std::size_t i = 0; i < zoo::moirai_models.size(); ++i) {
      const zoo::moirai_model& m = zoo::moirai_models[i];
      if (page.quick() && m.operators > 5000) continue;
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
          s = place::find_schedule(place::make_placement_table(problem, blocks), rules, budget(page.quick()));
          return s.makespan_s;
        });
        left = blocks.size();
        makespans.push_back(s.makespan_s);
        const place::placement_table t = place::make_placement_table(problem, blocks);
        over[coarsened][0].add(place::heft(t, rules).makespan_s / s.makespan_s);
        over[coarsened][1].add(place::m_sct(t, rules, glpk_lp{}).makespan_s / s.makespan_s);
        over[coarsened][2].add(place::getf(t, rules, glpk_lp{}).makespan_s / s.makespan_s);
        const double printed_s = 60 * (coarsened ? in_print[i].coarsened_min : in_print[i].original_min);
        sizes.push_back({std::string(cluster), std::string(m.name) + (coarsened ? ", coarsened" : ""), std::to_string(left),
                         number("%.1f", 1e3 * s.makespan_s), number("%.1f", 1e3 * s.bound_s), number("%.1f %%", 100 * s.gap()),
                         number("%.2f s", took_s), number("%.0f s", printed_s), number("%.0f x", printed_s / took_s)});
      }
      const auto rules_of_backend = coarsen::tensorrt_like();
      const planning_graph fused = coarsen::fused_graph(g, coarsen::fuse_operators(g, rules_of_backend), rules_of_backend, c.devices());
      const planning_problem of_kernels{fused, c, roofline{}, one};
      makespans.push_back(place::find_schedule(place::make_placement_table(of_kernels), rules, budget(page.quick())).makespan_s);
      const auto change = [&](double s) { return number("%+.1f %%", 100 * (s / makespans[0] - 1)); };
      gains.push_back({std::string(cluster), std::string(m.name), std::to_string(m.operators), std::to_string(left),
                       std::to_string(in_print[i].coarsened_operators),
                       number("%.2f", static_cast<double>(left) / static_cast<double>(m.operators)), number("%.1f ms", 1e3 * makespans[0]),
                       number("%.1f ms", 1e3 * makespans[1]), change(makespans[1]), number("%.1f ms", 1e3 * makespans[2]),
                       change(makespans[2])});
    }
    for (const bool coarsened : {false, true}) {
      const auto& [heft, m_sct, getf] = over[coarsened];
      baselines.push_back({std::string(cluster), coarsened ? "coarsened" : "as it is", heft.text(), m_sct.text(), getf.text()});
    }
  }
  page.add_csv("moirai.sizes.timed.csv", sizes);
  page.add_csv("moirai.coarsening.csv", gains);
  std::vector<row> gaps{{"cluster", "graphs", "gap", "time: least", "most", "printed / ours: least", "most"}};
  std::vector<row> changes{{"cluster", "coarsened / operators", "coarsened: makespan", "fused: makespan"}};
  for (const std::string_view cluster : zoo::moirai_cluster_names) {
    for (const bool coarsened : {false, true}) {
      const auto keep = [&](const row& r) { return r[0] == cluster && r[1].ends_with(", coarsened") == coarsened; };
      const bench::span time = bench::span_of(sizes, 6, keep), factor = bench::span_of(sizes, 8, keep);
      gaps.push_back({std::string(cluster), coarsened ? "coarsened" : "as they are", bench::span_of(sizes, 5, keep).text("%.1f", " %"),
                      time.least("%.2f s"), time.most("%.2f s"), factor.least("%.0f x"), factor.most("%.0f x")});
    }
    const auto keep = [&](const row& r) { return r[0] == cluster; };
    changes.push_back({std::string(cluster), bench::span_of(gains, 5, keep).text("%.2f"),
                       bench::span_of(gains, 8, keep).text("%+.1f", " %"), bench::span_of(gains, 10, keep).text("%+.1f", " %")});
  }
  page.add_timed("sizes", bench::markdown_table(gaps));
  page.add("baselines", bench::markdown_table(baselines));
  page.add("coarsening", bench::markdown_table(changes, 1));
}

void add_samples(const bench::sections& page, const std::string& folder) {
  std::vector<row> rows{{"graph", "contention", "HEFT [ms]", "found [ms]", "bound [ms]", "gap", "time"}};
  for (const char* name : {"example-1", "GoogLeNet", "transformer"}) {
    if (page.quick() && std::string(name) == "transformer") continue;
    const place::placement_table t = exchange::read_moirai(io::json_document::load(folder + "/" + name + ".json"));
    for (const place::contention c : {place::contention::none, place::contention::per_link, place::contention::one_port}) {
      place::operator_schedule s;
      const double took_s = bench::seconds_of([&] {
        s = place::find_schedule(t, {c}, budget(page.quick()));
        return s.makespan_s;
      });
      rows.push_back({name, std::string(to_string(c)), number("%.4f", 1e3 * place::heft(t, {c}).makespan_s),
                      number("%.4f", 1e3 * s.makespan_s), number("%.4f", 1e3 * s.bound_s), number("%.1f %%", 100 * s.gap()),
                      number("%.2f s", took_s)});
    }
  }
  page.add_timed("samples", bench::markdown_table(rows));
}

/// Drawn graphs, ten of each size: branch and bound from the best list schedule.
void add_proofs(const bench::sections& page) {
  struct size {
    std::size_t operators, devices;
    unsigned edge_percent;
    place::contention rule;
  };
  using place::contention;
  std::vector<row> rows{
      {"operators x devices", "edges", "contention", "graphs", "proven", "median", "longest", "nodes", "largest gap", "start / found"}};
  int drawn = 0, all_proven = 0;
  for (const size& s :
       {size{12, 2, 25, contention::none}, size{20, 2, 20, contention::none}, size{12, 4, 25, contention::none},
        size{20, 4, 15, contention::none}, size{30, 4, 10, contention::none}, size{40, 4, 8, contention::none},
        size{10, 3, 25, contention::per_link}, size{16, 2, 25, contention::one_port}, size{20, 4, 15, contention::one_port}}) {
    if (page.quick() && s.operators > 12) continue;
    std::vector<double> took_s, gap, start;
    double nodes = 0;
    int proven = 0;
    constexpr int graphs = 10;
    for (std::uint64_t g = 0; g < graphs; ++g) {
      const place::placement_table t =
          support::random_table(100 + g, {.operators = s.operators, .devices = s.devices, .edge_percent = s.edge_percent});
      const place::operator_schedule known = place::best_list_schedule(t, {s.rule});
      place::operator_schedule found;
      took_s.push_back(bench::seconds_of([&] {
        found = place::optimal_schedule(t, {s.rule}, known, {.steps = 20'000'000});
        return found.makespan_s;
      }));
      gap.push_back(found.gap());
      start.push_back(known.makespan_s / found.makespan_s);
      nodes += static_cast<double>(found.steps);
      proven += found.status.ok() ? 1 : 0;
    }
    rows.push_back({std::to_string(s.operators) + " x " + std::to_string(s.devices), std::to_string(s.edge_percent) + " %",
                    std::string(to_string(s.rule)), std::to_string(graphs), std::to_string(proven), number("%.2f s", bench::median(took_s)),
                    number("%.2f s", *std::max_element(took_s.begin(), took_s.end())), number("%.0f", nodes / graphs),
                    number("%.1f %%", 100 * *std::max_element(gap.begin(), gap.end())), number("%.3f", bench::median(start))});
    drawn += graphs;
    all_proven += proven;
  }
  page.add_csv("moirai.proofs.timed.csv", rows);
  page.add_timed("proofs",
                 bench::markdown_table({{"drawn graphs", "proven", "longest", "largest gap", "start / found"},
                                        {std::to_string(drawn), std::to_string(all_proven), bench::span_of(rows, 6).most("%.2f s"),
                                         bench::span_of(rows, 8).most("%.1f %%"), bench::span_of(rows, 9).text("%.3f")}},
                                       1));
}

}  // namespace

int main(int argc, char** argv) try {
  const bench::sections page(argc, argv);
  const std::string folder = HETPLAN_SOURCE_DIR "/../shared/data/moirai";
  const bool there = std::filesystem::is_directory(folder);
  if (!there) std::fprintf(stderr, "reproduce_moirai: SKIPPED, there is no %s\n", folder.c_str());
  if (!there && !page.quick()) return 1;
  add_models(page);
  add_graphs(page);
  add_proofs(page);
  if (there) add_samples(page, folder);
  else page.add("samples", "Skipped.");
} catch (const std::exception& e) {
  std::fprintf(stderr, "reproduce_moirai: %s\n", e.what());
  return 1;
}
