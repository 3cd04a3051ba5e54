// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What pictures read out of a judgement: names, who waited for what, how every resource was shared.

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

// A judged plan in Chrome's trace-event format, which opens in Perfetto (ui.perfetto.dev) and chrome://tracing.

/// The trace as JSON: process "devices" with a thread per used device and a counter of its memory, process
/// "network" with lanes per used resource (transfers that overlap lie on different lanes) and counters of its load.
/// Slices say what they waited for, bytes, latency and the share of the route's peak rate they got.
///
/// @param j      from evaluate or judge of this plan on this cluster; counters need simulator_options{.record = true}.
/// Units         ts and dur in microseconds with nanoseconds behind the point (the format's rule), args in SI.
/// Determinism   same input, same bytes.
/// Source        "Trace Event Format", Google, 2016.
[[nodiscard]] std::string chrome_trace(const plan& p, const cluster& c, const judgement& j);

/// A transfer's part of a resource during [start_s, end_s): from `low` to `high` of its capacity.
struct share_band {
  std::uint32_t transfer = 0;
  double start_s = 0, end_s = 0;
  double low = 0, high = 0;
};

/// During [start_s, end_s), `active` transfers (starved ones included) take these shares of the capacity.
struct resource_load {
  double start_s = 0, end_s = 0;
  std::array<double, transfer_kind_count> kinds = {};  ///< by transfer_kind
  std::uint32_t active = 0;

  [[nodiscard]] double share() const { return std::accumulate(kinds.begin(), kinds.end(), 0.0); }
};

/// How one resource was shared over time. Contention is more than one transfer at a time.
struct resource_view {
  resource_id resource;
  bool recorded = true;              ///< false: the trace has no rates, heights only count transfers
  std::vector<resource_load> loads;  ///< in time order; idle times are left out
  std::vector<share_band> bands;     ///< by (transfer, time), joined where nothing changes; only if asked for
  std::size_t pieces = 0;            ///< of bands, at most
  double peak = 0;                   ///< the largest share

  [[nodiscard]] double contended_s() const;
};

enum class sweep_detail { loads, bands };

/// A judgement, read for pictures. Refers to its arguments, which must outlive it.
///
/// Complexity  O(nodes + dependencies).
class trace_view {
 public:
  trace_view(const plan& p, const cluster& c, const judgement& j);
  // A temporary is gone at the end of the line.
  trace_view(const plan&& the_plan_must_outlive_it, const cluster&, const judgement&) = delete;
  trace_view(const plan&, const cluster&& the_cluster_must_outlive_it, const judgement&) = delete;
  trace_view(const plan&, const cluster&, const judgement&& the_judgement_must_outlive_it) = delete;

  [[nodiscard]] double latency_s() const { return trace_.latency.value(); }
  /// Did it end? A stopped trace has tasks that never did.
  [[nodiscard]] bool ended(std::size_t compute) const;
  [[nodiscard]] bool transfer_ended(std::size_t t) const;

  /// How long the device stood idle before the task.
  [[nodiscard]] double idle_before_s(std::size_t compute) const;
  /// What the device waited for, "" if it did not.
  [[nodiscard]] std::string waited_for(std::size_t compute) const;
  /// From the end of its producer until the transfer may use its route (release time, ports).
  [[nodiscard]] double held_back_s(std::size_t t) const;
  /// When its first byte moves: the latency is over.
  [[nodiscard]] double drain_start_s(std::size_t t) const { return trace_.transfers[t].start_s + graph_.transfers[t].latency_s; }
  /// Mean rate over the route's peak; 1 = had it for itself.
  [[nodiscard]] double route_share(std::size_t t) const;

  [[nodiscard]] std::string stage_name(stage_id s) const;
  /// The stages of a device; of many, as where every operator is one, their number.
  [[nodiscard]] std::string stages_of(device_id d) const;
  /// What a bar shows: the microbatch, or where there is one alone, the stage.
  [[nodiscard]] std::string bar_label(std::size_t compute) const;
  [[nodiscard]] std::string device_name(device_id d) const;
  /// "forward s1, microbatch 3": an unsplit backward is just that.
  [[nodiscard]] std::string compute_name(std::size_t n) const;
  [[nodiscard]] std::string transfer_name(std::size_t n) const;

  [[nodiscard]] std::string node_name(tasks::node_id n) const;

  /// Every resource that carried a transfer, by id.
  ///
  /// Complexity  O(transfers log + rate changes) * route length; bands: times the transfers active at a time.
  [[nodiscard]] std::vector<resource_view> resources(sweep_detail detail = sweep_detail::loads) const;

 private:
  static tasks::node_id node(std::size_t compute) { return static_cast<tasks::node_id>(compute); }
  static bool has_ended(const interval& i, bool takes_time) { return i.end_s >= i.start_s && (!takes_time || i.end_s > 0); }
  [[nodiscard]] std::string token_name(int token) const;
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
