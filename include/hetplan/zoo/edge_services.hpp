// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The services of EPARA's evaluation, with service times on its GPU by a roofline.

#include <span>
#include <string_view>
#include <vector>

#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::zoo {

/// What is asked of the services, where the paper leaves it open.
struct edge_service_options {
  double video_rate = 60;                  ///< frames a second
  double conversation_rate = 20;           ///< tokens a second
  serve::token_counts tokens = {512, 64};  ///< of a chat
  seconds stream_length = seconds(5);
  seconds picture_latency = seconds(0.1);  ///< pictures and classified texts
  double slowest_chat = 10;                ///< tokens a second: a chat has as long as all of its tokens take at this rate, and a second
};

struct edge_services {
  std::vector<serve::service> services;
  serve::roofline_service_time times;
};

/// Names of all services, by category: `mobilenetv2.video`, `llama3-8b.chat`, `llama3-8b.talk`, ...
[[nodiscard]] std::vector<std::string_view> edge_service_names();
[[nodiscard]] std::vector<std::string_view> edge_service_names(serve::task_category c);

/// The services of these names, on P100s: alone, in slices of 1/2, 1/4 and 1/8, and cut over 2 and 4 GPUs of one server or of several.
///
/// Throws  invalid_input (unknown name).
/// Source  EPARA, table 1 (models and categories), sections 4.1 (slices of memory, too), 4.3 and 5.3 (rates). P100 PCIe 16 GB: 18.7
///         TFLOP/s in half precision, 732 GB/s (papers/deepcee.txt, table 2). Ours: half of the compute and 0.55 of the bandwidth are
///         reached, the latter so that the token rates of section 4.3 come out (docs/reproduction/epara.md); 8 us a launch; 0.6 GB for
///         the runtime. Parameters and caches of language models follow from their published widths; Llama3-70B is in 4 bits, all else
///         in 16. Segmentation models have the FLOP with which they fall into the paper's categories at 1080p (videos of MaskFormer and
///         OMG-Seg at 720p): their true inputs are not stated.
[[nodiscard]] edge_services edge_services_of(std::span<const std::string_view> names, const edge_service_options& options = {});

/// A cloud of equal servers with P100s.
/// Source  EPARA, section 5.2 (eight P100s each), table 4 (10 Gbit/s).
[[nodiscard]] serve::edge_cloud p100_cloud(int servers, int gpus = 8, seconds period = seconds(0.1), int group = 100);

}  // namespace hetplan::zoo

#ifndef HETPLAN_SEPARATE
#include <hetplan/zoo/edge_services.ipp>
#endif
