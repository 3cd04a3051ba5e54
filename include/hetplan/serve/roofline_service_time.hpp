// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Service times by a roofline: what a model computes and moves, and what a GPU can.

#include <map>
#include <string>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// What a kind of GPU reaches, not what it has on paper.
struct gpu_speed {
  flops_per_second compute;
  bytes_per_second memory;   ///< bandwidth of its memory
  seconds launch = {};       ///< of each operator of a pass, whatever its size
  bytes_per_second link;     ///< between GPUs of a server
  bytes_per_second network;  ///< between GPUs of several servers
  seconds link_latency = {};
  seconds network_latency = {};
  friend bool operator==(const gpu_speed&, const gpu_speed&) = default;
};

/// What one request costs, or one token of it.
struct model_work {
  flops per_request = {};  ///< without tokens
  flops per_token = {};
  bytes weights = {};            ///< read in every pass and step
  bytes moved_per_request = {};  ///< activations read and written
  bytes cache_per_token = {};    ///< of keys and values, read in every step
  bytes reserved = {};           ///< of each GPU's memory, beside weights and requests
  bytes exchanged = {};          ///< by each all-reduce, of a request or of a token
  int operators = 1;
  int exchanges = 0;  ///< all-reduces of a pass when tensors are cut
  friend bool operator==(const model_work&, const model_work&) = default;
};

/// A service_time: operators x launch + max(computing, moving) + all-reduces, each over the GPUs that share the tensors, each by the share
/// of a GPU. Stages of a pipeline do a part each, one after the other.
///
/// Complexity  O(log kinds) a question.
/// Source      ours, after Williams et al. (2009); an all-reduce over n takes 2 (n - 1)/n of its bytes (ring).
class roofline_service_time {
 public:
  /// @param work     by service.
  /// @param largest  batch that is asked for.
  /// Throws invalid_input: a speed that is not above 0 and finite, an amount below 0, no FLOP; when asked, a kind or service that is not
  /// there.
  roofline_service_time(std::map<std::string, gpu_speed> kinds, std::vector<model_work> work, int largest = 512);

  [[nodiscard]] seconds pass(const service_run& r, const batch_load& b) const;
  [[nodiscard]] seconds step(const service_run& r, int requests) const;
  /// What memory has room for beside the weights: tokens of typical requests, or activations.
  [[nodiscard]] int largest_batch(const service_run& r) const;

 private:
  /// Seconds of a pass over so much, exchanging for so many requests or tokens.
  [[nodiscard]] double once_s(const service_run& r, double flops, double bytes, double items) const;
  [[nodiscard]] const model_work& work_of(const service_run& r) const;
  [[nodiscard]] const gpu_speed& speed_of(const service_run& r) const;

  std::map<std::string, gpu_speed> kinds_;
  std::vector<model_work> work_;
  int largest_;
};
static_assert(check_service_time<roofline_service_time>());

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/roofline_service_time.ipp>
#endif
