// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Layer profiles of Metis as a chain with times of one or several kinds of devices.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

/// One file: what an iteration took at one batch size and degree of tensor parallelism.
struct metis_profile {
  std::string file;
  std::string device_kind;
  int tensor_parallel = 1;
  int batch = 1;
  std::string model = {};
  std::vector<double> weights = {};             ///< bytes by layer
  std::vector<double> outputs = {};             ///< bytes by layer, of the batch; may be empty
  std::vector<double> forward_backward_s = {};  ///< by layer
  std::vector<double> memory = {};              ///< bytes by layer: weights, gradients, optimizer, activations; may be empty
};

/// Device kind, degree and batch size that a file's name tells: `DeviceType.A100_tp1_bs2.json`, or `mbs2_tmp1.json` in a folder of the
/// kind's name. None for another name.
struct metis_name {
  std::string device_kind;
  int tensor_parallel = 1;
  int batch = 1;

  friend bool operator==(const metis_name&, const metis_name&) = default;
};
[[nodiscard]] std::optional<metis_name> metis_name_of(const std::string& path);

/// Reads a profile: `model` (`model_name`, `parameters` with `parameters_per_layer_bytes` and optionally `activation_parameters_bytes`),
/// `execution_time.layer_compute_total_ms`, optionally `execution_memory.layer_memory_total_mb` (2^20 bytes). Other keys are ignored.
///
/// Throws  invalid_input `FILE: /pointer: expected X, got Y`: another format, lists of different lengths, numbers below 0.
/// Source  the README of github.com/SamsungLabs/Metis, "Profile Data Structure"; values of its samples.
[[nodiscard]] metis_profile read_metis(const io::json_document& d, const metis_name& name);

struct metis_choice {
  int tensor_parallel = 1;
  double forward_share = 1.0 / 3;              ///< of a time that holds forward and backward
  std::optional<bytes> output = std::nullopt;  ///< of every layer for a sample, in place of the files'
};

/// Returns a chain of the layers with times by batch size for each kind of device that was measured at that degree. Weights are those of a
/// file of degree 1, or else of the degree. A layer keeps what its memory grows by from batch to batch (least squares over the batch sizes
/// of the kind that was measured at most of them), or else its output.
///
/// Throws  invalid_input that names the file: no file of that degree, files that disagree about the layers, two of the same name, no
///         outputs and none stated; a share outside (0, 1).
[[nodiscard]] planning_graph metis_chain(std::span<const metis_profile> all, const metis_choice& choice = {});

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/metis_profile.ipp>
#endif
