// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Edge clouds: servers with GPUs, the ring in which they exchange their states, and the services of users.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan::serve {

using service_id = id<struct service_tag>;
using server_id = id<struct server_tag>;
using instance_id = id<struct instance_tag>;

/// The batches of an instance: begun and ended together, or joined and left by requests between tokens.
enum class batching { fixed, continuous };

/// A way to run a service: the number and kind of GPUs, and the part of each.
struct service_variant {
  std::string name;
  std::string gpu_kind;
  int tensor_parallel = 1;
  int pipeline_parallel = 1;      ///< stages; the next batch enters when the first is free
  double compute_share = 1;       ///< of each GPU, 0 < share <= 1: a_l
  bytes memory;                   ///< on each GPU: b_l
  std::int64_t cache_tokens = 0;  ///< that fit beside the weights, of all requests of a continuous batch together; 0: no limit
  /// True if its times hold across servers. Planners span servers only with such variants, if a service has one.
  bool across_servers = false;

  [[nodiscard]] int gpus() const { return tensor_parallel * pipeline_parallel; }
  friend bool operator==(const service_variant&, const service_variant&) = default;
};

/// Limit of typical tokens or frames: requests count them in 32 bits.
inline constexpr double most_typical = 4e9;
/// Returns a typical number, rounded, at least `least`. Requires 0 <= typical <= most_typical.
[[nodiscard]] inline std::uint32_t rounded_count(double typical, std::uint32_t least) {
  return std::max(least, static_cast<std::uint32_t>(std::llround(typical)));
}

/// The tokens of a request to a service that generates text.
struct token_counts {
  double in = 0;
  double out = 1;
  friend bool operator==(const token_counts&, const token_counts&) = default;
};

/// A model and its service level objective: an answer within `latency`, or frames at a rate.
/// Source  EPARA, section 3; semantics, section 11.
struct service {
  std::string name;
  seconds latency;             ///< SLO, from arrival to answer; of a stream: to its start
  seconds frame_latency = {};  ///< limit of collecting and computing a batch of frames; 0: `latency`
  double rate = 0;             ///< frames (or tokens) per second of a stream; 0: an answer within the latency
  bytes request_size = {};     ///< bytes of a request that is passed on
  bytes bytes_per_token = {};
  bytes response_size = {};
  bool generates = false;    ///< true for tokens, one after another
  token_counts tokens = {};  ///< typical numbers, for estimates of waiting times
  double frames = 1;         ///< of a typical stream that generates no tokens
  bytes weights = {};        ///< loaded before an instance can begin
  batching batches = batching::fixed;
  int prefill_chunk = 0;  ///< tokens of prompts that ride along with a step of a continuous batch; 0: whole prompts, while others wait
  seconds ttft = {};      ///< limit on the time to the first token; 0: none
  seconds time_between_tokens = {};  ///< limit on the mean of a request; 0: none
  /// False if nobody limits the answer: `latency` is then what both limits on tokens allow a typical one, and serves estimates alone.
  bool limits_answer = true;
  std::vector<service_variant> variants = {};

  /// Returns the wait after which no instance begins with a request any more.
  [[nodiscard]] seconds begin_within() const { return ttft.value() > 0 ? std::min(latency, ttft) : latency; }
  /// True if times, negative where a request has none, keep the limits on tokens, up to rounding.
  [[nodiscard]] bool keeps_ttft(double time_s) const {
    return ttft.value() == 0 || time_s < 0 || at_most(time_s, ttft.value(), latency.value());
  }
  [[nodiscard]] bool keeps_time_between_tokens(double time_s) const {
    return time_between_tokens.value() == 0 || time_s < 0 || at_most(time_s, time_between_tokens.value(), latency.value());
  }
  [[nodiscard]] bool is_stream() const { return rate > 0; }
  /// Returns the credit of a served request: 1, or the frames of a stream.
  [[nodiscard]] double credit(double length) const { return is_stream() ? length : 1; }
  /// Returns the tokens out or frames of a typical request; 1 if it has neither.
  [[nodiscard]] double typical_length() const { return generates ? tokens.out : (is_stream() ? frames : 1); }
  /// Returns the time limit of one answer, or of one batch of frames.
  [[nodiscard]] seconds answer_latency() const { return is_stream() && frame_latency.value() > 0 ? frame_latency : latency; }
  friend bool operator==(const service&, const service&) = default;
};

/// Throws invalid_input if a service breaks a rule: an empty or repeated name, no variant, a negative or non-finite amount, a
/// latency or memory not above 0, a share outside (0, 1], continuous batches without tokens or of a stream; limits on tokens of a service
/// that generates none or is a stream; a chunk or a cache without continuous batches.
void validate(const std::vector<service>& services);

/// Returns the shortest SLO; 0 without services.
[[nodiscard]] seconds shortest_latency(const std::vector<service>& services);

struct gpu {
  std::string kind;
  bytes memory;
  friend bool operator==(const gpu&, const gpu&) = default;
};

/// A user's device that lends its GPU to a server.
struct registered_device {
  std::string name;
  gpu unit;
  bytes_per_second bandwidth;
  seconds latency = {};
  friend bool operator==(const registered_device&, const registered_device&) = default;
};

/// A server of a cloud. Only links have limits, not the network between them, so that a cloud takes O(N) memory.
struct edge_server {
  std::string name;
  std::vector<gpu> gpus = {};
  bytes_per_second uplink;
  bytes_per_second downlink;
  seconds latency = {};                                 ///< to the network
  std::optional<bytes_per_second> load_bandwidth = {};  ///< at which weights arrive; none: at once
  std::vector<registered_device> devices = {};
  friend bool operator==(const edge_server&, const edge_server&) = default;
};

/// How servers learn of each other.
struct ring_options {
  seconds period;   ///< between two publications
  int group = 100;  ///< consecutive servers that form a ring and pass requests to each other
  int max_age = 0;  ///< [periods] age above which publications are ignored; 0: the ring's number of servers
  friend bool operator==(const ring_options&, const ring_options&) = default;
};

/// Source  EPARA, sections 3 and 3.4; semantics, section 11.
struct edge_cloud {
  std::string name;
  std::vector<edge_server> servers = {};
  ring_options ring;

  [[nodiscard]] std::size_t size() const { return servers.size(); }
  [[nodiscard]] const edge_server& operator[](server_id s) const { return servers[s.index()]; }
  friend bool operator==(const edge_cloud&, const edge_cloud&) = default;
};

/// Throws invalid_input: no server, an empty or repeated name, a non-positive or infinite memory, bandwidth or period, a negative
/// latency, a group < 1.
void validate(const edge_cloud& cloud);

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/edge_cloud.ipp>
#endif
