// SPDX-License-Identifier: BSL-1.0
#pragma once
/// EPARA's allocator of parallelism: how a service runs on a kind of GPU, by category of the task.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// The category of a task: sensitive to latency or frequency, on one GPU or several.
/// Source  EPARA, section 3.1.
enum class task_category { one_gpu_latency, several_gpus_latency, one_gpu_frequency, several_gpus_frequency };
[[nodiscard]] std::string_view to_string(task_category c);

/// The number of GPUs of a model: one, as few as SLO and memory need, or as many as its variants allow.
enum class model_parallelism { none, as_needed, widest };

/// The operators that may be used; baselines lack some.
/// Source  EPARA, section 3.1 and table 3.
struct parallelism_operators {
  bool batching = true;                                  ///< BS
  bool multi_task = true;                                ///< MT: otherwise a GPU has one instance at most
  model_parallelism cut = model_parallelism::as_needed;  ///< MP
  bool multi_frame = true;                               ///< MF, of streams
  bool data_parallel = true;                             ///< DP, of streams
  friend bool operator==(const parallelism_operators&, const parallelism_operators&) = default;
};

/// GPUs of one kind, of which a service may use some.
struct gpu_pool {
  gpu unit;
  int count = 1;
  bool across_servers = false;  ///< true if they are on several servers
  friend bool operator==(const gpu_pool&, const gpu_pool&) = default;
};

/// Returns the DP groups: ceil(required rate / rate of one group).
/// Source  EPARA, eq. 4.
[[nodiscard]] int data_parallel_groups(double required_rate, double rate_of_one_group);
/// Returns the inter-request count: floor(BS / MF).
/// Source  EPARA, eq. 5.
[[nodiscard]] int inter_request_count(int batch, int frames);

/// The configuration of a service on a kind of GPU.
struct allocation {
  service_id what;
  int variant = 0;      ///< MP
  int batch = 1;        ///< BS
  int replicas = 1;     ///< MT: instances that fit on one GPU; as in the paper, a power of two up to 16
  int frames = 1;       ///< MF
  int groups = 1;       ///< DP (eq. 4)
  bool alone = false;   ///< true if its GPUs are not shared
  double capacity = 0;  ///< requests (frames) per second of an instance
  double gpus = 0;      ///< GPUs of an instance, by the scarcer of compute and memory
  seconds answer = {};  ///< time of a request that has just missed a batch; for a stream of one batch of frames
  bool meets_slo = true;
  std::vector<std::string> because = {};  ///< one sentence per operator

  /// Returns the inter-request count: the streams with frames in a batch (eq. 5).
  [[nodiscard]] int streams() const { return inter_request_count(batch, frames); }
  [[nodiscard]] task_category category(const service& s) const;
  /// True if an answer can be in time; always for a stream, which may be served in part.
  [[nodiscard]] bool serves(const service& s) const { return meets_slo || s.is_stream(); }
  [[nodiscard]] int gpu_count(const service& s) const { return groups * s.variants[static_cast<std::size_t>(variant)].gpus(); }
  [[nodiscard]] instance unplaced() const { return {.what = what, .variant = variant, .batch = batch, .frames = frames, .groups = groups}; }
};

/// Configures a service for the GPUs of a pool; empty if no variant of this kind fits their memory or number.
///
/// MP  the variant of the fewest GPUs with which the SLO is met (a stream without DP: its rate; the widest on request). Of several: with
///     time to miss a batch, then the most capacity per GPU, then the smallest slice. If none meets it: the first answer (highest rate).
/// BS  the power of two, 2^0 to 2^9, with the most capacity that leaves a request time to miss a batch and be in the next: T(b) (1 + 1/p)
///     <= SLO. If no batch does, a single request at least has to be answered in time.
/// MT  as many instances as fit in compute and memory of one GPU, 2^0 to 2^4.
/// For streams, the SLO here is the time limit of frames (service::answer_latency), not that of their start.
/// MF  the most frames of a stream in one batch whose time m / rate is within the SLO, up to BS.
/// DP  eq. 4, with the rate of one group for one stream.
///
/// A pure function; `because` gives the reasons.
/// Complexity  O(variants x largest batch). Throws  invalid_model for a service time that is not finite and above 0.
/// Source      EPARA, sections 3.1 and 4.1, eqs. 4 and 5. Deviations: the paper profiles BS and MT, here they follow from the service
///             times; its MP is given by the user or by DeepSpeed, here it is chosen among the variants.
[[nodiscard]] std::optional<allocation> allocate(service_id id, const service& s, const gpu_pool& pool, const any_service_time& times,
                                                 const parallelism_operators& operators = {});

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/parallelism_allocator.ipp>
#endif
