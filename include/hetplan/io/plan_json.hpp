// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plan files: hetplan/plan/1.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::io {

inline constexpr std::string_view plan_format = "hetplan/plan/1";

namespace keys {
inline constexpr std::array<std::string_view, 17> plan{"format",          "model",        "cluster",   "planner", "mode",     "workload",
                                                       "microbatch_size", "microbatches", "schedule",  "flows",   "network",  "sync",
                                                       "stages",          "pipelines",    "transfers", "copies",  "predicted"};
inline constexpr std::array<std::string_view, 7> workload{"optimizer_factor", "optimizer",    "context",         "tokens",
                                                          "prompt",           "prompt_chunk", "chunks_in_flight"};
inline constexpr std::array<std::string_view, 4> schedule{"kind", "warmup", "orders", "flows"};
inline constexpr std::array<std::string_view, 10> flow{"from",  "to",    "from_stage", "to_stage", "microbatch",
                                                       "phase", "chunk", "of",         "release",  "priority"};
inline constexpr std::array<std::string_view, 1> sync{"parameter_server"};
inline constexpr std::array<std::string_view, 2> pipeline{"samples", "stages"};
inline constexpr std::array<std::string_view, 11> stage{"name", "microbatch_size", "layers", "devices", "recompute", "shard_state",
                                                        "grid", "shard",           "units",  "cuts",    "offload"};
inline constexpr std::array<std::string_view, 2> grid{"rows", "columns"};
inline constexpr std::array<std::string_view, 2> cuts{"forward", "backward"};
inline constexpr std::array<std::string_view, 3> assignment{"name", "samples", "tensor_parallel"};
inline constexpr std::array<std::string_view, 11> predicted{
    "latency",          "energy",          "peak_memory",        "bound", "gap", "ttft", "schedule_bound", "schedule_gap",
    "contention_bound", "placement_bound", "time_between_tokens"};
}  // namespace keys

/// What a plan file holds: a plan, and what is predicted of it where the file says so.
struct plan_file {
  hetplan::plan plan;
  std::optional<evaluation> predicted = {};

  friend bool operator==(const plan_file&, const plan_file&) = default;
};

namespace detail {

[[nodiscard]] recomputation recomputation_in(const json_node& n);
/// Adds `recompute` to a stage that does.
void put_recomputation(json& o, recomputation r);

class plan_reader {
 public:
  plan_reader(const json_document& d, const planning_graph& model, const cluster& c);

  plan_file read();

  /// Returns the JSON pointer of a place reported by validate().
  [[nodiscard]] std::string pointer_of(const std::string& where) const;

 private:
  void read_workload();

  [[nodiscard]] device_id find_device(const json_node& n) const;
  [[nodiscard]] device_id find_device(const json_node& owner, std::string_view key) const;
  [[nodiscard]] std::string device_suggestion(std::string_view given) const;

  void read_stages_or_pipelines();

  /// Reads the stages of a pipeline. Every pipeline lists all layers, so that the tables of `validate` grow no faster than the file.
  void read_stages(const json_node& list, int pipeline);

  void read_stage(const json_node& n, int pipeline);
  [[nodiscard]] std::vector<layer_id> read_layers(const json_node& list) const;
  [[nodiscard]] std::string layer_suggestion(std::string_view given) const;
  void read_devices(const json_object& o, stage& s) const;
  void read_cuts(const json_node& n, stage& s) const;
  [[nodiscard]] std::vector<offloaded_layer> read_offload(const json_node& n) const;

  void read_sync(const json_node& n);

  void read_schedule(const json_node& n);

  /// Reads flows, which may stand inside or beside the schedule.
  void read_flows(const json_node& flows);

  /// Returns a stage by index or unique name.
  [[nodiscard]] stage_id find_stage(const json_node& n);

  void read_orders(const json_node& n);

  [[nodiscard]] transfer_rule read_flow(const json_node& n);
  [[nodiscard]] std::optional<stage_id> stage_or_only_one(const json_object& flow, std::string_view key, device_id d);
  [[nodiscard]] std::string which_stage(device_id d) const;

  [[nodiscard]] evaluation read_predicted(const json_node& n) const;

  json_object top_;
  const planning_graph& model_;
  const cluster& cluster_;
  plan p_;
  std::unordered_map<std::string_view, device_id> devices_;
  std::map<device_id, std::vector<stage_id>> stages_of_;
  std::unordered_map<std::string, stage_id> stage_names_;
  bool flows_given_ = false, flows_beside_schedule_ = false;
};

}  // namespace detail

/// Reads a plan file for a model and a cluster, and validates the plan. Busy times and bytes are not in `predicted` and read as 0.
///
/// Throws  invalid_input `FILE: /pointer: expected X, got Y` for what docs/reference/files.md calls bad input, including an order that
///         deadlocks.
[[nodiscard]] plan_file read_plan(const json_document& d, const planning_graph& model, const cluster& c);

namespace detail {

json write_evaluation_by_device(const evaluation& e, const cluster& c, double (*number)(const device_evaluation&));
json write_energy(const evaluation& e, const cluster& c);
json write_peak_memory(const evaluation& e, const cluster& c);
/// Adds the bounds and, in generation, the time between tokens.
void put_bounds(json& o, const evaluation& e);

json plan_json(const plan& p, const planning_graph& model, const cluster& c, const evaluation* predicted = nullptr);
json plan_json(const ranked_plan& r, const planning_graph& model, const cluster& c);

}  // namespace detail

/// Returns the plan file of a valid plan; reading it gives the plan again, and the part of its evaluation that a file holds.
[[nodiscard]] std::string write_plan(const plan& p, const planning_graph& model, const cluster& c);
[[nodiscard]] std::string write_plan(const ranked_plan& r, const planning_graph& model, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/plan_json.ipp>
#endif
