// SPDX-License-Identifier: BSL-1.0
// The tables and figures of DeepCEE's evaluation, ours beside the paper's: the sections of docs/reproduction/deepcee.md (update.py).

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/estimate/estimate.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/deepcee.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/solve/glpk.hpp>
#include <hetplan/zoo/models.hpp>

#include "reproduce/deepcee_adapter.hpp"
#include "reproduce/deepcee_schedules.hpp"
#include "reproduce/plot_svg.hpp"
#include "reproduce/sections.hpp"

using namespace hetplan;
using bench::number, bench::row, bench::sections;

namespace {

struct trained_model {
  std::string name;  ///< the zoo's
  std::string title;
  bool of_the_paper = true;
};
const std::vector<trained_model> all_models{{"resnet101", "ResNet-101"},         {"efficientnet-b1", "EfficientNet-B1"},
                                            {"bert-small", "BERT-small"},        {"gpt2", "GPT-2"},
                                            {"qwen3-1.7b", "Qwen3-1.7B", false}, {"llama3-8b", "Llama-3-8B", false}};

planning_graph graph_of(const trained_model& m) {
  zoo::model_options o;
  if (zoo::takes_tokens(m.name)) o.dtype = zoo::precision::fp32;
  else o.input = zoo::image_shape{3, 32, 32};
  return zoo::model(m.name, o);
}
cluster setting(const std::string& name) {
  return io::read_cluster(io::json_document::load(HETPLAN_SOURCE_DIR "/bench/settings/" + name + ".json"));
}
planning_problem problem_of(const planning_graph& g, const cluster& c, int batch = 128) {
  return {g, c, profiled_or_roofline{}, job{.batch = batch}, {}, glpk_lp{}};
}
cluster part(const cluster& c, const std::function<bool(const device&)>& keep) {
  std::vector<char> kept;
  for (const device& d : c.devices()) kept.push_back(keep(d) ? 1 : 0);
  std::vector<bytes_per_second> capacities;
  for (const resource& r : c.network().resources()) capacities.push_back(r.capacity);
  return part_of(c, kept, capacities).devices;
}
bool is_cloud(const device& d) { return d.name.starts_with("cloud"); }

using planner = std::function<plan_result(const planning_problem&)>;
template <class R>
planner plain(R recipe) {
  return [recipe](const planning_problem& p) { return recipe(p, minimize_latency{}, 1, {}); };
}

/// DeepSpeed's pipeline: stages of equal FLOP on all devices in the cluster's order, 1F1B, transfers that stop both ends.
plan_result deepspeed(const planning_problem& p) {
  plan_result even = recipes::even_split(p, minimize_latency{}, 10);
  ranking best(p, minimize_latency{}, 1);
  for (plan x : plans_of(even.plans)) {
    x.planner = "deepspeed";
    x.transfers = transfer_mode::block;
    if (best.consider(std::move(x), 10) == control::stop) break;
  }
  return even.plans.empty() ? even : std::move(best).result();
}

struct named {
  std::string name;
  planner plan;
};
const std::vector<named>& planners() {
  static const std::vector<named> all{
      {"on-device", plain(recipes::on_device)},
      {"cloud only",
       [](const planning_problem& p) {
         const cluster cloud = part(p.cluster, is_cloud);
         const planning_problem there(p.model, cloud, profiled_or_roofline{}, p.job, {}, glpk_lp{});
         return recipes::dora(there, minimize_latency{}, 1);
       }},
      {"DDP", plain(recipes::ddp)},
      {"FSDP", plain(recipes::fsdp)},
      {"ZeRO-2", plain(recipes::zero2)},
      {"DeepSpeed pipeline", deepspeed},
      {"GPipe", plain(recipes::gpipe)},
      {"1F1B", plain(recipes::even_split)},
      {"Alpa", plain(recipes::alpa)},
      {"Metis", plain(recipes::metis)},
      {"HetPipe", plain(recipes::hetpipe)},
      {"Asteroid", plain(recipes::asteroid)},
      {"DeepCEE as printed",
       [](const planning_problem& p) { return recipes::deepcee(p, minimize_latency{}, 1, recipes::deepcee_as_printed()); }},
      {"without second level",
       [](const planning_problem& p) { return recipes::deepcee(p, minimize_latency{}, 1, recipes::deepcee_as_printed(false)); }},
      {"DeepCEE", plain([](const planning_problem& p, const any_objective& o, int keep, const candidate_observer& w) {
         return recipes::deepcee(p, o, keep, w);
       })},
      {"zero bubble", plain(recipes::zero_bubble)},
      {"Dora", plain([](const planning_problem& p, const any_objective& o, int keep, const candidate_observer& w) {
         return recipes::dora(p, o, keep, w);
       })}};
  return all;
}

std::optional<double> latency_of(const plan_result& r) {
  return r.plans.empty() ? std::nullopt : std::optional(r.plans.front().evaluation.latency.value());
}
std::string latency_text(const plan_result& r) {
  if (const auto s = latency_of(r)) return number("%.4g", *s);
  return r.binding && r.binding->kind == limit_kind::memory ? "out of memory" : "none";
}

/// Eq. 1 for a plan that is a chain, by what it would be under 1F1B: F, c forward, the collectives.
std::optional<double> eq_1(const planning_problem& p, const plan& x) {
  plan straight = x;
  straight.schedule = {};
  straight.transfers = transfer_mode::overlap;
  for (const stage& s : straight.stages) {
    if (!s.is_plain()) return {};
  }
  try {
    const stage_costs whole(straight, p.model, p.cluster, p.cost);
    const pipeline_steps steps = make_steps(whole);
    double fill = 0, longest = 0;
    for (std::size_t s = 0; s < steps.stages.size(); ++s) {
      const auto& st = steps.stages[s];
      longest = std::max(longest, fill + steps.microbatches * st.total_s + st.collective_s);
      if (st.out.size() > 1 || st.in.size() > 1) return {};
      const double c = st.out.empty() ? 0 : steps.links[st.out.front()].forward_s;
      fill += st.forward_s + c + std::max(0.0, c - st.forward_s);
    }
    return longest;
  } catch (const invalid_input&) {  // several stages of a device
    return {};
  }
}

struct measured {
  std::map<std::string, std::optional<double>> by_planner;
};

/// Settings 1 and 2: all rows as a CSV, and what each takes.
std::map<std::pair<std::string, std::string>, measured> add_throughput(const sections& page) {
  std::vector<row> csv{
      {"setting", "model", "planner", "seconds per iteration", "samples/s", "period [s]", "stages", "devices", "eq. 1 / simulated"}};
  std::map<std::pair<std::string, std::string>, measured> all;
  for (const std::string name : {"deepcee-1", "deepcee-2"}) {
    const cluster c = setting(name);
    for (const trained_model& m : all_models) {
      if (page.quick() && m.name != "resnet101") continue;
      const planning_graph g = graph_of(m);
      const planning_problem p = problem_of(g, c);
      for (const named& each : planners()) {
        if (page.quick() && each.name != "DDP" && each.name != "DeepCEE") continue;
        const plan_result r = each.plan(p);
        all[{name, m.title}].by_planner[each.name] = latency_of(r);
        row line{name.substr(8), m.title, each.name, latency_text(r)};
        if (!r.plans.empty()) {
          const auto& [best, e] = r.plans.front();
          const double t = e.latency.value();
          std::size_t devices = 0;
          for (const device_evaluation& d : e.devices) devices += d.used ? 1 : 0;
          const auto estimate = each.name == "cloud only" ? std::nullopt : eq_1(p, best);
          line.insert(line.end(), {number("%.4g", 128 / t), number("%.4g", e.period().value()), std::to_string(best.stages.size()),
                                   std::to_string(devices), estimate ? number("%.2f", *estimate / t) : ""});
        } else {
          line.insert(line.end(), {"", "", "", "", ""});
        }
        csv.push_back(std::move(line));
      }
    }
  }
  page.add_csv("deepcee.throughput.csv", csv);
  return all;
}

std::string range_of(const std::vector<double>& x) {
  if (x.empty()) return "-";
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  return number("%.3g", *low) + " to " + number("%.3g", *high);
}

/// Fig 9 and 11 as factors: who is slower than DeepCEE, over the paper's four models.
void add_factors(const sections& page, const std::map<std::pair<std::string, std::string>, measured>& all) {
  const std::vector<std::tuple<std::string, std::string, std::string>> paper{
      {"DDP", "2.3 to 2.38", "1.74 to 1.85"},
      {"FSDP", "2.05 to 2.11", "1.61 to 1.76"},
      {"DeepSpeed pipeline", "1.04 to 1.57", "1.04 to 1.57"},
      {"GPipe", "1.13 to 1.71", "1.13 to 1.71"},
      {"Alpa", "2.46 to 2.85", "-"},
      {"Metis", "1.49 to 1.52", "-"},
      {"HetPipe", "2.03 to 2.18", "-"},
      {"Asteroid", "1.04 to 1.05", "-"},
      {"without second level", "1.12 to 1.14", "-"},
      {"on-device", "-", "-"},
  };
  std::vector<row> rows{{"slower than DeepCEE as printed", "setting 1: paper", "ours", "setting 2: paper", "ours"}};
  for (const auto& [name, first, second] : paper) {
    row r{name};
    for (const auto& [setting, theirs] : {std::pair{std::string("deepcee-1"), first}, {std::string("deepcee-2"), second}}) {
      std::vector<double> factors;
      for (const trained_model& m : all_models) {
        const auto at = all.find({setting, m.title});
        if (!m.of_the_paper || at == all.end()) continue;
        const auto get = [&](const std::string& n) {
          const auto it = at->second.by_planner.find(n);
          return it == at->second.by_planner.end() ? std::nullopt : it->second;
        };
        if (get(name) && get("DeepCEE as printed")) factors.push_back(*get(name) / *get("DeepCEE as printed"));
      }
      r.insert(r.end(), {theirs, range_of(factors)});
    }
    rows.push_back(std::move(r));
  }
  page.add("factors", bench::markdown_table(rows, 1));
}

/// Models that fit no single GPU: where regions matter.
void add_large(const sections& page, const std::map<std::pair<std::string, std::string>, measured>& all) {
  std::vector<row> rows{{"s per iteration", "Qwen3-1.7B, setting 1", "setting 2", "Llama-3-8B, setting 1", "setting 2"}};
  for (const char* who : {"Metis", "Asteroid", "DeepCEE as printed", "DeepCEE", "zero bubble", "Dora"}) {
    row r{who};
    for (const std::string model : {"Qwen3-1.7B", "Llama-3-8B"}) {
      for (const std::string setting : {"deepcee-1", "deepcee-2"}) {
        const auto at = all.find({setting, model});
        const bool known = at != all.end() && at->second.by_planner.contains(who);
        const auto s = known ? at->second.by_planner.at(who) : std::nullopt;
        r.push_back(s ? number("%.4g", *s) : "-");
      }
    }
    rows.push_back(std::move(r));
  }
  page.add("large", bench::markdown_table(rows, 1));
}

/// One GPU, the cloud, and what frameworks do: the first paragraph's numbers.
void add_testbed(const sections& page) {
  std::vector<row> rows{{"128 samples, setting 1", "one RTX 4090", "DDP, 22 GPUs", "GPipe", "DeepCEE as printed"}};
  const cluster c = setting("deepcee-1");
  for (const trained_model& m : all_models) {
    if (!m.of_the_paper || (page.quick() && m.name != "resnet101")) continue;
    const planning_graph g = graph_of(m);
    const planning_problem p = problem_of(g, c);
    row r{m.title};
    for (const char* who : {"on-device", "DDP", "GPipe", "DeepCEE as printed"}) {
      const auto it = std::ranges::find(planners(), who, &named::name);
      const std::string text = latency_text(it->plan(p));
      r.push_back(text.find_first_of("0123456789") == 0 ? text + " s" : text);
    }
    rows.push_back(std::move(r));
  }
  page.add("testbed", bench::markdown_table(rows, 1));
}

/// Section 4.2: batch 128 -> 256, and Fig 12b's transfer beside training.
void add_batch_and_traffic(const sections& page) {
  std::vector<row> rows{
      {"DeepCEE as printed", "throughput, batch 128 to 256: setting 1", "setting 2", "a transfer beside training, setting 1"}};
  for (const trained_model& m : all_models) {
    if (!m.of_the_paper || (page.quick() && m.name != "resnet101")) continue;
    const planning_graph g = graph_of(m);
    row r{m.title};
    std::string loss = "-";
    for (const std::string name : {"deepcee-1", "deepcee-2"}) {
      const cluster c = setting(name);
      const planning_problem small = problem_of(g, c), large = problem_of(g, c, 256);
      const plan_result a = recipes::deepcee(small, minimize_latency{}, 1, recipes::deepcee_as_printed()),
                        b = recipes::deepcee(large, minimize_latency{}, 1, recipes::deepcee_as_printed());
      const auto one = latency_of(a), two = latency_of(b);
      r.push_back(one && two ? number("%+.1f %%", 100 * (2 * *one / *two - 1)) : "-");
      if (name != "deepcee-1" || a.plans.empty()) continue;
      // From the first cloud machine to the first of the edge and of the end, as long as the iteration lasts.
      simulator_options beside;
      for (const char* to : {"edge0", "end0"}) {
        beside.background.push_back({c.find("cloud0"), c.find(to), bytes(1e15)});
        beside.background.push_back({c.find(to), c.find("cloud0"), bytes(1e15)});
      }
      const double busy = judge(a.plans.front().plan, g, c, small.cost, {}, beside).evaluation.latency.value();
      loss = number("%.1f %%", 100 * (1 - *one / busy));
    }
    r.push_back(loss + " less");
    rows.push_back(std::move(r));
  }
  page.add("batch", bench::markdown_table(rows, 1));
}

/// Fig 13: edge and end servers 1, 3, 6 beside the cloud.
void add_scaling(const sections& page) {
  const cluster whole = setting("deepcee-1");
  std::vector<row> rows{
      {"GPT-2, batch 128, setting 1", "FSDP / DeepCEE as printed", "GPipe / DeepCEE as printed", "s of DeepCEE as printed"}};
  const planning_graph g = graph_of(all_models[page.quick() ? 0 : 3]);
  for (const int servers : {1, 3, 6}) {
    if (page.quick() && servers > 1) break;
    // Of the edge's machines each has two GPUs, of the end's one.
    const auto keep = [&](const device& d) {
      if (is_cloud(d)) return true;
      const int at = std::stoi(d.name.substr(d.name.find_first_of("0123456789")));
      return d.name.starts_with("edge") ? at < servers : at < (servers + 1) / 2;
    };
    const cluster c = part(whole, keep);
    const planning_problem p = problem_of(g, c);
    const auto own = latency_of(recipes::deepcee(p, minimize_latency{}, 1, recipes::deepcee_as_printed()));
    const auto fsdp = latency_of(recipes::fsdp(p, minimize_latency{}, 1)), gpipe = latency_of(recipes::gpipe(p, minimize_latency{}, 1));
    const auto factor = [&](std::optional<double> x) { return own && x ? number("%.2f", *x / *own) : "-"; };
    rows.push_back({std::to_string(servers) + " edge and end GPUs of each kind, about", factor(fsdp), factor(gpipe),
                    own ? number("%.4g", *own) : "-"});
  }
  page.add_csv("deepcee.scaling.csv", rows);
}

/// Fig 11b, and larger ones.
void add_planning(const sections& page) {
  const std::map<std::string, std::map<std::string, std::string>> paper{
      {"ResNet-101", {{"Alpa", "286.3 s"}, {"Metis", "230 s"}, {"Asteroid", "197 s"}}},
      {"GPT-2", {{"Alpa", "130 s"}, {"Metis", "43 s"}, {"Asteroid", "59 s"}}}};
  std::vector<row> rows{{"model, setting 1", "planner", "paper", "ours"}};
  const cluster c = setting("deepcee-1");
  const auto seconds_text = [](double s) { return number("%.3g s", s); };
  for (const trained_model& m : all_models) {
    if (page.quick() && m.name != "resnet101") continue;
    const planning_graph g = graph_of(m);
    const planning_problem p = problem_of(g, c);
    for (const char* who : {"Alpa", "Metis", "Asteroid", "DeepCEE as printed", "DeepCEE"}) {
      const auto at = paper.find(m.title);
      const bool told = at != paper.end() && at->second.contains(who);
      if (!told && !std::string(who).starts_with("DeepCEE")) continue;
      if (!m.of_the_paper && std::string(who) != "DeepCEE") continue;
      const auto it = std::ranges::find(planners(), who, &named::name);
      rows.push_back({m.title, who, told ? at->second.at(who) : "-", seconds_text(bench::seconds_of([&] { return it->plan(p); }))});
    }
  }
  if (!page.quick()) {
    const cluster many = bench::many_regions(50, 20);
    const planning_graph g = graph_of(all_models[3]);
    const planning_problem p = problem_of(g, many);
    rows.push_back({"GPT-2, 1000 devices in 50 regions", "DeepCEE", "-",
                    seconds_text(bench::seconds_of([&] { return recipes::deepcee(p, minimize_latency{}, 1); }))});
  }
  page.add_csv("deepcee.planning.timed.csv", rows);
  std::erase_if(rows, [](const row& r) { return r[2] == "-" && (r[1] != "DeepCEE" || !r[0].starts_with("GPT-2")); });
  page.add_timed("planning", bench::markdown_table(rows));
}

}  // namespace

int main(int argc, char** argv) {
  const sections page(argc, argv);
  add_testbed(page);
  const auto all = add_throughput(page);
  add_factors(page, all);
  add_large(page, all);
  add_batch_and_traffic(page);
  add_scaling(page);
  bench::add_schedules(page);
  bench::add_adapter(page);
  add_planning(page);
}
