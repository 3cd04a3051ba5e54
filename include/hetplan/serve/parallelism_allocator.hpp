// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How a service runs on a kind of GPU: EPARA's allocator of parallelism, by category of the task.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// What a task is sensitive to, and whether one GPU is enough for it.
/// Source  EPARA, section 3.1.
enum class task_category { one_gpu_latency, several_gpus_latency, one_gpu_frequency, several_gpus_frequency };
[[nodiscard]] std::string_view to_string(task_category c);

/// Over how many GPUs a model is cut: one, as few as its SLO and memory need, or as many as it can be cut for.
enum class model_parallelism { none, as_needed, widest };

/// The operators that may be used; baselines do without some.
/// Source  EPARA, section 3.1 and table 3.
struct parallelism_operators {
  bool batching = true;                                  ///< BS
  bool multi_task = true;                                ///< MT: else a GPU has one instance at most
  model_parallelism cut = model_parallelism::as_needed;  ///< MP
  bool multi_frame = true;                               ///< MF, of streams
  bool data_parallel = true;                             ///< DP, of streams
  friend bool operator==(const parallelism_operators&, const parallelism_operators&) = default;
};

/// GPUs of one kind, some of which a service may use.
struct gpu_pool {
  gpu unit;
  int count = 1;
  bool across_servers = false;  ///< they stand on several servers
  friend bool operator==(const gpu_pool&, const gpu_pool&) = default;
};

/// DP groups = ceil(required rate / rate of one group).
/// Source  EPARA, eq. 4.
[[nodiscard]] int data_parallel_groups(double required_rate, double rate_of_one_group);
/// Inter-request count = floor(BS / MF).
/// Source  EPARA, eq. 5.
[[nodiscard]] int inter_request_count(int batch, int frames);

/// One service on one kind of GPU.
struct allocation {
  service_id what;
  int variant = 0;      ///< MP
  int batch = 1;        ///< BS
  int replicas = 1;     ///< MT: as many instances fit on one GPU; as the paper counts, a power of two up to 16
  int frames = 1;       ///< MF
  int groups = 1;       ///< DP (eq. 4)
  bool alone = false;   ///< its GPUs are not shared with others
  double capacity = 0;  ///< requests (frames) a second of an instance
  double gpus = 0;      ///< how much of a GPU, or of how many, an instance takes: the scarcer of compute and memory
  seconds answer = {};  ///< of one request that has just missed a batch; for a stream of one batch of frames
  bool meets_slo = true;
  std::vector<std::string> because = {};  ///< a sentence for each operator

  /// Inter-request count: of so many streams a batch takes frames (eq. 5).
  [[nodiscard]] int streams() const { return inter_request_count(batch, frames); }
  [[nodiscard]] task_category category(const service& s) const;
  /// Is an answer in time at least, or part of a stream?
  [[nodiscard]] bool serves(const service& s) const { return meets_slo || s.is_stream(); }
  /// GPUs of an instance.
  [[nodiscard]] int gpu_count(const service& s) const { return groups * s.variants[static_cast<std::size_t>(variant)].gpus(); }
  /// The instance, without a place.
  [[nodiscard]] instance unplaced() const { return {.what = what, .variant = variant, .batch = batch, .frames = frames, .groups = groups}; }
};

/// Configures a service for the GPUs of a pool; none where no variant of this kind fits in their memory or number.
///
/// MP  the variant of the fewest GPUs with which the SLO is met (a stream without DP: its rate; the widest, if so told), of several one
///     that leaves time to miss a batch, and of these the one with the most capacity per GPU, of equal ones the smallest slice; where none
///     does, the one that answers first (has the highest rate).
/// BS  the power of two, 2^0 to 2^9, with the most capacity that leaves a request time to miss a batch and be in the next: T(b) (1 + 1/p)
///     <= SLO. Where no batch does, one request is to be answered in time at least.
/// MT  as many instances as fit in compute and memory of one GPU, 2^0 to 2^4.
/// Of streams, SLO is here the time that frames have (service::answer_latency), not that in which a stream is to begin.
/// MF  the most frames of a stream in one batch whose time m / rate is within the SLO, up to BS.
/// DP  eq. 4, with the rate of one group for one stream.
///
/// A pure function: it says in `because` why.
/// Complexity  O(variants x largest batch). Throws  invalid_model where a service time is not finite and above 0.
/// Source      EPARA, sections 3.1 and 4.1, eqs. 4 and 5. Deviations: the paper profiles BS and MT, here they follow from the service
///             times; its MP is told by the user or by DeepSpeed, here it is chosen among the variants.
[[nodiscard]] std::optional<allocation> allocate(service_id id, const service& s, const gpu_pool& pool, const any_service_time& times,
                                                 const parallelism_operators& operators = {});

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/parallelism_allocator.ipp>
#endif
