// SPDX-License-Identifier: BSL-1.0
// Service times from simulated plans: a language model too large for one GPU, as a pipeline over two and over four.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/serve/judged_tokens.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/zoo/models.hpp>

using namespace hetplan;

cluster pcie(int gpus) {
  std::vector<device> all;
  for (int d = 0; d < gpus; ++d) {
    all.push_back({.name = "P100-" + std::to_string(d),
                   .memory = 16_GB,
                   .compute = 9.3_TFLOP_per_s,
                   .memory_bandwidth = 400_GB_per_s,
                   .launch = 8_us});
  }
  return {"server", std::move(all), shared_medium{10_GB_per_s, 10_us}};
}

int main() {
  const planning_graph model = zoo::model("llama3-8b");
  const auto planner = [](const planning_problem& q) { return recipes::pipeline(q, minimize_response{}, 1); };
  std::vector<serve::variant_times> variants;
  for (const int gpus : {2, 4}) {
    const serve::judged_tokens judged =
        serve::judged_token_times(model, pcie(gpus), roofline{}, planner, {.typical = {512, 64}, .largest = 8});
    std::printf("%d GPUs: a cache of %lld tokens; times are within %.1f %% (prompts) and %.1f %% (steps) of the simulated ones\n", gpus,
                static_cast<long long>(judged.cache_tokens), 100 * judged.pass_deviation, 100 * judged.step_deviation);
    variants.push_back(judged.times);
  }
  const serve::service_time_table times({variants});  // one service with these two variants

  serve::service chat{.name = "chat", .latency = 5_s, .generates = true};
  chat.variants = {{.name = "two", .gpu_kind = "P100", .memory = 16_GB}, {.name = "four", .gpu_kind = "P100", .memory = 16_GB}};
  for (int v = 0; v < 2; ++v) {
    const serve::service_run run{chat, chat.variants[static_cast<std::size_t>(v)], serve::service_id(0), v};
    for (const int batch : {1, 8})
      std::printf("%s GPUs, batch %d: a prompt each %6.0f ms, a token each %5.1f ms\n", run.as.name.c_str(), batch,
                  1e3 * times.pass(run, {batch, 512.0 * batch}).value(), 1e3 * times.step(run, batch).value());
  }
}
