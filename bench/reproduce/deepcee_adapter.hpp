// SPDX-License-Identifier: BSL-1.0
#pragma once
/// DeepCEE's dynamic environment adapter (section 3.4) on pipelines across regions: under its 40 to 60 % noise (Fig 12), on measured
/// bandwidth, and what it costs while the network is calm.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/adapt/microbatch_adapter.hpp>
#include <hetplan/adapt/run.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/simulate/dispatch.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/zoo/models.hpp>

#include <support/random_source.hpp>

#include "reproduce/sections.hpp"

namespace bench {

/// A pipeline of one device a region, in this order, and the resources that are shared by regions: those have noise.
struct regions_line {
  std::string setting;
  std::vector<std::string> devices;
};
inline const std::array<regions_line, 3> lines_of_regions{{
    {"deepcee-four", {"cloud0", "edge0", "end0", "end2"}},
    {"deepcee-1", {"cloud0", "edge0"}},
    {"deepcee-2", {"cloud0", "edge0", "end0", "end1"}},
}};

/// The devices of a line, as a cluster of their own.
inline hetplan::cluster cluster_of(const regions_line& line) {
  using namespace hetplan;
  const cluster all = io::read_cluster(io::json_document::load(HETPLAN_SOURCE_DIR "/bench/settings/" + line.setting + ".json"));
  std::vector<char> keep;
  for (const device& d : all.devices()) keep.push_back(std::ranges::find(line.devices, d.name) != line.devices.end() ? 1 : 0);
  std::vector<bytes_per_second> capacities;
  for (const resource& r : all.network().resources()) capacities.push_back(r.capacity);
  return part_of(all, keep, capacities).devices;
}

/// Resources between regions; where a setting has none, the ports.
inline std::vector<hetplan::resource_id> between_regions(const hetplan::cluster& c) {
  using namespace hetplan;
  std::vector<resource_id> found, ports;
  const auto resources = c.network().resources();
  for (std::size_t r = 0; r < resources.size(); ++r) {
    if (resources[r].name.find("->") != std::string::npos) found.push_back(resource_id(r));
    else ports.push_back(resource_id(r));
  }
  return found.empty() ? ports : found;
}

/// A stage on each device, balanced, in microbatches of a size: by the faster of compact and eager.
inline std::optional<hetplan::ranked_plan> dispatched_pipeline(const hetplan::planning_problem& problem, int size) {
  using namespace hetplan;
  planning_problem sized = problem;
  sized.job.microbatch_sizes = {size};
  std::vector<device_id> as_listed;
  for (const device& d : sized.cluster.devices()) as_listed.push_back(d.id);
  const plan_result found =
      recipes::detail::pipeline_in(sized, objective_of_job(sized.job), 1, {as_listed}, {}, static_cast<int>(sized.cluster.size()));
  if (found.plans.empty()) return std::nullopt;
  const plan& placed = found.plans.front().plan;
  std::optional<ranked_plan> best;
  for (const plan& p : {dispatch(placed, sized, compact{}), dispatch(placed, sized, eager{})}) {
    const stage_costs s(problem, p);
    const evaluation e = judge(s, problem.models).evaluation;
    if (best && best->evaluation.latency <= e.latency) continue;
    best = {p, e};
  }
  return best;
}

/// What the network does: shares of what resources between regions have.
struct weather {
  std::string name;
  hetplan::adapt::timeline events;
};
/// 40 to 60 % less, anew for every resource fifty times, while it is not calm.
template <class Calm>
weather noise(std::string name, const hetplan::cluster& c, double duration_s, const Calm& is_calm) {
  using namespace hetplan;
  weather w{std::move(name), {seconds(duration_s)}};
  hetplan::test::random_source random(1);
  for (int step = 0; step < 50; ++step) {
    for (const resource_id r : between_regions(c)) {
      const double left = random.between(0.4, 0.6);
      w.events.events.push_back(
          {seconds(duration_s * step / 50), adapt::capacity_becomes{r, (is_calm(step) ? 1 : left) * c.network()[r].capacity}});
    }
  }
  return w;
}
/// Measured bandwidth, its mean what the resource has; every resource begins elsewhere among the traces.
inline std::optional<weather> measured(const std::string& kind, const hetplan::cluster& c, double duration_s) {
  using namespace hetplan;
  const std::filesystem::path folder(HETPLAN_SOURCE_DIR "/../shared/data/bandwidth");
  if (!std::filesystem::exists(folder)) return std::nullopt;
  std::vector<std::string> files;
  for (const auto& f : std::filesystem::directory_iterator(folder)) {
    if (f.path().filename().string().starts_with("norway_" + kind)) files.push_back(f.path().string());
  }
  std::sort(files.begin(), files.end());
  weather w{"measured, " + kind, {seconds(duration_s)}};
  std::size_t next = 0;
  for (const resource_id r : between_regions(c)) {
    const auto trace = adapt::scaled(io::read_bandwidth_trace(files[next++ % files.size()]), c.network()[r].capacity);
    for (adapt::event e : adapt::events_of(trace, r, w.events.duration, adapt::past_the_end::repeats)) w.events.events.push_back(e);
  }
  std::stable_sort(w.events.events.begin(), w.events.events.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  return w;
}

/// Samples a second of whole iterations.
inline double rate_of(const hetplan::adapt::history& h, double batch) {
  double end_s = 0;
  for (const hetplan::adapt::stretch& s : h.stretches) end_s = s.iterations > 0 ? s.end_s : end_s;
  return end_s > 0 ? batch * static_cast<double>(h.iterations) / end_s : 0;
}

/// The paper's rule, and the same under the judge, beside the plan that stays as it is: the size that is best while the network is calm,
/// and the 32 of the paper's Fig 8.
inline void add_adapter(const sections& page) {
  using namespace hetplan;
  struct trained {
    std::string name;
    zoo::model_options options;
  };
  const zoo::model_options small{.input = zoo::image_shape{3, 32, 32}}, text{.tokens = 512, .dtype = zoo::precision::fp32};
  std::vector<trained> models{{"resnet101", small}, {"gpt2", text}, {"bert-small", text}, {"efficientnet-b1", small}};
  if (page.quick()) models.resize(1);
  std::vector<row> rows{
      {"setting", "model", "network", "microbatch", "static, samples/s", "rule", "judged", "plans, rule", "plans, judged"}};
  struct gain {
    std::vector<double> rule, judged;
  };
  std::map<std::pair<std::string, std::string>, gain> by_kind;
  for (const regions_line& line : lines_of_regions) {
    const cluster devices = cluster_of(line);
    for (const trained& m : models) {
      const planning_graph model = zoo::model(m.name, m.options);
      const planning_problem problem{model, devices, roofline{}, job{.batch = 128}};
      std::optional<ranked_plan> fastest;
      const std::optional<ranked_plan> of_32 = dispatched_pipeline(problem, 32);
      for (const int size : {1, 2, 4, 8, 16, 32, 64, 128}) {
        const auto p = dispatched_pipeline(problem, size);
        if (p && (!fastest || p->evaluation.latency < fastest->evaluation.latency)) fastest = p;
      }
      std::vector<ranked_plan> all_planned;
      for (const auto& p : {fastest, of_32}) {
        if (p && (all_planned.empty() || all_planned.front() != *p)) all_planned.push_back(*p);
      }
      for (const auto& [planned, e] : all_planned) {
        // So long that what is noticed after a second has lasted.
        const double duration_s = std::max(page.quick() ? 20.0 : 120.0, (page.quick() ? 20 : 80) * e.latency.value());
        std::vector<weather> all{noise("calm", devices, duration_s, [](int) { return true; }),
                                 noise("40 to 60 % less", devices, duration_s, [](int) { return false; })};
        if (&line == &lines_of_regions.front()) {
          all.push_back(noise("half of the time", devices, duration_s, [](int step) { return step / 10 % 2 == 0; }));
          for (const char* kind : {"bus", "train"}) {
            if (auto w = measured(kind, devices, duration_s)) all.push_back(std::move(*w));
          }
        }
        for (const weather& w : all) {
          const auto lives = [&](auto policy) { return adapt::run(problem, w.events, policy); };
          const adapt::history still = lives(adapt::static_plan(planned));
          const adapt::history rule = lives(adapt::microbatch_adapter(problem, planned, {.judged = false}));
          const adapt::history judged = lives(adapt::microbatch_adapter(problem, planned));
          const double each = rate_of(still, 128);
          const bool is_best = planned == fastest->plan;
          gain& mine = by_kind[{is_best ? "its best size" : "32", w.name.starts_with("measured") ? "measured" : w.name}];
          mine.rule.push_back(rate_of(rule, 128) / each);
          mine.judged.push_back(rate_of(judged, 128) / each);
          rows.push_back({line.setting, m.name, w.name, std::to_string(planned.microbatch_size), number("%.3g", each),
                          number("%.3f", rate_of(rule, 128) / each), number("%.3f", rate_of(judged, 128) / each),
                          std::to_string(rule.plans.size()), std::to_string(judged.plans.size())});
        }
      }
    }
  }
  page.add_csv("deepcee.adapter.csv", rows);
  // By what was planned and what the network does: samples a second over those of the plan that stays.
  std::vector<row> summary{{"planned at", "network", "runs", "rule: least", "median", "most", "judged: least", "median", "most"}};
  for (const auto& [kind, gains] : by_kind) {
    const auto of = [&](const std::vector<double>& given) {
      std::vector<double> v = given;
      std::ranges::sort(v);
      return std::vector{number("%.2f", v.front()), number("%.2f", v[v.size() / 2]), number("%.2f", v.back())};
    };
    const auto rule = of(gains.rule), judged = of(gains.judged);
    summary.push_back(
        {kind.first, kind.second, std::to_string(gains.rule.size()), rule[0], rule[1], rule[2], judged[0], judged[1], judged[2]});
  }
  page.add("adapter", markdown_table(summary, 2));
}

}  // namespace bench
