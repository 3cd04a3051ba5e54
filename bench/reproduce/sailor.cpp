// SPDX-License-Identifier: BSL-1.0
// Sailor's validation plans: iteration time and memory as the simulator sees them, beside what its authors measured on real clusters.
// The sections of docs/reproduction/sailor.md (update.py).

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/exchange/sailor_profile.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "reproduce/sections.hpp"

using namespace hetplan;
using bench::number, bench::row, bench::sections;
using io::json_node, io::range;

namespace {

const std::string data = HETPLAN_SOURCE_DIR "/../shared/data/sailor";
const std::string profiles = data + "/sailor/Planner/sailor_planner/profiles/", metis = data + "/sailor/Planner/baselines/Metis/profiles/";

/// What the tables turn: everything else is the same in all of them.
struct setting {
  transfer_mode how = transfer_mode::overlap;  ///< block: DeepSpeed's pipeline engine
  double bandwidth = 1;                        ///< times what was measured
  bool slow_ethernet = false;                  ///< 1 Gbit/s on every machine of the MIT cluster, not only on those with RTX 3090
};

/// Seconds of the layers at the degree of the plan.
struct measured_costs {
  std::map<std::string, std::vector<double>> update_s;  ///< by kind, by layer

  [[nodiscard]] seconds time(const work& w, const device& d) const { return profiled{}.time(w, d); }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const { return seconds(update_s.at(d.kind)[l.id.index()]); }
};
static_assert(check_cost_model<measured_costs>());

/// Every machine has network cards of its own behind a switch that does not limit.
struct network_cards {
  std::map<std::string, bytes_per_second> of_kind;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const {
    std::vector<resource> all;
    for (const device& d : devices) {
      all.push_back({d.name + ".up", of_kind.at(d.kind)});
      all.push_back({d.name + ".down", of_kind.at(d.kind)});
    }
    return all;
  }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const {
    return route{{}, {{resource_id(2 * from.index()), 1}, {resource_id(2 * to.index() + 1), 1}}};
  }
};
static_assert(check_network_model<network_cards>());

/// One file of Metis' form, of one microbatch size and degree.
struct metis_profile {
  exchange::layer_sizes sizes;
  std::vector<double> forward_and_backward_s, memory;  ///< by layer; bytes of one accelerator
  double update_s = 0;                                 ///< of all layers
};
metis_profile read_metis(const std::string& model, const std::string& kind, int microbatch, int degree) {
  const io::json_document d =
      io::json_document::load(metis + model + "/" + kind + "/mbs" + std::to_string(microbatch) + "_tmp" + std::to_string(degree) + ".json");
  metis_profile read{.sizes = exchange::read_layer_sizes(d), .forward_and_backward_s = {}, .memory = {}};
  const exchange::foreign_object top{json_node(d)};
  const exchange::foreign_object times(top.at("execution_time", "an object")), memory(top.at("execution_memory", "an object"));
  for (const json_node n : times.at("layer_compute_total_ms", "an array of ms").elements("an array of ms")) {
    read.forward_and_backward_s.push_back(n.number(range::at_least_zero) / 1e3);
  }
  for (const json_node n : memory.at("layer_memory_total_mb", "an array of MiB").elements("an array of MiB")) {
    read.memory.push_back(n.number(range::at_least_zero) * 1048576);
  }
  read.update_s = times.number("optimizer_time_ms", range::at_least_zero) / 1e3;
  return read;
}

/// Times of a model on a kind of device. For GPT-Neo on GH-96 the planner's profile is a copy of OPT-350's, so Metis' is taken: it holds
/// forward and backward together, which are split as on an A100-40 at the same degree and microbatch size.
exchange::sailor_profile times_of(const std::string& model, const std::string& kind, int microbatch, int degree) {
  const auto load = [&](const std::string& of) {
    return exchange::read_sailor_profile(io::json_document::load(profiles + model + "/" + of + "/profile.json"));
  };
  if (model != "GPT-Neo-2.7") return load(kind);
  const metis_profile together = read_metis(model, kind, microbatch, degree);
  const auto split = load("A100-40").times.at(microbatch).at(degree);
  exchange::sailor_profile made{.file = "Metis " + model + " " + kind, .layers = split.size(), .times = {}};
  for (std::size_t l = 0; l < split.size(); ++l) {
    const double share = split[l].forward_s / (split[l].forward_s + split[l].backward_s), s = together.forward_and_backward_s[l];
    made.times[microbatch][degree].push_back({share * s, (1 - share) * s, together.update_s / static_cast<double>(split.size())});
  }
  return made;
}

bytes_per_second cards_of(const std::string& kind, int accelerators, const setting& s) {
  const io::json_document d = io::json_document::load(data + "/providers/network_coeffs_all_homo.json");
  const auto at = [](const exchange::foreign_object& o, const std::string& key) {
    return exchange::foreign_object(o.at(key, "an object"));
  };
  const exchange::foreign_object between = at(exchange::foreign_object{json_node(d)}, "inter");
  const std::string of = s.slow_ethernet && kind.find("GH") == std::string::npos ? "RTX-3090" : kind;
  std::vector<json_node> fit;  // coefficients, and the largest rate
  for (const json_node n :
       at(between, of).at(std::to_string(accelerators), "coefficients and a rate").elements("coefficients and a rate", 2)) {
    fit.push_back(n);
  }
  return bytes_per_second(s.bandwidth * fit.back().number(range::above_zero));
}

/// What was measured and what the simulator says.
struct outcome {
  double iteration_s = 0, reduction_s = 0, memory = 0, busiest = 0;
};
struct validation {
  exchange::sailor_plan given;
  std::string group = "", name = "", note = "";

  [[nodiscard]] std::string model() const { return given.layers() == 34 ? "GPT-Neo-2.7" : "OPT-350"; }
  [[nodiscard]] double measured_s() const { return given.iteration->value(); }
};

/// The chain with weights of a whole replica, what it keeps of a sample, and the times of every kind in the plan.
planning_graph graph_of(const validation& v, measured_costs& costs) {
  const exchange::sailor_replica& first = v.given.stages[0].replicas[0];
  const int degree = first.tensor_parallel;
  const std::string kind = first.machines[0].kind;
  const metis_profile one = read_metis(v.model(), kind, 1, degree), two = read_metis(v.model(), kind, 2, degree);
  planning_graph_builder b(v.model());
  for (std::size_t l = 0; l < one.memory.size(); ++l) {
    // Metis' memory of a layer is state + microbatch x activations.
    b.add_layer({.name = "layer" + std::to_string(l),
                 .forward_flops = flops(0),
                 .weight = one.sizes.parameters[l] * degree,
                 .activation = bytes((two.memory[l] - one.memory[l]) * degree)});
    if (l > 0) b.add_edge(layer_id(l - 1), layer_id(l), one.sizes.activations[l - 1]);
  }
  std::vector<exchange::sailor_measurement> measured;
  for (const device& d : exchange::sailor_devices(v.given)) {
    if (std::any_of(measured.begin(), measured.end(), [&](const exchange::sailor_measurement& m) { return m.device_kind == d.kind; }))
      continue;
    measured.push_back({d.kind, times_of(v.model(), d.kind, v.given.microbatch_size, degree), degree});
    for (const exchange::sailor_times& t : measured.back().profile.times.at(v.given.microbatch_size).at(degree)) {
      costs.update_s[d.kind].push_back(t.update_s);
    }
  }
  return exchange::with_sailor_profiles(std::move(b).build(), measured);
}

outcome predict(const validation& v, const setting& s) {
  measured_costs costs;
  std::vector<device> devices = exchange::sailor_devices(v.given);
  network_cards cards;
  for (device& d : devices) {
    d.memory = bytes(1e15);  // what fits is not asked
    cards.of_kind.emplace(d.kind, cards_of(d.kind, d.accelerators, s));
  }
  const cluster c = devices.size() == 1 ? cluster("one", devices[0]) : cluster(v.group, devices, cards);
  const planning_graph model = graph_of(v, costs);
  plan p = exchange::plan_of(v.given, model);
  p.workload.optimizer_factor = 3;
  p.transfers = s.how;
  const judgement j = judge(p, model, c, costs);
  outcome o{.iteration_s = j.evaluation.latency.value()};
  for (std::size_t t = 0; t < j.graph.transfers.size(); ++t) {
    if (j.graph.transfers[t].kind != transfer_kind::sync) continue;
    o.reduction_s = std::max(o.reduction_s, j.trace.transfers[t].end_s - j.trace.transfers[t].start_s);
  }
  for (const device& d : c.devices()) {
    const device_evaluation& e = j.evaluation.devices[d.id.index()];
    o.memory = std::max(o.memory, e.peak_memory.value() / d.accelerators);
    o.busiest = std::max(o.busiest, e.busy.value() / o.iteration_s);
  }
  return o;
}

/// All files, by group and name. Two whose measured numbers belong to each other, not to their plans, are marked.
std::vector<validation> read_validations() {
  std::vector<validation> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data + "/validation")) {
    if (entry.path().extension() != ".json") continue;
    validation v{.given = exchange::read_sailor_plan(io::json_document::load(entry.path().string()))};
    const std::string path = entry.path().generic_string();
    const auto has = [&](const char* folder) { return path.find(folder) != std::string::npos; };
    v.group = has("/mit/") ? "MIT, OPT-350M" : has("/GPT-NEO/") ? "Clariden, GPT-Neo" : "Clariden, OPT-350M";
    v.name = entry.path().stem().string().substr(std::string("plan_config_").size());
    std::replace(v.name.begin(), v.name.end(), '_', ' ');
    const exchange::sailor_plan counted = exchange::renumbered(v.given);
    if (counted.stages != v.given.stages) v.note = "a";
    v.given = counted;
    if (v.given.reduction && v.given.reduction->value() > 0.8 * v.measured_s()) v.note = "b";
    all.push_back(std::move(v));
  }
  std::sort(all.begin(), all.end(), [](const validation& x, const validation& y) {
    const auto key = [](const validation& v) {
      return std::tuple(v.group, v.given.stages.size() * v.given.stages[0].replicas.size(), v.name.size(), v.name);
    };
    return key(x) < key(y);
  });
  return all;
}

std::string percent(double predicted, double measured) { return number("%+.1f %%", 100 * (predicted / measured - 1)); }

/// Kendall's tau a: pairs in the same order less those in the other, over all pairs; ties count for neither.
double kendall_tau(const std::vector<std::pair<double, double>>& x) {
  int sum = 0, pairs = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = i + 1; k < x.size(); ++k) {
      const double a = (x[i].first - x[k].first) * (x[i].second - x[k].second);
      sum += a > 0 ? 1 : a < 0 ? -1 : 0;
      ++pairs;
    }
  }
  return pairs > 0 ? static_cast<double>(sum) / pairs : 1;
}

/// The median of sorted numbers.
double middle(const std::vector<double>& x) { return (x[(x.size() - 1) / 2] + x[x.size() / 2]) / 2; }

struct errors {
  std::vector<double> relative;
  std::vector<std::pair<double, double>> times, rates;  ///< predicted and measured

  void add(const validation& v, double predicted) {
    relative.push_back(std::abs(predicted / v.measured_s() - 1));
    times.emplace_back(predicted, v.measured_s());
    rates.emplace_back(v.given.batch / predicted, v.given.batch / v.measured_s());
  }
  [[nodiscard]] double median() const {
    std::vector<double> x = relative;
    std::sort(x.begin(), x.end());
    return middle(x);
  }
  [[nodiscard]] double worst() const { return *std::max_element(relative.begin(), relative.end()); }
};

/// Median and worst error of a group ("" = all) under a setting; marked files do not count.
errors errors_of(const std::vector<validation>& all, const std::string& group, const setting& s) {
  errors e;
  for (const validation& v : all) {
    if ((group.empty() || v.group == group) && v.note != "b") e.add(v, predict(v, s).iteration_s);
  }
  return e;
}

void add_plans(const sections& page, const std::vector<validation>& all) {
  std::vector<row> rows{{"cluster, model", "plan", "stages x replicas", "microbatches", "measured", "predicted, transfers overlap", "error",
                         "predicted, transfers block", "error", "busiest device"}};
  for (const validation& v : all) {
    const outcome o = predict(v, {}), b = predict(v, {.how = transfer_mode::block});
    const auto replicas = v.given.stages[0].replicas.size();
    rows.push_back({v.group, v.name + (v.note.empty() ? "" : " (" + v.note + ")"),
                    std::to_string(v.given.stages.size()) + " x " + std::to_string(replicas),
                    std::to_string(v.given.batch / v.given.microbatch_size / static_cast<int>(replicas)) + " of " +
                        std::to_string(v.given.microbatch_size),
                    number("%.4g s", v.measured_s()), number("%.4g s", o.iteration_s), percent(o.iteration_s, v.measured_s()),
                    number("%.4g s", b.iteration_s), percent(b.iteration_s, v.measured_s()), number("%.0f %%", 100 * b.busiest)});
  }
  page.add_csv("sailor.plans.csv", rows);
}

const std::vector<std::string> groups{"Clariden, OPT-350M", "Clariden, GPT-Neo", "MIT, OPT-350M", ""};
std::string title_of(const std::string& group) { return group.empty() ? "all" : group; }

void add_summary(const sections& page, const std::vector<validation>& all) {
  std::vector<row> rows{{"cluster, model", "transfers", "plans", "median error", "worst", "tau of times", "tau of samples/s"}};
  for (const std::string& group : groups) {
    for (const transfer_mode how : {transfer_mode::overlap, transfer_mode::block}) {
      const errors e = errors_of(all, group, {.how = how});
      rows.push_back({title_of(group), how == transfer_mode::overlap ? "overlap" : "block", std::to_string(e.relative.size()),
                      number("%.1f %%", 100 * e.median()), number("%.1f %%", 100 * e.worst()), number("%.2f", kendall_tau(e.times)),
                      number("%.2f", kendall_tau(e.rates))});
    }
  }
  page.add("summary", bench::markdown_table(rows));
}

void add_sensitivity(const sections& page, const std::vector<validation>& all) {
  std::vector<row> rows{{"setting, transfers block"}};
  for (const std::string& group : groups) rows[0].push_back(title_of(group));
  const auto add = [&](const std::string& name, const setting& s) {
    row r{name};
    for (const std::string& group : groups) {
      const errors e = errors_of(all, group, s);
      r.push_back(number("%.1f", 100 * e.median()) + ", " + number("%.1f", 100 * e.worst()));
    }
    rows.push_back(std::move(r));
  };
  add("bandwidth as measured", {.how = transfer_mode::block});
  add("half of it", {.how = transfer_mode::block, .bandwidth = 0.5});
  add("twice as much", {.how = transfer_mode::block, .bandwidth = 2});
  add("1 Gbit/s for every machine at MIT", {.how = transfer_mode::block, .slow_ethernet = true});
  page.add("sensitivity", bench::markdown_table(rows, 1));
}

/// What Sailor's simulator adds per accelerator of Clariden for loaded kernels and the framework: 4.76 GB + 300 MB.
constexpr double loaded_kernels = 5.06e9;

void add_parts(const sections& page, const std::vector<validation>& all) {
  std::vector<row> rows{{"cluster, model", "plan", "reduction: measured", "predicted", "measured / predicted",
                         "memory of an accelerator: measured", "predicted", "error", "with 5.06 GB of kernels", "error"}};
  std::vector<double> with_kernels;
  for (const validation& v : all) {
    const outcome o = predict(v, {.how = transfer_mode::block});
    const double memory = v.given.peak_memory->value(), more = o.memory + loaded_kernels;
    rows.push_back({v.group, v.name + (v.note.empty() ? "" : " (" + v.note + ")"), number("%.4g s", v.given.reduction->value()),
                    o.reduction_s > 0 ? number("%.4g s", o.reduction_s) : "-",
                    o.reduction_s > 0 ? number("%.2f", v.given.reduction->value() / o.reduction_s) : "-", number("%.2f GB", memory / 1e9),
                    number("%.2f GB", o.memory / 1e9), percent(o.memory, memory)});
    const bool clariden = v.group.starts_with("Clariden");
    rows.back().push_back(clariden ? number("%.2f GB", more / 1e9) : "-");
    rows.back().push_back(clariden ? percent(more, memory) : "-");
    if (clariden && v.note != "b") with_kernels.push_back(std::abs(more / memory - 1));
  }
  std::sort(with_kernels.begin(), with_kernels.end());
  page.add_csv("sailor.parts.csv", rows);
  std::vector<row> spans{{"cluster, model", "reductions: measured / predicted", "memory: error", "with 5.06 GB of kernels"}};
  for (const std::string& group : groups) {
    if (group.empty()) continue;
    const auto keep = [&](const row& r) { return r[0] == group && !r[1].ends_with("(b)"); };
    spans.push_back({group, bench::span_of(rows, 4, keep).text("%.2f"), bench::span_of(rows, 7, keep).text("%+.1f", " %"),
                     bench::span_of(rows, 9, keep).text("%+.1f", " %")});
  }
  page.add("parts", bench::markdown_table(spans, 1) + "\nMemory on Clariden with the kernels, " + std::to_string(with_kernels.size()) +
                        " plans: median error " + number("%.1f %%", 100 * middle(with_kernels)) + ", worst " +
                        number("%.1f %%.\n", 100 * with_kernels.back()));
}

void add_cards(const sections& page) {
  std::vector<row> rows{{"kind", "accelerators of a machine", "to other machines"}};
  for (const auto& [kind, accelerators] : std::vector<std::pair<std::string, int>>{
           {"GH-96", 4}, {"RTX-3090", 2}, {"RTX-3090", 8}, {"RTX-2080", 8}, {"Titan-RTX", 2}, {"Titan-RTX", 8}}) {
    rows.push_back({kind, std::to_string(accelerators), number("%.4g GB/s", cards_of(kind, accelerators, {}).value() / 1e9)});
  }
  page.add("cards", bench::markdown_table(rows, 1));
}

}  // namespace

int main(int argc, char** argv) try {
  const sections page(argc, argv);
  if (!std::filesystem::exists(data)) {
    std::fprintf(stderr, "reproduce_sailor: SKIPPED, there is no %s\n", data.c_str());
    if (!page.quick()) return 1;
    for (const char* name : {"cards", "summary", "sensitivity", "parts"}) page.add(name, "Skipped.");
    return 0;
  }
  std::vector<validation> all = read_validations();
  if (page.quick()) {  // the first of each group
    const auto same = [](const validation& x, const validation& y) { return x.group == y.group; };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
  }
  add_cards(page);
  add_plans(page, all);
  add_summary(page, all);
  add_sensitivity(page, all);
  add_parts(page, all);
} catch (const std::exception& e) {
  std::fprintf(stderr, "reproduce_sailor: %s\n", e.what());
  return 1;
}
