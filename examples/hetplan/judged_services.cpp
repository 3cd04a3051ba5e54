// SPDX-License-Identifier: BSL-1.0
#include "judged_services.hpp"

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/serve/judged_tokens.hpp>

#include "commands.hpp"

namespace cli {

using namespace hetplan;

namespace {

/// Returns a cluster whose devices use no more memory than a variant has of a GPU.
cluster within(const cluster& c, bytes memory) {
  std::vector<device> devices(c.devices().begin(), c.devices().end());
  for (auto& d : devices) {
    if (d.usable_memory() > memory) d.memory_budget = memory;
  }
  return c.with_devices(std::move(devices));
}

}  // namespace

io::variant_judge variant_judge_of(const std::string& services, std::vector<std::string>* told) {
  return [folder = std::filesystem::path(services).parent_path(), told](const serve::service& s, serve::service_variant& v,
                                                                        const io::judged_source& from) {
    const auto found = [&](const std::string& name) {
      const auto beside = folder / name;
      return std::filesystem::exists(beside) ? beside.string() : name;
    };
    common_options o;
    o.weights = from.weights;
    const planning_graph model = load_model(o, found(from.model));
    const cluster gpus = within(load_cluster(found(from.cluster)), v.memory);
    if (static_cast<int>(gpus.size()) != v.gpus())
      throw invalid_input("expected tensor_parallel * pipeline_parallel = " + std::to_string(gpus.size()) + ", the devices of \"" +
                          escaped(gpus.name()) + "\", got " + std::to_string(v.gpus()));
    if (v.compute_share < 1) throw invalid_input("expected the whole compute of each GPU, got a share of " + to_text(v.compute_share));
    const auto planner = [](const planning_problem& q) {
      return q.cluster.size() == 1 ? recipes::on_device(q, minimize_response{}, 1) : recipes::pipeline(q, minimize_response{}, 1);
    };
    auto t = serve::judged_token_times(model, gpus, roofline{}, planner, {.typical = s.tokens, .largest = from.largest});
    std::string line = "judged " + io::in_quotes(s.name) + ", " + io::in_quotes(v.name) + ": ";
    if (s.batches == serve::batching::continuous && v.cache_tokens == 0) {
      v.cache_tokens = t.cache_tokens;
      line += "a cache of " + std::to_string(t.cache_tokens) + " tokens, ";
    }
    char deviations[120];
    std::snprintf(deviations, sizeof deviations, "prompts to %.1f %%, steps to %.1f %% as simulated", 100 * t.pass_deviation,
                  100 * t.step_deviation);
    if (told != nullptr) told->push_back(line + deviations);
    return std::move(t.times);
  };
}

}  // namespace cli
