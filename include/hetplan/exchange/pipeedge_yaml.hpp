// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Models and device types of PipeEdge as planning graphs and clusters. Needs yaml-cpp (hetplan::yaml).

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/cluster_json.hpp>

namespace hetplan::exchange {

// Checked access to YAML files. Needs yaml-cpp (hetplan::yaml).

/// Size limit of YAML files: 4 MB, as yaml-cpp keeps a node of some hundred bytes for every value.
inline constexpr std::size_t max_yaml_bytes = 4'000'000;

/// A value of a YAML file with checked accessors. An accessor throws invalid_input `FILE: line N: KEY: KEY: expected X, got Y` if the value
/// is something else.
class yaml_node {
 public:
  /// Parses a text with one document; `file` is its name in messages.
  ///
  /// Throws  invalid_input, one line that starts with the file: more than max_yaml_bytes, a syntax error with line and column, an
  ///         alias, nesting > 64, bytes that are no UTF-8, no document or several.
  /// Source  YAML 1.2, as yaml-cpp reads it. Deviation: aliases are refused.
  [[nodiscard]] static yaml_node parse(const std::string& text, const std::string& file);

  [[nodiscard]] bool is_null() const { return node_.IsNull(); }

  [[nodiscard]] std::string shown() const;
  [[noreturn]] void fail_with(std::string_view text) const;
  [[noreturn]] void fail(std::string_view expected) const { fail_with("expected " + std::string(expected) + ", got " + shown()); }

  /// Returns key and value of every member of a map, in file order. Keys are distinct strings.
  [[nodiscard]] std::vector<std::pair<std::string, yaml_node>> members(std::string_view expected) const;
  /// Returns a member that must be there. Other members are ignored.
  [[nodiscard]] yaml_node at(std::string_view key, std::string_view expected) const;
  [[nodiscard]] std::vector<yaml_node> elements(std::string_view expected) const;

  /// Returns a string that is not empty.
  [[nodiscard]] std::string name(std::string_view expected) const;
  /// Returns a finite decimal number >= least, not in quotes.
  [[nodiscard]] double number(double least, std::string_view expected) const;
  /// Returns a whole number >= least.
  [[nodiscard]] double whole(double least, std::string_view expected) const;

 private:
  yaml_node(std::shared_ptr<const std::string> file, std::string path, YAML::Node node);

  [[nodiscard]] static std::string place(const YAML::Mark& mark) { return "line " + std::to_string(mark.line + 1); }

  std::shared_ptr<const std::string> file_;
  std::string path_;  ///< keys up to here: "vit: layers: "
  YAML::Node node_;
};

/// An entry of models.yml. Elements are numbers of a tensor; their bytes depend on the profile's dtype.
struct pipeedge_model {
  std::string name;
  std::vector<bytes> memory;         ///< per layer: growth of the profiler's process, so weights and working memory
  double elements_in = 0;            ///< per sample, into the first layer
  std::vector<double> elements_out;  ///< per sample and layer
};

/// Measured seconds of a model's layers, forward only, for a whole batch.
struct pipeedge_profile {
  std::string model;
  std::string dtype;
  double batch = 1;
  std::vector<double> time_s;
};

/// An entry of device_types.yml.
struct pipeedge_device_type {
  std::string name;
  bytes_per_second bandwidth = {};
  bytes memory = {};
  std::vector<pipeedge_profile> profiles;
};

/// Number of devices of a type in a cluster.
struct pipeedge_count {
  std::string type;
  int devices = 1;
};

namespace detail {

[[nodiscard]] std::vector<double> amounts(const yaml_node& list, std::string_view expected);

/// A network in which every device has a link of its own bandwidth in each direction. Resources are "A.up" and "A.down", as in a star.
struct own_links {
  std::vector<bytes_per_second> bandwidth;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const;
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const;
};
static_assert(check_network_model<own_links>());

}  // namespace detail

/// Reads models.yml.
///
/// Units       mem_MB in 10^6 bytes, with which the profiler's numbers are whole pages; parameters_in and parameters_out in elements.
/// Throws      invalid_input `FILE: line N: KEY: expected X, got Y`: no YAML, a missing key, a wrong type, a number that is not finite or
///             < 0, a list of another length than `layers`, a duplicate model. Other keys are ignored.
/// Source      PipeEdge (DSD 2022), its repository's scheduler files. Deviations: its scheduler takes a MB for 2^20 bytes and Mbit/s
///             for 2^20 bit/s; its profiler, which wrote the numbers, 10^6.
[[nodiscard]] std::vector<pipeedge_model> parse_pipeedge_models(const std::string& text, const std::string& file);
[[nodiscard]] std::vector<pipeedge_model> read_pipeedge_models(const std::string& path);

/// Reads device_types.yml.
///
/// Units       bw_Mbps in 10^6 bit/s, mem_MB in 10^6 bytes, time_s in seconds of a whole batch.
/// Throws      as parse_pipeedge_models; a duplicate profile.
/// Source      PipeEdge (DSD 2022), its repository's scheduler files.
[[nodiscard]] std::vector<pipeedge_device_type> parse_pipeedge_device_types(const std::string& text, const std::string& file);
[[nodiscard]] std::vector<pipeedge_device_type> read_pipeedge_device_types(const std::string& path);

/// Returns the bytes of one element: 4 for "torch.float32".
///
/// Throws  invalid_input for an unknown dtype, with a list of the known ones.
/// Source  PyTorch's element types.
[[nodiscard]] double bytes_of_dtype(std::string_view dtype);

/// Returns the chain of a model's layers, "layer1", "layer2" and so on as PipeEdge numbers them, with a profile for every device type that
/// has measured the model with the dtype.
///
/// Samples     of a batch are the graph's samples. With a single measured batch size, smaller batches take its time and larger ones time
///             in proportion.
/// Memory      a layer's `weight` is its `mem_MB`, all the memory that it needs on a device, so `parameters()` of the graph is too large.
///             The backward was not measured: the graph is for inference, its layers are not trainable.
/// Throws      invalid_input: no layer, an unknown dtype, a profile whose number of layers differs from the model's (both are named), no
///             type with a profile of the model.
/// Complexity  O(layers x types x profiles).
/// Source      PipeEdge (DSD 2022) sec. IV, its repository's scheduler files. Deviation: no edge carries the input of the first layer.
[[nodiscard]] planning_graph pipeedge_graph(const pipeedge_model& m, std::span<const pipeedge_device_type> types,
                                            std::string_view dtype = "torch.float32");

/// Returns a cluster with the given number of devices of each type, "TYPE-0", "TYPE-1" and so on. Each device has a link of its type's
/// bandwidth in both directions, so the smaller bandwidth limits a transfer.
///
/// Throws  invalid_input: an unknown type, a type without memory or bandwidth, a count < 1, more than io::max_devices.
/// Source  PipeEdge (DSD 2022) sec. IV: the bandwidth between two devices is the smaller one of theirs.
[[nodiscard]] cluster pipeedge_cluster(const std::string& name, std::span<const pipeedge_device_type> types,
                                       std::span<const pipeedge_count> counts);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/pipeedge_yaml.ipp>
#endif
