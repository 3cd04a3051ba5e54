// SPDX-License-Identifier: BSL-1.0
// Operators placed on accelerators and CPUs: the published workloads of "Efficient Algorithms for Device Placement of DNN Graph
// Operators" (NeurIPS 2020), exactly and along linear orders, beside what the authors' program gives.
//
// Loads are ms per sample. Times are of whole calls, medians and least of 11: checking, merging, searching, everything but reading the
// file. What is theirs comes from ../shared/reference/planners.md. The sections of docs/reproduction/dnn-partitioning.md (update.py).

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/exchange/dnn_partitioning_json.hpp>
#include <hetplan/place/place_operators.hpp>

#include "reproduce/sections.hpp"
#include "support/random_source.hpp"

using namespace hetplan;
using namespace hetplan::place;
using bench::number;
using bench::row;

namespace {

struct published {
  const char* file;
  double exact_ms;  ///< theirs; 0: not finished
  const char* took;
  double in_line_ms;
  const char* expert;
};
constexpr published workloads[] = {{"LayerGraphs/bert24_inference", 17.7899, "8 ms", 17.7899, "bert24_inference"},
                                   {"LayerGraphs/bert24_training", 41.7458, "8 ms", 41.7458, "bert24_training"},
                                   {"LayerGraphs/gnmt_training", 107.004, "27.3 s", 107.004, "gnmt_training"},
                                   {"LayerGraphs/resnet50_inference", 33.7747, "0.16 s", 33.7747, "resnet50_inference"},
                                   {"LayerGraphs/resnet50_training", 78.6318, "0.22 s", 78.6498, "resnet50_inference"},
                                   {"LayerGraphs/inceptionv3_inference", 0, "> 240 s", 51.5519, "inceptionv3_inference"},
                                   {"OperatorGraphs/bert_l-3_inference", 27.9186, "0.82 s", 27.9186, ""},
                                   {"OperatorGraphs/bert_l-3_training", 65.3031, "5.0 s", 65.3031, ""},
                                   {"OperatorGraphs/bert_l-6_inference", 29.5795, "2.8 s", 29.5795, ""},
                                   {"OperatorGraphs/bert_l-6_training", 72.865, "17.5 s", 72.865, ""},
                                   {"OperatorGraphs/resnet50_inference", 124.349, "0.16 s", 124.349, ""},
                                   {"OperatorGraphs/bert_L-12_training", 437.998, "31 s", 437.998, ""}};

std::string load_ms(double v) { return v > 0 ? number("%.6g", v) : "-"; }

std::string time_text(double s) { return s < 1 ? number("%.3g ms", 1e3 * s) : number("%.3g s", s); }

/// Median and least wall time.
struct timing {
  std::string median, least;
  double median_s = 0;
};
template <class Work>
timing time_of(int runs, Work&& work) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(bench::seconds_of(work));
  const double median_s = bench::median(times);
  return {time_text(median_s), time_text(*std::min_element(times.begin(), times.end())), median_s};
}

/// Chains side by side behind one source, operators of 1 to 10 ms, outputs of 0.2 to 2 ms: (length + 1)^chains + 1 ideals.
placement_workload side_by_side(std::size_t chains, std::size_t length) {
  test::random_source random(1);
  placement_workload w{.accelerators = 6, .cpus = 1};
  for (std::size_t i = 0; i <= chains * length; ++i) {
    const double time_s = 1e-3 * random.integer(1, 10);
    w.operators.push_back(
        {.accelerator_time = seconds(time_s), .cpu_time = seconds(10 * time_s), .transfer = seconds(2e-4 * random.integer(1, 10))});
    if (i > 0) w.edges.emplace_back(i <= chains ? 0 : i - chains, i);
  }
  return w;
}

void add_workloads(const bench::sections& page, const std::string& folder) {
  std::vector<row> exact{{"workload", "nodes/edges, devices", "units", "ideals", "pairs", "optimum", "their optimum", "time", "least",
                          "their time", "expert"}};
  std::vector<row> in_line{{"workload", "optimum", "found", "they find", "bound", "gap stated", "gap", "time", "least"}};
  double longest_s = 0;
  for (const published& p : workloads) {
    if (page.quick() && &p != &workloads[0]) break;
    const auto read = [&](const std::string& path) { return io::json_document::load(folder + path); };
    const exchange::dnn_partitioning_workload all =
        exchange::read_dnn_partitioning(read(std::string("/throughput-inputs/") + p.file + ".json"));
    const placement_workload& w = all.workload;
    const int runs = page.quick() ? 1 : 11;
    operator_placement best, line;
    const timing time = time_of(runs, [&] { return (best = place_operators(w)).value; });
    const timing line_time = time_of(runs, [&] { return (line = place_operators_in_line(w)).value; });
    longest_s = std::max(longest_s, line_time.median_s);
    double expert_ms = 0;
    if (*p.expert != '\0') {
      const auto split = exchange::read_dnn_partitioning_split(read(std::string("/human-experts/") + p.expert + "_expert.json"), all);
      for (const seconds s : device_loads(w, split)) expert_ms = std::max(expert_ms, 1e3 * s.value());
    }
    const std::string optimum = best.gap() == 0 ? load_ms(1e3 * best.value.value()) : "-";
    exact.push_back({p.file,
                     std::to_string(w.operators.size()) + "/" + std::to_string(w.edges.size()) + ", " + std::to_string(w.accelerators) +
                         " + " + std::to_string(w.cpus),
                     std::to_string(best.units), std::to_string(best.ideals), std::to_string(best.pairs), optimum, load_ms(p.exact_ms),
                     time.median, time.least, p.took, load_ms(expert_ms)});
    in_line.push_back({p.file, optimum, load_ms(1e3 * line.value.value()), load_ms(p.in_line_ms), load_ms(1e3 * line.bound.value()),
                       number("%.1f %%", 100 * line.gap()), number("%.1f %%", 100 * (line.value / best.value - 1)), line_time.median,
                       line_time.least});
  }
  page.add_csv("dnn-partitioning.exact.timed.csv", exact);
  page.add_csv("dnn-partitioning.in-line.timed.csv", in_line);
  std::vector<row> shown;
  for (const row& r : exact) shown.push_back({r[0], r[1], r[4], r[5], r[6], r[7], r[9]});
  page.add_timed("exact", bench::markdown_table(shown));
  page.add_timed("in-line", bench::markdown_table({{"workloads", "gap", "gap stated", "longest median"},
                                                   {std::to_string(in_line.size() - 1), bench::span_of(in_line, 6).text("%.1f", " %"),
                                                    bench::span_of(in_line, 5).text("%.1f", " %"), time_text(longest_s)}},
                                                  1));
}

void add_growth(const bench::sections& page) {
  std::vector<row> growth{{"chains", "length", "ideals", "pairs", "optimum", "found in line", "gap stated", "time"}};
  for (const auto& [chains, length] : {std::pair<std::size_t, std::size_t>{2, 30}, {2, 100}, {3, 12}, {3, 20}, {3, 30}, {4, 10}, {4, 15}}) {
    if (page.quick() && chains * length > 60) continue;
    const placement_workload w = side_by_side(chains, length);
    const operator_placement line = place_operators_in_line(w);
    operator_placement best;
    const timing time = time_of(1, [&] { return (best = place_operators(w)).value; });
    growth.push_back({std::to_string(chains), std::to_string(length), std::to_string(best.ideals), std::to_string(best.pairs),
                      best.gap() == 0 ? load_ms(1e3 * best.value.value()) : "-", load_ms(1e3 * line.value.value()),
                      number("%.1f %%", 100 * line.gap()), time.median});
  }
  page.add_timed("growth", bench::markdown_table(growth));
}

}  // namespace

int main(int argc, char** argv) try {
  const bench::sections page(argc, argv);
  const std::string folder = HETPLAN_SOURCE_DIR "/../shared/data/dnn-partitioning";
  const bool there = std::filesystem::is_directory(folder);
  if (!there) std::fprintf(stderr, "reproduce_dnn-partitioning: SKIPPED, there is no %s\n", folder.c_str());
  if (!there && !page.quick()) return 1;
  if (there) add_workloads(page, folder);
  for (const char* name : {"exact", "in-line"}) {
    if (!there) page.add(name, "Skipped.");
  }
  add_growth(page);
} catch (const std::exception& e) {
  std::fprintf(stderr, "reproduce_dnn-partitioning: %s\n", e.what());
  return 1;
}
