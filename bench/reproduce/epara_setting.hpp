// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What EPARA's evaluation is played on, as far as its text tells: clouds, workloads, synthetic requests.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/recipes/serving_systems.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/zoo/edge_services.hpp>

#include "seed_pairs.hpp"

namespace bench {

using hetplan::serve::service_id;

/// Half of all requests enter at a fifth of the servers, the rest at all of them; gaps are Gamma distributed with this coefficient of
/// variation.
inline constexpr double hot_servers = 0.2, hot_share = 0.5, burstiness = 3;

/// Services that are asked for equally often.
struct workload {
  std::string name;
  hetplan::zoo::edge_services of;

  workload(std::string title, const std::vector<std::string_view>& services)
      : name(std::move(title)), of(hetplan::zoo::edge_services_of(services)) {}
  [[nodiscard]] const std::vector<hetplan::serve::service>& services() const { return of.services; }
};

/// All of table 1, and its four categories.
inline std::vector<workload> table_1() {
  using hetplan::serve::task_category;
  const auto of = [](task_category c) { return hetplan::zoo::edge_service_names(c); };
  return {{"mixed", hetplan::zoo::edge_service_names()},
          {"<= 1 GPU, frequency", of(task_category::one_gpu_frequency)},
          {"<= 1 GPU, latency", of(task_category::one_gpu_latency)},
          {"> 1 GPU, frequency", of(task_category::several_gpus_frequency)},
          {"> 1 GPU, latency", of(task_category::several_gpus_latency)}};
}
/// What four P100s on four servers hold at once.
inline std::vector<workload> testbed_workloads() {
  return {
      {"mixed",
       {"mobilenetv2.video", "resnet50.video", "qwen2.5-1.5b.talk", "deeplabv3plus.video", "resnet50.picture", "bert.text", "gnmt.chat"}},
      {"<= 1 GPU, frequency", {"mobilenetv2.video", "resnet50.video", "yolov10.video", "bert.talk", "qwen2.5-1.5b.talk"}},
      {"<= 1 GPU, latency", {"mobilenetv2.picture", "resnet50.picture", "yolov10.picture", "bert.text", "gnmt.chat"}},
      {"> 1 GPU, frequency", {"deeplabv3plus.video", "llama3-8b.talk"}},
      {"> 1 GPU, latency", {"llama3-8b.chat", "deepseekv2-16b.chat"}}};
}

/// Four servers with a P100 each.
inline hetplan::serve::edge_cloud testbed() { return hetplan::zoo::p100_cloud(4, 1); }

/// Credit of one request that is served.
inline double credit_of(const workload& w, std::size_t l) { return w.services()[l].credit(w.services()[l].typical_length()); }

/// GPU seconds of one request, as EPARA runs it on a server with eight P100s.
inline double gpu_seconds(const workload& w, std::size_t l) {
  const auto& s = w.services()[l];
  const auto cloud = hetplan::zoo::p100_cloud(1, 1);
  const auto a = hetplan::serve::allocate(service_id(l), s, {cloud.servers[0].gpus[0], 8}, w.of.times);
  return credit_of(w, l) * a->gpus / a->capacity;
}

/// Requests a second for each service: load 1 asks for as many GPU seconds as the cloud's GPUs have.
inline double rate_of(const workload& w, double load, double gpus) {
  double cost_s = 0;
  for (std::size_t l = 0; l < w.services().size(); ++l) cost_s += gpu_seconds(w, l);
  return load * gpus / cost_s;
}

/// As if there were no allocator: one request, one frame, one GPU; more only for models that fit on none.
inline hetplan::serve::parallelism_operators without_operators(const hetplan::serve::service& s) {
  const bool fits = std::ranges::any_of(s.variants, [](const auto& v) { return v.gpus() == 1; });
  using hetplan::serve::model_parallelism;
  return {.batching = false,
          .multi_task = false,
          .cut = fits ? model_parallelism::none : model_parallelism::as_needed,
          .multi_frame = false,
          .data_parallel = false};
}

inline double gpus_of(const hetplan::serve::edge_cloud& c) {
  double gpus = 0;
  for (const auto& s : c.servers) gpus += static_cast<double>(s.gpus.size());
  return gpus;
}

/// Every service as often as the others.
inline hetplan::serve::request_process arrivals(const workload& w, const hetplan::serve::edge_cloud& c, double per_s, double duration_s,
                                                double cv = burstiness) {
  hetplan::serve::request_process p{.rates = {}, .duration = hetplan::seconds(duration_s)};
  const auto servers = static_cast<double>(c.size());
  const auto hot = std::max<std::size_t>(1, static_cast<std::size_t>(hot_servers * servers));
  for (std::size_t n = 0; n < c.size(); ++n) {
    const double share = (1 - hot_share) / servers + (n < hot ? hot_share / static_cast<double>(hot) : 0);
    for (std::size_t l = 0; l < w.services().size(); ++l)
      p.rates.push_back({service_id(l), hetplan::serve::server_id(n), per_s * share, cv});
  }
  return p;
}

/// Requests, and those of another day with the same rates, by which services are placed.
struct demand {
  hetplan::serve::request_stream requests, before;
  double duration_s;

  demand(const workload& w, const hetplan::serve::edge_cloud& c, double per_s, double length_s, seed_pair seeds, double cv = burstiness)
      : requests(draw_requests(arrivals(w, c, per_s, length_s, cv), c, w.services(), seeds.played)),
        before(draw_requests(arrivals(w, c, per_s, length_s, cv), c, w.services(), seeds.before)), duration_s(length_s) {}
};

inline hetplan::serve::served play(std::string_view system, const workload& w, const hetplan::serve::edge_cloud& c, const demand& d,
                                   hetplan::serve::serving_options options = {}) {
  return serve_with(*hetplan::recipes::serving_system_named(system, w.services()), c, w.services(), w.of.times, d.requests, d.before,
                    hetplan::seconds(d.duration_s), {}, std::move(options));
}
/// Credit a second.
inline double goodput(std::string_view system, const workload& w, const hetplan::serve::edge_cloud& c, const demand& d) {
  return play(system, w, c, d).history.credit() / d.duration_s;
}

}  // namespace bench
