// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Devices fitted to measurements. Definitions need Eigen (hetplan::fit).

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/fit/measurement.hpp>

namespace hetplan::fit {

/// Numbers of a cluster file that can be fitted, in the order in which they are given a chance: what the rows cannot tell from those before
/// it keeps its value.
enum class parameter_kind {
  efficiency,
  memory_efficiency,
  capacity,  ///< of a resource of the network
  cache_efficiency,
  half_rows,
  launch,
  overhead,
  send_overhead,
  latency  ///< of every route
};
inline constexpr std::array<std::pair<std::string_view, parameter_kind>, 9> parameter_kinds{
    {{"efficiency", parameter_kind::efficiency},
     {"memory_efficiency", parameter_kind::memory_efficiency},
     {"capacity", parameter_kind::capacity},
     {"cache_efficiency", parameter_kind::cache_efficiency},
     {"half_rows", parameter_kind::half_rows},
     {"launch", parameter_kind::launch},
     {"overhead", parameter_kind::overhead},
     {"send_overhead", parameter_kind::send_overhead},
     {"latency", parameter_kind::latency}}};
[[nodiscard]] constexpr std::string_view to_string(parameter_kind k) { return parameter_kinds[static_cast<std::size_t>(k)].first; }

/// What became of a parameter.
enum class verdict {
  fitted,
  at_limit,    ///< fitted, and the rows want more of it: a share is 1
  unused,      ///< kept: no row depends on it, or hardly any
  inseparable  ///< kept: other parameters make up for it in every row
};

/// One number of the devices of a kind, and of a weight format if it is a share; or of the network.
struct parameter {
  parameter_kind what;
  std::string owner;        ///< kind of the devices, or the resource; latency: none
  std::string format = "";  ///< of efficiency and memory_efficiency
  double before = 0;
  double after = 0;
  hetplan::fit::verdict verdict = hetplan::fit::verdict::fitted;
  double influence = 0;                ///< how much the rows change with it, see fit_options::tolerance
  std::vector<std::size_t> like = {};  ///< inseparable: parameters that make up for it

  /// Returns "efficiency (q4) of rtx-3090", "capacity of host", "latency".
  [[nodiscard]] std::string name() const;
};

struct fit_options {
  std::vector<parameter_kind> parameters = {parameter_kind::efficiency,       parameter_kind::memory_efficiency,
                                            parameter_kind::cache_efficiency, parameter_kind::half_rows,
                                            parameter_kind::launch,           parameter_kind::overhead};
  std::vector<std::string> resources = {};  ///< whose capacity is fitted
  std::vector<parameter_kind> free = {};    ///< of `parameters`: not held by the cluster's numbers, so that one row may tell one
  /// A parameter is told from others if changing it e-fold (or, if it is a time or half_rows, by what changes some row by a tenth) changes
  /// the rows by so much that the others do not make up for it: the root of the sum of weighted squares of relative changes.
  double tolerance = 0.01;
  int digits = 0;  ///< significant digits to which fitted numbers are rounded; 0: all
};

struct fit_result {
  hetplan::cluster cluster;
  std::vector<parameter> parameters;
  std::vector<double> predicted;   ///< by row, on `cluster`
  std::vector<std::string> notes;  ///< what had no effect
};

/// Fits numbers of a cluster to measurements: minimises the sum of weight ln²(predicted / measured) over the rows, with predictions of the
/// judge (predict).
///
/// Parameters  One set per kind of device. `efficiency` and `memory_efficiency` are by the weight formats of its rows, if they have any:
///             models that name none then fit the share of others. Formats that a device knows already stay. Shares are in (0, 1], other
///             numbers >= 0.
/// Method      Levenberg's and Marquardt's, from the cluster's numbers and from five others. Each step is a bounded linear problem
///             (bounded_least_squares), derivatives are differences. Groups of parameters that no row joins are fitted apart.
/// Held        Efficiencies, capacities and what `free` names follow the rows alone. The others are held by the cluster's numbers like
///             rows: a factor of two of a share's time, or the usual amount (64 rows, 5 us of a launch, else 0.1 ms), counts as much as a
///             row that is off by the noise. The noise is what the rows are off if nothing is held; 3 % if there are no more rows than
///             parameters.
/// Kept        A parameter that the rows do not tell (fit_options::tolerance) has the cluster's number, and the others are fitted again.
/// Throws      invalid_input (no rows; see check_measurement and predict; an unknown resource; `free` names what is not fitted).
/// Determinism yes; no random numbers.
/// Source      own.
[[nodiscard]] fit_result fit_devices(const cluster& c, std::span<const measurement> rows, const fit_options& options = {});

/// Deviation of predictions from measured values of one quantity: e^|ln(predicted / measured)| - 1.
struct deviation {
  measured what;
  std::size_t rows = 0;
  double median = 0;
  double worst = 0;
};
/// Returns the deviations by quantity, in the order of `measured_names`; none for those without rows.
[[nodiscard]] std::vector<deviation> deviations(std::span<const measurement> rows, std::span<const double> predicted);

}  // namespace hetplan::fit

#ifndef HETPLAN_SEPARATE
#include <hetplan/fit/fit_devices.ipp>
#endif
