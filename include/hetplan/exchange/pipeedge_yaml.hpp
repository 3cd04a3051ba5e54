// SPDX-License-Identifier: BSL-1.0
#pragma once
/// PipeEdge's models and device types: what its files say, and planning graph and cluster from it. Needs yaml-cpp (hetplan::yaml).

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/exchange/yaml_document.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/cluster_json.hpp>

namespace hetplan::exchange {

/// One entry of models.yml. An element is one number of a tensor; its bytes depend on the profile's dtype.
struct pipeedge_model {
  std::string name;
  std::vector<bytes> memory;         ///< per layer, as its profiler saw the process grow: weights and working space
  double elements_in = 0;            ///< of one sample, into the first layer
  std::vector<double> elements_out;  ///< of one sample, by layer
};

/// Measured seconds of a model's layers, forward only, for a whole batch.
struct pipeedge_profile {
  std::string model;
  std::string dtype;
  double batch = 1;
  std::vector<double> time_s;
};

/// One entry of device_types.yml.
struct pipeedge_device_type {
  std::string name;
  bytes_per_second bandwidth = {};
  bytes memory = {};
  std::vector<pipeedge_profile> profiles;
};

/// How many devices of a type a cluster has.
struct pipeedge_count {
  std::string type;
  int devices = 1;
};

namespace detail {

[[nodiscard]] std::vector<double> amounts(const yaml_node& list, std::string_view expected);

/// Every device has a link of its own bandwidth in each direction. Resources "A.up" and "A.down", as of a star.
struct own_links {
  std::vector<bytes_per_second> bandwidth;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const;
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const;
};
static_assert(check_network_model<own_links>());

}  // namespace detail

/// Reads models.yml.
///
/// Units       mem_MB in 10^6 bytes, by which the profiler's numbers are whole pages; parameters_in and parameters_out count elements.
/// Throws      invalid_input `FILE: line N: KEY: expected X, got Y`: no YAML, a missing key, a wrong type, a number that is not finite or
///             < 0, a list of another length than `layers`, a model twice. Other keys are let be.
/// Source      PipeEdge (DSD 2022), its repository's scheduler files. Deviations: its scheduler takes a MB for 2^20 bytes and Mbit/s
///             for 2^20 bit/s; its profiler, which wrote the numbers, 10^6.
[[nodiscard]] std::vector<pipeedge_model> parse_pipeedge_models(const std::string& text, const std::string& file);
[[nodiscard]] std::vector<pipeedge_model> read_pipeedge_models(const std::string& path);

/// Reads device_types.yml.
///
/// Units       bw_Mbps in 10^6 bit/s, mem_MB in 10^6 bytes, time_s in seconds of a whole batch.
/// Throws      as parse_pipeedge_models; and a profile twice.
/// Source      PipeEdge (DSD 2022), its repository's scheduler files.
[[nodiscard]] std::vector<pipeedge_device_type> parse_pipeedge_device_types(const std::string& text, const std::string& file);
[[nodiscard]] std::vector<pipeedge_device_type> read_pipeedge_device_types(const std::string& path);

/// Bytes of one element: torch.float32 has 4.
///
/// Throws  invalid_input for a dtype that is not known, naming those that are.
/// Source  PyTorch's element types.
[[nodiscard]] double bytes_of_dtype(std::string_view dtype);

/// A chain of the model's layers, with a profile for every type that measured the model with the dtype; layers are called "layer1", ...
/// as PipeEdge numbers them.
///
/// Samples     of a batch are the graph's samples. Where a type was measured at one batch size alone, smaller batches take its time and
///             larger ones in proportion.
/// Memory      a layer's `weight` is its `mem_MB`: what a device needs for it, not parameters alone, so `parameters()` of the graph says
///             too much. Nothing was measured backward: the graph is for inference, its layers are not trainable.
/// Throws      invalid_input: no layer, a dtype that is not known, a profile with another number of layers than the model (both are
///             named), no type that measured the model.
/// Complexity  O(layers x types x profiles).
/// Source      PipeEdge (DSD 2022) sec. IV, its repository's scheduler files. Deviation: the input of the first layer is on no edge.
[[nodiscard]] planning_graph pipeedge_graph(const pipeedge_model& m, std::span<const pipeedge_device_type> types,
                                            std::string_view dtype = "torch.float32");

/// So many devices of each type, called "TYPE-0", "TYPE-1", ..., each with a link of its type's bandwidth in both directions: between two
/// the smaller counts.
///
/// Throws  invalid_input: an unknown type, one without memory or bandwidth, a count < 1, more than io::max_devices.
/// Source  PipeEdge (DSD 2022) sec. IV: the bandwidth between two devices is the smaller one of theirs.
[[nodiscard]] cluster pipeedge_cluster(const std::string& name, std::span<const pipeedge_device_type> types,
                                       std::span<const pipeedge_count> counts);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/pipeedge_yaml.ipp>
#endif
