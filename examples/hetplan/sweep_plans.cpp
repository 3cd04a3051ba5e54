// SPDX-License-Identifier: BSL-1.0
#include "sweep_plans.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/results_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

namespace cli {

using namespace hetplan;
using io::json;

plan_sweep::plan_sweep(const common_options& options, const std::string& file, const io::json_document& document)
    : sweep_cases(file), options_(options) {
  const io::sweep s = io::read_sweep(document, planner_names());
  if (!options_.tokens) options_.tokens = s.tokens;
  if (options_.dtype.empty()) options_.dtype = s.dtype;
  if (options_.weights.empty()) options_.weights = s.weights;
  const auto where = [](const char* list, std::size_t i) { return std::string(list) + std::to_string(i); };
  const auto load = [&](const auto& built_in, const std::string& name, auto&& read) {
    const bool known = std::find(built_in.begin(), built_in.end(), name) != built_in.end();
    if (known && !std::filesystem::exists(path_of(name))) return read(name);
    files_.push_back(path_of(name));
    return read(files_.back());
  };
  common_options left = options_;  // options that no model uses
  const auto used_options = [&](const common_options& o) {
    if (o.tokens) left.tokens.reset();
    if (o.input) left.input.reset();
    if (!o.dtype.empty()) left.dtype.clear();
    if (!o.weights.empty()) left.weights.clear();
    if (o.lora) left.lora.reset();
    left.fuse.clear();  // fusion works for all models
  };
  for (std::size_t i = 0; i < s.models.size(); ++i) {
    const std::string& name = s.models[i];
    planning_graph model = below(file, where("/models/", i), [&] {
      return load(zoo::model_names(), name, [&](const std::string& from) {
        used_options(options_for(options_, from));
        return load_model(options_for(options_, from), from);
      });
    });
    const std::uint64_t d = digest(name, io::write_model(model));
    models_.push_back({name, std::move(model), d});
  }
  const auto refuse_of_file = [&](const char* field, const std::string& whose) {
    throw invalid_input(io::escaped(file) + ": /" + field + ": only a built-in " + whose + "model takes it, and the sweep has none");
  };
  if (left.tokens && !options.tokens) refuse_of_file("tokens", "language ");
  if (!left.dtype.empty() && options.dtype.empty()) refuse_of_file("dtype", "");
  if (!left.weights.empty() && options.weights.empty()) refuse_of_file("weights", "language ");
  require_no_model_options(left, "any of " + file);
  for (std::size_t i = 0; i < s.clusters.size(); ++i) {
    const std::string& name = s.clusters[i];
    cluster c = below(file, where("/clusters/", i),
                      [&] { return load(zoo::clusters_and_devices(), name, [](const std::string& from) { return load_cluster(from); }); });
    const std::uint64_t d = digest(name, io::write_cluster(c));
    clusters_.push_back({name, std::move(c), d});
  }
  std::vector<io::json_node> job_nodes;
  for (const io::json_node n : io::json_object(io::json_node(document), io::keys::sweep).at("jobs", "").elements(""))
    job_nodes.push_back(n);
  for (std::size_t i = 0; i < s.jobs.size(); ++i) {
    std::optional<io::json_document> job_file;
    if (!s.jobs[i].job) {
      files_.push_back(path_of(s.jobs[i].name));
      job_file = below(file, where("/jobs/", i), [&] { return io::json_document::load(files_.back()); });
    }
    job wanted = s.jobs[i].job ? *s.jobs[i].job : below(file, where("/jobs/", i), [&] { return io::read_job(*job_file); });
    job asked = wanted;
    if (!s.latencies.empty()) asked.qoe.latency = s.latencies.front();
    for (std::string& line : io::unused_job_fields(job_file ? io::json_node(*job_file) : job_nodes[i], asked))
      warnings_.push_back(std::move(line));
    if (!s.latencies.empty() && asked.effective_objective() != objective_kind::qoe) {
      warnings_.push_back(file + ": /latencies: the objective of job " + io::in_quotes(s.jobs[i].name) + ", " +
                          io::in_quotes(to_string(asked.effective_objective())) + ", does not ask for a latency; not used");
    }
    const auto add = [&] { jobs_.push_back({s.jobs[i].name, wanted, digest(s.jobs[i].name, io::write_job(wanted))}); };
    if (s.latencies.empty()) add();
    for (const seconds latency : s.latencies) {
      wanted.qoe.latency = latency;
      add();
    }
    for (std::size_t m = 0; m < models_.size(); ++m) {
      below(file, where("/jobs/", i), [&] { check_mode(models_[m].value, wanted.workload); });
      for (const auto& c : clusters_) {
        io::check_together(models_[m].value, c.value, c.name, wanted.workload);
        below(file, where("/jobs/", i), [&] { check_pins(s.jobs[i].name, wanted, models_[m].value, c.value); });
        if (auto line = io::unused_profiles(models_[m].value, c.value)) warnings_.push_back(std::move(*line));
      }
    }
  }
  planners_ = s.planners.empty() ? planner_names() : s.planners;
  const bool inference = std::any_of(jobs_.begin(), jobs_.end(), [](const auto& j) { return j.value.workload.mode == mode::inference; });
  for (std::string& line : unused_options(options_, planners_, inference)) warnings_.push_back(std::move(line));
  for (const auto& j : jobs_) {
    for (const std::string& line : unused_wishes(j.value, planners_)) warnings_.push_back("job " + io::in_quotes(j.name) + ": " + line);
  }
}

plan_sweep::position plan_sweep::at(std::size_t i) const {
  position p{};
  p.planner = i % planners_.size();
  i /= planners_.size();
  p.job = i % jobs_.size();
  i /= jobs_.size();
  p.cluster = i % clusters_.size();
  p.model = i / clusters_.size();
  return p;
}

std::string plan_sweep::key(std::size_t i) const {
  const position p = at(i);
  const auto number = [](std::uint64_t v) { return std::to_string(v); };
  std::uint64_t d = digest(version, number(models_[p.model].digest));
  d = digest(d, number(clusters_[p.cluster].digest));
  d = digest(d, number(jobs_[p.job].digest));
  d = digest(d, planners_[p.planner]);
  d = digest(d, std::to_string(options_.seed.value_or(standard_seed)));
  if (const std::string chosen = chosen_models(options_, planners_[p.planner]); !chosen.empty()) d = digest(d, chosen);
  if (options_.budget != standard_steps) d = digest(d, number(static_cast<std::uint64_t>(options_.budget)));
  return hexadecimal(d);
}

std::string plan_sweep::title(std::size_t i) const {
  const position p = at(i);
  return models_[p.model].name + " on " + clusters_[p.cluster].name + ", " + jobs_[p.job].name + ", " + planners_[p.planner];
}

json plan_sweep::row(std::size_t i) const {
  const position at_i = at(i);
  const job& wanted = jobs_[at_i.job].value;
  const problem p{models_[at_i.model].value,
                  clusters_[at_i.cluster].value,
                  any_cost_model(profiled_or_roofline{}),
                  wanted,
                  {},
                  glpk_lp{},
                  options_.budget};
  common_options quiet = options_;
  quiet.quiet = true;
  progress nobody(quiet, "");
  const plan_result result = run_planner(quiet, planners_[at_i.planner], p, 1, nobody);

  json o;
  o["key"] = key(i);
  o["model"] = models_[at_i.model].name;
  o["cluster"] = clusters_[at_i.cluster].name;
  o["job"] = jobs_[at_i.job].name;
  if (wanted.qoe.latency) io::put(o, "target", *wanted.qoe.latency);
  o["planner"] = planners_[at_i.planner];
  const bool memory =
      result.plans.empty() && result.status.result != outcome::stopped && result.binding && result.binding->kind == limit_kind::memory;
  o["status"] = memory ? "out_of_memory" : to_string(result.status.result);
  if (!result.status.reason.empty()) o["reason"] = result.status.reason;
  io::put_proof(o, result.status);
  if (!result.plans.empty()) {
    const auto& [best, e] = result.plans.front();
    io::put(o, "score", score(objective_of_job(wanted), e));
    io::put(o, "latency", e.latency);
    if (e.time_between_tokens) io::put(o, "time_between_tokens", *e.time_between_tokens);
    io::put(o, "energy", e.energy());
    io::put(o, "peak_memory", e.peak_memory());
    io::put(o, "bound", e.bound);
    io::put(o, "gap", e.gap);
    o["stages"] = best.stages.size();
    o["devices"] = std::count_if(e.devices.begin(), e.devices.end(), [](const device_evaluation& d) { return d.used; });
    o["microbatch_size"] = best.microbatch_size;
    o["microbatches"] = best.microbatches;
  }
  o["candidates"] = result.candidates;
  return o;
}

sweep_cases::table_shape plan_sweep::shape() const {
  static constexpr std::array<std::string_view, 4> texts{"model", "cluster", "job", "planner"};
  static constexpr std::array<std::string_view, 4> numbers{"target", "latency", "energy", "peak_memory"};
  static constexpr std::array<std::string_view, 19> columns{
      "model",  "cluster",     "job",   "target", "planner", "status",  "score",           "latency",      "time_between_tokens",
      "energy", "peak_memory", "bound", "gap",    "stages",  "devices", "microbatch_size", "microbatches", "candidates",
      "reason"};
  return {texts, numbers, columns};
}

std::string plan_sweep::header_of_best() const { return "    target  best planner           latency     energy     memory"; }

std::string plan_sweep::group_text(const json& row) const {
  char text[16];
  const std::string target = row.contains("target") ? readable(seconds(row.at("target").get<double>())) : "-";
  std::snprintf(text, sizeof text, "%10s", target.c_str());
  return text;
}

std::string plan_sweep::best_text(const json& row) const {
  char text[160];
  const auto shown = [&]<class Quantity>(const char* key, Quantity) {  // omits numbers that are not finite
    return row.contains(key) ? readable(Quantity(row.at(key).get<double>())) : std::string("-");
  };
  std::snprintf(text, sizeof text, "%-19s %10s %10s %10s", escaped(row.at("planner").get<std::string>()).c_str(),
                shown("latency", seconds()).c_str(), shown("energy", joules()).c_str(), shown("peak_memory", bytes()).c_str());
  return text;
}

}  // namespace cli
