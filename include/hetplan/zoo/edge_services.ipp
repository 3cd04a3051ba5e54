// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/edge_services.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <hetplan/zoo/models.hpp>

namespace hetplan::zoo {

namespace detail {

/// Cost of one model. A field has one meaning for language models and another for vision models.
struct edge_model {
  std::string_view name;
  double parameters;
  double active;  ///< parameters active per token; or FLOP per picture
  int layers;
  int operators;   ///< per pass
  double cache_b;  ///< per token; or activations per picture
  int width;       ///< of all-reduce operands: numbers per token, or kB per picture
  double bits = 16;
  double video = 1;     ///< FLOP of a video frame, relative to a picture
  bool speaks = false;  ///< true if it generates tokens
};

inline constexpr std::array<edge_model, 16> edge_models{{
    {"mobilenetv2", 3.5e6, 0.6e9, 17, 65, 14e6, 100},
    {"resnet50", 25.6e6, 8.2e9, 16, 73, 34e6, 200},
    {"yolov10", 7.2e6, 21.6e9, 23, 250, 60e6, 200},
    {"yolo11", 9.4e6, 21.5e9, 23, 230, 60e6, 200},
    {"unet", 2e6, 95e9, 9, 46, 400e6, 4000},
    {"deeplabv3plus", 62.7e6, 200e9, 30, 180, 400e6, 2000},
    {"sctnet", 17.4e6, 180e9, 20, 150, 300e6, 2000},
    {"maskformer", 102e6, 900e9, 40, 600, 600e6, 2000, 16, 0.44},
    {"omg-seg", 221e6, 1200e9, 50, 700, 800e6, 2000, 16, 0.44},
    {"bert", 110e6, 22e9, 12, 150, 10e6, 200},
    {"gnmt", 210e6, 160e6, 16, 40, 0, 1024, 16, 1, true},
    {"qwen2.5-1.5b", 1.54e9, 1.54e9, 28, 280, 28672, 1536, 16, 1, true},
    {"llama3-8b", 8.03e9, 8.03e9, 32, 320, 131072, 4096, 16, 1, true},
    {"deepseekv2-16b", 15.7e9, 2.4e9, 27, 400, 31104, 2048, 16, 1, true},
    {"qwen2.5-32b", 32.5e9, 32.5e9, 64, 640, 262144, 5120, 16, 1, true},
    {"llama3-70b", 70.6e9, 70.6e9, 80, 800, 327680, 8192, 4, 1, true},
}};

struct edge_service_entry {
  std::string_view name;
  serve::task_category category;
};
inline constexpr auto one_video = serve::task_category::one_gpu_frequency;
inline constexpr auto several_video = serve::task_category::several_gpus_frequency;
inline constexpr auto one_picture = serve::task_category::one_gpu_latency;
inline constexpr auto several_picture = serve::task_category::several_gpus_latency;

/// EPARA, table 1.
inline constexpr std::array<edge_service_entry, 32> edge_service_entries{{
    {"mobilenetv2.video", one_video},
    {"resnet50.video", one_video},
    {"yolov10.video", one_video},
    {"yolo11.video", one_video},
    {"unet.video", one_video},
    {"bert.talk", one_video},
    {"gnmt.talk", one_video},
    {"qwen2.5-1.5b.talk", one_video},
    {"deeplabv3plus.video", several_video},
    {"sctnet.video", several_video},
    {"maskformer.video", several_video},
    {"omg-seg.video", several_video},
    {"llama3-8b.talk", several_video},
    {"deepseekv2-16b.talk", several_video},
    {"qwen2.5-32b.talk", several_video},
    {"llama3-70b.talk", several_video},
    {"mobilenetv2.picture", one_picture},
    {"resnet50.picture", one_picture},
    {"yolov10.picture", one_picture},
    {"yolo11.picture", one_picture},
    {"unet.picture", one_picture},
    {"deeplabv3plus.picture", one_picture},
    {"sctnet.picture", one_picture},
    {"bert.text", one_picture},
    {"gnmt.chat", one_picture},
    {"qwen2.5-1.5b.chat", one_picture},
    {"maskformer.picture", several_picture},
    {"omg-seg.picture", several_picture},
    {"llama3-8b.chat", several_picture},
    {"deepseekv2-16b.chat", several_picture},
    {"qwen2.5-32b.chat", several_picture},
    {"llama3-70b.chat", several_picture},
}};

HETPLAN_INLINE const edge_model& edge_model_of(std::string_view service) {
  const auto model = service.substr(0, service.rfind('.'));
  return *std::ranges::find(edge_models, model, &edge_model::name);
}

inline constexpr double p100_memory_b = 16 * 1073741824.0;
inline constexpr double context_b = 0.6e9;  ///< memory of the runtime on each GPU

/// Returns the variants that hold the weights and a batch of 8. A slice of a GPU has its share of the memory.
HETPLAN_INLINE std::vector<serve::service_variant> edge_variants(const edge_model& m, const serve::token_counts& tokens) {
  const double weights_b = m.parameters * m.bits / 8;
  const double room_b = 8 * (m.speaks ? (tokens.in + tokens.out) * m.cache_b : m.cache_b);
  std::vector<serve::service_variant> all;
  const auto add = [&](std::string name, int tensors, int stages, double share, bool far) {
    const double gpus = tensors * stages;
    if ((weights_b + room_b) / gpus + context_b > p100_memory_b * share) return;
    all.push_back({.name = std::move(name),
                   .gpu_kind = "P100",
                   .tensor_parallel = tensors,
                   .pipeline_parallel = stages,
                   .compute_share = share,
                   .memory = bytes(p100_memory_b * share),
                   .across_servers = far});
  };
  add("whole", 1, 1, 1, false);
  for (const int slices : {2, 4, 8}) add("slice 1/" + std::to_string(slices), 1, 1, 1.0 / slices, false);
  for (const bool far : {false, true}) {
    const std::string_view where = far ? " far" : "";
    add(std::string("tp2").append(where), 2, 1, 1, far);
    add(std::string("pp2").append(where), 1, 2, 1, far);
    add(std::string("tp4").append(where), 4, 1, 1, far);
    add(std::string("tp2 pp2").append(where), 2, 2, 1, far);
  }
  return all;
}

HETPLAN_INLINE serve::service edge_service(std::string_view name, const edge_service_options& o) {
  const auto& m = edge_model_of(name);
  const bool streams = name.ends_with(".video") || name.ends_with(".talk");
  serve::service s;
  s.name = name;
  s.tokens = name == "gnmt.chat" || name == "gnmt.talk" ? serve::token_counts{25, 25} : o.tokens;
  s.generates = m.speaks;
  s.request_size = m.speaks ? 1_kB : (m.name == "bert" ? 2_kB : 100_kB);
  s.bytes_per_token = m.speaks ? bytes(4) : bytes();
  s.response_size = 10_kB;
  s.weights = bytes(m.parameters * m.bits / 8);
  s.rate = !streams ? 0 : (name.ends_with(".video") ? o.video_rate : o.conversation_rate);
  if (streams) {
    // Video frames may arrive four at a time (section 5.3.4), tokens of a talk one at a time.
    s.latency = seconds(1);
    s.frame_latency = seconds(name.ends_with(".video") ? 4.2 / s.rate : 1.2 / s.rate);
    s.frames = s.rate * o.stream_length.value();
    s.tokens.out = m.speaks ? s.frames : 1;
  } else {
    s.latency = m.speaks ? seconds(1 + s.tokens.out / o.slowest_chat) : o.picture_latency;
    s.batches = m.speaks ? serve::batching::continuous : serve::batching::fixed;
  }
  s.variants = edge_variants(m, s.tokens);
  return s;
}

}  // namespace detail

HETPLAN_INLINE std::vector<std::string_view> edge_service_names() {
  std::vector<std::string_view> all;
  for (const auto& e : detail::edge_service_entries) all.push_back(e.name);
  return all;
}

HETPLAN_INLINE std::vector<std::string_view> edge_service_names(serve::task_category c) {
  std::vector<std::string_view> some;
  for (const auto& e : detail::edge_service_entries) {
    if (e.category == c) some.push_back(e.name);
  }
  return some;
}

HETPLAN_INLINE edge_services edge_services_of(std::span<const std::string_view> names, const edge_service_options& options) {
  std::vector<serve::service> services;
  std::vector<serve::model_work> work;
  for (const auto name : names) {
    const auto all = edge_service_names();
    if (std::ranges::find(all, name) == all.end()) throw_unknown("edge_services_of", "service", name, all);
    services.push_back(detail::edge_service(name, options));
    const auto& m = detail::edge_model_of(name);
    serve::model_work w{.weights = bytes(m.parameters * m.bits / 8),
                        .reserved = bytes(detail::context_b),
                        .operators = m.operators,
                        .exchanges = 2 * m.layers};
    if (m.speaks) {
      w.per_token = flops(2 * m.active);
      w.cache_per_token = bytes(m.cache_b);
      w.exchanged = bytes(2.0 * m.width);
    } else {
      w.per_request = flops(m.active * (name.ends_with(".video") ? m.video : 1));
      w.moved_per_request = bytes(m.cache_b);
      w.exchanged = bytes(1000.0 * m.width);
    }
    work.push_back(w);
  }
  const serve::gpu_speed p100{.compute = flops_per_second(0.5 * 18.7e12),
                              .memory = bytes_per_second(0.55 * 732e9),
                              .launch = seconds(8e-6),
                              .link = bytes_per_second(10e9),
                              .network = 10_Gbit_per_s,
                              .link_latency = seconds(10e-6),
                              .network_latency = seconds(30e-6)};
  return {std::move(services), serve::roofline_service_time({{"P100", p100}}, std::move(work))};
}

HETPLAN_INLINE serve::edge_cloud p100_cloud(int servers, int gpus, seconds period, int group) {
  serve::edge_cloud c;
  c.name = std::to_string(servers) + " servers";
  c.ring = {.period = period, .group = group};
  for (int n = 0; n < servers; ++n) {
    serve::edge_server s{.name = "server" + std::to_string(n), .uplink = 10_Gbit_per_s, .downlink = 10_Gbit_per_s, .latency = 500_us};
    s.gpus.assign(static_cast<std::size_t>(gpus), {"P100", bytes(detail::p100_memory_b)});
    s.load_bandwidth = bytes_per_second(2e9);
    c.servers.push_back(std::move(s));
  }
  return c;
}

}  // namespace hetplan::zoo
