// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for where requests are served: servers with GPUs, and the ring in which they tell each other what they do.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/quantity.hpp>

namespace hetplan::serve {

// What users ask of an edge cloud: a model, what is wanted of it, and on what it can run.

using service_id = id<struct service_tag>;
using server_id = id<struct server_tag>;
using instance_id = id<struct instance_tag>;

/// How an instance takes in requests: a batch that begins and ends together, or one that they join and leave between tokens.
enum class batching { fixed, continuous };

/// One way to run a service: so many GPUs of a kind, and how much of each it takes.
struct service_variant {
  std::string name;
  std::string gpu_kind;
  int tensor_parallel = 1;
  int pipeline_parallel = 1;  ///< stages; the next batch enters when the first of them is free
  double compute_share = 1;   ///< of each GPU, 0 < share <= 1: a_l
  bytes memory;               ///< on each GPU: b_l
  /// Its times hold where its GPUs stand on several servers. Planners span servers with such variants only, if a service has one.
  bool across_servers = false;

  [[nodiscard]] int gpus() const { return tensor_parallel * pipeline_parallel; }
  friend bool operator==(const service_variant&, const service_variant&) = default;
};

/// Typical tokens or frames of a request are at most this: those of a request are counted in 32 bits.
inline constexpr double most_typical = 4e9;
/// A typical number as that of a request. Requires 0 <= typical <= most_typical.
[[nodiscard]] inline std::uint32_t rounded_count(double typical, std::uint32_t least) {
  return std::max(least, static_cast<std::uint32_t>(std::llround(typical)));
}

/// Tokens of a request to a service that generates text.
struct token_counts {
  double in = 0;
  double out = 1;
  friend bool operator==(const token_counts&, const token_counts&) = default;
};

/// A model and its service level objective: an answer within `latency`, or frames at a rate.
///
/// Source  EPARA, section 3; semantics, section 11.
struct service {
  std::string name;
  seconds latency;             ///< SLO, from arrival to answer; for a stream until it begins
  seconds frame_latency = {};  ///< how long frames of a stream may wait for each other and be computed; 0: as long as it may take to begin
  double rate = 0;             ///< frames (or tokens) a second that a stream wants; 0: wanted within the latency
  bytes request_size = {};     ///< what travels when a request is passed on
  bytes bytes_per_token = {};
  bytes response_size = {};
  bool generates = false;    ///< tokens, one after another
  token_counts tokens = {};  ///< typical ones, by which waiting times are estimated
  double frames = 1;         ///< of a typical stream that does not generate
  bytes weights = {};        ///< to be loaded before an instance can begin
  batching batches = batching::fixed;
  std::vector<service_variant> variants = {};

  [[nodiscard]] bool is_stream() const { return rate > 0; }
  /// What a request counts that is served: 1, or the frames of a stream.
  [[nodiscard]] double credit(double length) const { return is_stream() ? length : 1; }
  /// Of a typical request: tokens out, or frames; 1 where it has neither.
  [[nodiscard]] double typical_length() const { return generates ? tokens.out : (is_stream() ? frames : 1); }
  /// Within which one answer, or one batch of frames, is wanted.
  [[nodiscard]] seconds answer_latency() const { return is_stream() && frame_latency.value() > 0 ? frame_latency : latency; }
  friend bool operator==(const service&, const service&) = default;
};

/// Throws invalid_input if a service breaks a rule: a name that is empty or taken, no variant, an amount below 0 or not finite, a
/// latency or memory that is not above 0, a share outside (0, 1], continuous batches without tokens or of a stream.
void validate(const std::vector<service>& services);

/// The shortest SLO; 0 without a service.
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

/// Servers meet in a network without limits of its own: only their links have some, so that a cloud takes O(N) memory.
struct edge_server {
  std::string name;
  std::vector<gpu> gpus = {};
  bytes_per_second uplink;
  bytes_per_second downlink;
  seconds latency = {};                                 ///< its way to the network
  std::optional<bytes_per_second> load_bandwidth = {};  ///< at which weights come to it; none: at once
  std::vector<registered_device> devices = {};
  friend bool operator==(const edge_server&, const edge_server&) = default;
};

/// How servers learn about each other.
struct ring_options {
  seconds period;   ///< between two publications
  int group = 100;  ///< consecutive servers that form a ring, and pass work to each other
  int max_age = 0;  ///< [periods] beyond which nothing is believed; 0: as many as a ring has servers
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

/// Throws invalid_input: no server, a name that is empty or taken, a memory, bandwidth or period that is not above 0 and finite, a
/// negative latency, a group below 1.
void validate(const edge_cloud& cloud);

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/edge_cloud.ipp>
#endif
