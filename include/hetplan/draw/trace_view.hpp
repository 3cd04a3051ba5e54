// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Data for pictures of a judgement: names, wait states, sharing of resources; and traces in Chrome's format.

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/wait_states.hpp>

namespace hetplan::draw {

// Chrome's trace-event format, readable by Perfetto (ui.perfetto.dev) and chrome://tracing.

/// Returns the trace as JSON. Process "devices" has a thread per used device and a counter of its memory. Process "network" has lanes per
/// used resource (overlapping transfers are on different lanes) and counters of its load. Slices have the reason of their wait, bytes,
/// latency and the share of the route's peak rate.
///
/// @param j      from evaluate or judge of this plan on this cluster; counters need simulator_options{.record = true}.
/// Units         ts and dur in microseconds, with nanoseconds as decimals (the format's rule); args in SI.
/// Determinism   same input, same bytes.
/// Source        "Trace Event Format", Google, 2016.
[[nodiscard]] std::string chrome_trace(const plan& p, const cluster& c, const judgement& j);

/// Share of a resource taken by a transfer during [start_s, end_s): from `low` to `high` of the capacity.
struct share_band {
  std::uint32_t transfer = 0;
  double start_s = 0, end_s = 0;
  double low = 0, high = 0;
};

/// Shares of a resource's capacity taken by `active` transfers (starved ones included) during [start_s, end_s).
struct resource_load {
  double start_s = 0, end_s = 0;
  std::array<double, transfer_kind_count> kinds = {};  ///< by transfer_kind
  std::uint32_t active = 0;

  [[nodiscard]] double share() const { return std::accumulate(kinds.begin(), kinds.end(), 0.0); }
};

/// Sharing of a resource over time. Contention is more than one transfer at a time.
struct resource_view {
  resource_id resource;
  bool recorded = true;              ///< false if the trace has no rates: heights then count transfers
  std::vector<resource_load> loads;  ///< in time order, without idle times
  std::vector<share_band> bands;     ///< only on request; sorted by (transfer, time), joined where nothing changes
  std::size_t pieces = 0;            ///< upper bound on the number of bands
  double peak = 0;                   ///< largest share

  [[nodiscard]] double contended_s() const;
};

enum class sweep_detail { loads, bands };

/// A judgement prepared for pictures. Its arguments must outlive it.
///
/// Complexity  O(nodes + dependencies).
class trace_view {
 public:
  trace_view(const plan& p, const cluster& c, const judgement& j);
  // Temporaries are refused: they would not outlive the view.
  trace_view(const plan&& the_plan_must_outlive_it, const cluster&, const judgement&) = delete;
  trace_view(const plan&, const cluster&& the_cluster_must_outlive_it, const judgement&) = delete;
  trace_view(const plan&, const cluster&, const judgement&& the_judgement_must_outlive_it) = delete;

  [[nodiscard]] double latency_s() const { return trace_.latency.value(); }
  /// True if a task ended. Tasks of a stopped trace may not have.
  [[nodiscard]] bool ended(std::size_t compute) const;
  [[nodiscard]] bool transfer_ended(std::size_t t) const;

  /// Returns the idle time of the device before a task.
  [[nodiscard]] double idle_before_s(std::size_t compute) const;
  /// Returns the name of the input that the device waited for before a task, "" if it did not wait.
  [[nodiscard]] std::string waited_for(std::size_t compute) const;
  /// Returns the seconds from the end of a transfer's producer until the transfer may use its route (release time, ports).
  [[nodiscard]] double held_back_s(std::size_t t) const;
  /// Returns the time at which the first byte moves, after the latency.
  [[nodiscard]] double drain_start_s(std::size_t t) const { return trace_.transfers[t].start_s + graph_.transfers[t].latency_s; }
  /// Returns the mean rate relative to the route's peak; 1 if it was not shared.
  [[nodiscard]] double route_share(std::size_t t) const;

  [[nodiscard]] std::string stage_name(stage_id s) const;
  /// Returns the stages of a device as text, or their number if there are many.
  [[nodiscard]] std::string stages_of(device_id d) const;
  /// Returns the label of a bar: the microbatch, or the stage if there is only one microbatch.
  [[nodiscard]] std::string bar_label(std::size_t compute) const;
  [[nodiscard]] std::string device_name(device_id d) const;
  /// Returns the name of a task: "forward s1, microbatch 3". A backward that is not split is just "backward".
  [[nodiscard]] std::string compute_name(std::size_t n) const;
  [[nodiscard]] std::string transfer_name(std::size_t n) const;

  [[nodiscard]] std::string node_name(tasks::node_id n) const;

  /// Returns every resource that carried a transfer, by id.
  ///
  /// Complexity  O(transfers log + rate changes) * route length; bands: times the number of concurrent transfers.
  [[nodiscard]] std::vector<resource_view> resources(sweep_detail detail = sweep_detail::loads) const;

 private:
  static tasks::node_id node(std::size_t compute) { return static_cast<tasks::node_id>(compute); }
  static bool has_ended(const interval& i, bool takes_time) { return i.end_s >= i.start_s && (!takes_time || i.end_s > 0); }
  [[nodiscard]] std::string pass_name(int pass) const;
  class sweep;

  const plan& plan_;
  const cluster& cluster_;
  const tasks::task_graph& graph_;
  const trace& trace_;
  wait_states wait_states_;
};

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/trace_view.ipp>
#endif
