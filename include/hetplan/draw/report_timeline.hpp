// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report's charts over the time of a run, which zoom together: who computes and sends what, the use of the network, and memory.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/draw/gantt.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/trace_view.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/simulate/wait_states.hpp>

namespace hetplan::draw::detail {

/// Data of a judged plan shared by all sections of the report. The arguments must outlive it.
///
/// Complexity  that of the critical chain and of trace_view::resources.
class report_run {
 public:
  const hetplan::plan& plan;
  const hetplan::evaluation& evaluation;  ///< with bounds, beside that of the judgement
  const hetplan::cluster& cluster;
  const hetplan::judgement& judgement;
  trace_view view;
  std::vector<resource_view> resources;
  std::vector<critical_link> chain;
  bool merged = false;  ///< true if there are too many tasks for a bar each, so that bars are averages

  report_run(const ranked_plan& p, const hetplan::cluster& c, const hetplan::judgement& j, std::size_t max_bars);

  [[nodiscard]] double latency_s() const { return judgement.trace.latency.value(); }
  [[nodiscard]] bool critical(tasks::node_id n) const { return critical_[n] != 0; }
  [[nodiscard]] bool used(device_id d) const { return judgement.graph.used[d.index()] != 0; }

  /// Returns the seconds that a transfer lost by sharing its route.
  [[nodiscard]] double lost_s(std::size_t t) const;

  /// Returns the largest number of concurrent other transfers on a resource of a transfer's route, and the resource's name.
  [[nodiscard]] std::pair<std::uint32_t, std::string> most_others(std::size_t t) const;

  /// Returns the reason why a task or transfer did not start earlier, "" if it started with the run.
  [[nodiscard]] std::string why(tasks::node_id n) const;

  /// Returns further lines of a bar's hover text, after name, times and bytes. Each begins with a line break.
  [[nodiscard]] std::string hover_lines(tasks::node_id n) const;

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  wait_states wait_states_;
  std::vector<char> critical_;            ///< by node: true if on the critical path
  std::vector<std::size_t> of_resource_;  ///< by resource: index into `resources`
  bool prioritised_ = false;
};

/// Categories of time on the critical path.
enum class critical_part { computing, transfer, latency, lost, held };
inline constexpr std::size_t critical_part_count = static_cast<std::size_t>(critical_part::held) + 1;

struct critical_part_style {
  std::string_view name, about;
  color fill;
};
[[nodiscard]] critical_part_style style_of(critical_part p);
[[nodiscard]] std::array<double, critical_part_count> parts_of(const critical_link& l, bool compute);

/// Returns the Gantt chart: the critical path, a row per device with its outgoing transfers, a row per network resource.
[[nodiscard]] std::string timeline_chart(const report_run& run);

/// Returns the bandwidth by resource, stacked by kind of transfer; "" if nothing was sent.
[[nodiscard]] std::string bandwidth_chart(const report_run& run);

/// Returns the memory by used device: constant state, activations on top, and the limit.
[[nodiscard]] std::string memory_chart(const report_run& run);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/report_timeline.ipp>
#endif
