// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Files of serving: hetplan/cloud/1, hetplan/services/1, hetplan/faults/1, hetplan/deployment/1.

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <hetplan/io/fields.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace hetplan::io {

/// Finds ids of servers, services and devices by name. Cloud and services must outlive it. Throws invalid_input for unknown names.
class serving_names {
 public:
  serving_names(const serve::edge_cloud& cloud, const std::vector<serve::service>& services);

  [[nodiscard]] serve::server_id server(const json_node& n) const;
  [[nodiscard]] serve::service_id service(const json_node& n) const;
  [[nodiscard]] int device(serve::server_id owner, const json_node& n) const;

  /// Returns the id of a name, an invalid id if the name is unknown.
  [[nodiscard]] serve::server_id find_server(std::string_view name) const;
  [[nodiscard]] serve::service_id find_service(std::string_view name) const;

 private:
  const serve::edge_cloud* cloud_;
  std::unordered_map<std::string_view, serve::server_id> servers_;
  std::unordered_map<std::string_view, serve::service_id> services_;
};

inline constexpr std::string_view cloud_format = "hetplan/cloud/1";

/// Limits on the servers of a cloud file and the GPUs of a server.
inline constexpr int max_servers = 1'000'000;
inline constexpr int max_gpus_per_server = 1024;

namespace keys {
inline constexpr std::array<std::string_view, 5> cloud{"format", "name", "servers", "ring", "load_bandwidth"};
inline constexpr std::array<std::string_view, 8> server{"name",     "count",   "gpus",           "uplink",
                                                        "downlink", "latency", "load_bandwidth", "devices"};
inline constexpr std::array<std::string_view, 3> gpu{"kind", "memory", "count"};
}  // namespace keys

namespace detail {

template <noun<serve::ring_options> Ring, class Fields>
void fields_of(Ring& r, Fields& f) {
  f("period", r.period, required, range::above_zero, "Between two publications.");
  f("group", r.group, always{serve::ring_options{}.group}, integers{1}, "Consecutive servers that form a ring.");
  f("max_age", r.max_age, 0, integers{1}, "Periods after which nothing is believed any more. Default: as many as a ring has servers.");
}

template <noun<serve::registered_device> Device, class Fields>
void fields_of(Device& d, Fields& f) {
  f("name", d.name, required, names{}, "Unique at the server.");
  f("kind", d.unit.kind, required, names{"a kind of GPU"});
  f("memory", d.unit.memory, required, range::above_zero);
  f("bandwidth", d.bandwidth, required, range::above_zero);
  f("latency", d.latency, always{seconds{}}, range::at_least_zero);
}

template <noun<serve::service_variant> Variant, class Fields>
void fields_of(Variant& v, Fields& f) {
  const serve::service_variant standard;
  f("name", v.name, required, names{}, "Unique among the service's variants.");
  f("gpu", v.gpu_kind, required, names{"a kind of GPU"}, "A kind of GPU.");
  f("tensor_parallel", v.tensor_parallel, standard.tensor_parallel, integers{1, 1024});
  f("pipeline_parallel", v.pipeline_parallel, standard.pipeline_parallel, integers{1, 1024});
  f("compute", v.compute_share, standard.compute_share, at_most{range::above_zero, 1, "a share > 0, at most 1"}, "Share of each GPU.");
  f("memory", v.memory, required, range::above_zero, "On each GPU.");
  f("across_servers", v.across_servers, false, truth{}, "Its times hold where its GPUs stand on several servers.");
  f("cache_tokens", v.cache_tokens, standard.cache_tokens, integers{1},
    "Tokens of all requests of a continuous batch together that fit beside the weights. Default: no limit.");
  for (const char* times : {"pass", "step", "judged"})
    f.by_hand(
        times, [](const auto&) {}, [](auto&) {});
}

}  // namespace detail

/// Reads a cloud file. Throws invalid_input `FILE: /pointer: expected X, got Y`.
[[nodiscard]] serve::edge_cloud read_cloud(const json_document& d);

/// Returns the file of a cloud; reading it gives the identical cloud.
[[nodiscard]] std::string write_cloud(const serve::edge_cloud& c);

inline constexpr std::string_view services_format = "hetplan/services/1";

namespace keys {
inline constexpr std::array<std::string_view, 2> services{"format", "services"};
inline constexpr std::array<std::string_view, 15> service{
    "name",   "latency", "frame_latency", "rate",     "request_bytes", "response_bytes",      "bytes_per_token", "tokens",
    "frames", "weights", "batching",      "variants", "ttft",          "time_between_tokens", "prefill_chunk"};
inline constexpr std::array<std::string_view, 2> token_counts{"in", "out"};
inline constexpr std::array<std::string_view, 3> pass{"batch", "seconds", "per_token"};
inline constexpr std::array<std::string_view, 3> step{"batch", "seconds", "per_cached_token"};
inline constexpr std::array<std::string_view, 5> judged{"model", "device", "cluster", "weights", "largest"};
}  // namespace keys

/// Services, and the times of their variants.
struct services_file {
  std::vector<serve::service> services;
  serve::service_time_table times;
};

/// What a variant's times are planned and simulated for: names or files.
struct judged_source {
  std::string model;
  std::string cluster;  ///< or a kind of device
  std::string weights;  ///< format of the matrices; "": the model's own
  int largest = 64;     ///< batch
};
/// Returns the times of a variant of a service, and sets what its memory gives: cache_tokens, unless the file does. May throw
/// invalid_input, to which the place in the file is added.
using variant_judge = std::function<serve::variant_times(const serve::service&, serve::service_variant&, const judged_source&)>;

/// Reads a services file. Without a judge, variants must have their times.
/// Throws invalid_input `FILE: /pointer: expected X, got Y`.
[[nodiscard]] services_file read_services(const json_document& d, const variant_judge& judge = {});

inline constexpr std::string_view faults_format = "hetplan/faults/1";

namespace keys {
inline constexpr std::array<std::string_view, 2> faults{"format", "events"};
inline constexpr std::array<std::string_view, 7> fault{"at", "kind", "server", "until", "gpu", "device", "factor"};
}  // namespace keys

/// Reads a faults file. Throws invalid_input `FILE: /pointer: expected X, got Y`.
[[nodiscard]] std::vector<serve::serving_fault> read_faults(const json_document& d, const serve::edge_cloud& cloud);

inline constexpr std::string_view deployment_format = "hetplan/deployment/1";

namespace keys {
inline constexpr std::array<std::string_view, 3> deployment{"format", "instances", "changes"};
inline constexpr std::array<std::string_view, 7> instance{"service", "variant", "gpus", "device", "batch", "frames", "groups"};
inline constexpr std::array<std::string_view, 2> deployment_change{"at", "instances"};
}  // namespace keys

/// A deployment and the later ones that replace it.
struct deployment_file {
  serve::deployment first;
  std::vector<seconds> at = {};
  std::vector<serve::deployment> changes = {};
};

/// Reads a deployment file. Throws invalid_input `FILE: /pointer: expected X, got Y`, also for what serve::validate rejects.
[[nodiscard]] deployment_file read_deployment(const json_document& d, const serve::edge_cloud& cloud,
                                              const std::vector<serve::service>& services, const serve::any_service_time& times);

/// Returns the file of deployments; reading it gives the identical deployments.
[[nodiscard]] std::string write_deployment(const deployment_file& d, const serve::edge_cloud& cloud,
                                           const std::vector<serve::service>& services);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/serving_json.ipp>
#endif
