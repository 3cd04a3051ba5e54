// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The services of EPARA's evaluation, with roofline service times on its GPU.

#include <span>
#include <string_view>
#include <vector>

#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::zoo {

/// Requirements of the services that the paper leaves open.
struct edge_service_options {
  double video_rate = 60;                  ///< frames/s
  double conversation_rate = 20;           ///< tokens/s
  serve::token_counts tokens = {512, 64};  ///< per chat
  seconds stream_length = seconds(5);
  seconds picture_latency = seconds(0.1);  ///< for pictures and texts to classify
  double slowest_chat = 10;                ///< tokens/s; a chat's deadline is a second plus its tokens at this rate
};

struct edge_services {
  std::vector<serve::service> services;
  serve::roofline_service_time times;
};

/// Returns the names of all services, by category: `mobilenetv2.video`, `llama3-8b.chat`, `llama3-8b.talk`, ...
[[nodiscard]] std::vector<std::string_view> edge_service_names();
[[nodiscard]] std::vector<std::string_view> edge_service_names(serve::task_category c);

/// Returns the named services on P100s. Variants run on one GPU, on slices of 1/2, 1/4 and 1/8, and on 2 or 4 GPUs of one or more servers.
///
/// Throws  invalid_input (unknown name).
/// Source  EPARA, table 1 (models and categories), sections 4.1 (slices, also of memory), 4.3 and 5.3 (rates). P100 PCIe 16 GB: 18.7
///         TFLOP/s in half precision, 732 GB/s (papers/deepcee.txt, table 2). Ours: efficiencies of 0.5 for compute and 0.55 for
///         bandwidth, the latter chosen to match the token rates of section 4.3 (docs/reproduction/epara.md); 8 us per launch; 0.6 GB
///         for the runtime. Parameters and caches of language models follow from their published widths; Llama3-70B is in 4 bits, all
///         others in 16. Segmentation models have the FLOP that put them into the paper's categories at 1080p (videos of MaskFormer and
///         OMG-Seg at 720p), as their inputs are not stated.
[[nodiscard]] edge_services edge_services_of(std::span<const std::string_view> names, const edge_service_options& options = {});

/// Returns a cloud of equal servers with P100s.
///
/// Source  EPARA, section 5.2 (eight P100s each), table 4 (10 Gbit/s).
[[nodiscard]] serve::edge_cloud p100_cloud(int servers, int gpus = 8, seconds period = seconds(0.1), int group = 100);

}  // namespace hetplan::zoo

#ifndef HETPLAN_SEPARATE
#include <hetplan/zoo/edge_services.ipp>
#endif
