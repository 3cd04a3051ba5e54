// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A small edge cloud, requests for it, and its runs.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/serve_requests.hpp>
#include <hetplan/serve/service_time.hpp>

#include "support/random_source.hpp"

namespace hetplan::test {

/// Equal servers with two GPUs, and one service each of images, video and text.
struct serving_setting {
  serve::edge_cloud cloud;
  std::vector<serve::service> services;
  std::optional<serve::service_time_table> times;
  serve::deployment placed;
};

inline serving_setting small_cloud(int servers) {
  serving_setting s;
  s.cloud.name = "small";
  s.cloud.ring = {.period = 50_ms, .group = 4};
  for (int n = 0; n < servers; ++n)
    s.cloud.servers.push_back({.name = "s" + std::to_string(n),
                               .gpus = {{"P100", 16_GB}, {"P100", 16_GB}},
                               .uplink = 100_Mbit_per_s,
                               .downlink = 100_Mbit_per_s,
                               .latency = 1_ms});
  const serve::service_variant half{.name = "half", .gpu_kind = "P100", .compute_share = 0.5, .memory = 4_GB};
  s.services = {{.name = "image", .latency = 200_ms, .request_size = 50_kB, .response_size = 1_kB, .variants = {half}},
                {.name = "video", .latency = 500_ms, .rate = 60, .frames = 120, .variants = {half}},
                {.name = "text",
                 .latency = 2_s,
                 .request_size = 2_kB,
                 .generates = true,
                 .tokens = {20, 8},
                 .batches = serve::batching::continuous,
                 .variants = {half}}};
  s.times.emplace(std::vector<std::vector<serve::variant_times>>{
      {{.pass = {{1, 8}, {0.02, 0.06}}}},
      {{.pass = {{1, 4}, {0.025, 0.04}}}},
      {{.pass = {{1, 8}, {0.01, 0.02}}, .per_token_s = 1e-4, .step = {{1, 8}, {0.01, 0.02}}}}});
  for (int n = 0; n < servers; ++n) {
    s.placed.instances.push_back({.what = serve::service_id(0), .gpus = {{serve::server_id(n), 0}}, .batch = 8});
    s.placed.instances.push_back({.what = serve::service_id(1), .gpus = {{serve::server_id(n), 0}}, .batch = 4, .frames = 4});
    s.placed.instances.push_back({.what = serve::service_id(2), .gpus = {{serve::server_id(n), 1}}, .batch = 8});
  }
  return s;
}

inline serve::request_stream draw_requests(random_source& random, const serving_setting& s, int count, double rate) {
  std::vector<serve::request> all;
  double now_s = 0;
  for (int i = 0; i < count; ++i) {
    now_s -= std::log(1 - random.between(0, 1)) / rate;
    const int l = random.integer(0, 2);
    const auto length = l == 1 ? random.integer(60, 240) : random.integer(1, 20);
    all.push_back({now_s, serve::service_id(l), serve::server_id(random.integer(0, static_cast<int>(s.cloud.size()) - 1)),
                   static_cast<std::uint32_t>(random.integer(0, 40)), static_cast<std::uint32_t>(length)});
  }
  return serve::request_stream(std::move(all));
}

inline serve::service_history play(const serving_setting& s, const serve::request_stream& requests,
                                   const serve::serving_options& options = {.detail = serve::history_detail::records},
                                   std::uint64_t seed = 1) {
  serve::offload_by_idle_goodput handler{&s.services, seed};
  return serve::serve_requests(s.cloud, s.services, *s.times, requests, s.placed, handler, options);
}

}  // namespace hetplan::test
