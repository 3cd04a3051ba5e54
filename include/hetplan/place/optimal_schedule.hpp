// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The shortest schedule of a small placement table, with its proof: branch and bound over devices, then over orders.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/place/improve_schedule.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/solve/preemptive_machine.hpp>

namespace hetplan::place {

// Jobs that share machines: once every operator has its device, what remains is in which order each device and each channel works.

/// Jobs, some before others; those of one machine run one at a time, in an order that is to be found. A job may need several machines.
///
/// Beside those machines there may be some that jobs share in any way, side by side or by turns: with these, what is found is no schedule
/// but a bound, since a job is given its own time alone.
struct disjunctive_graph {
  /// A job on a machine that is shared, and how long it would keep that busy alone.
  struct part_of_machine {
    std::size_t job;
    double work_s;
  };

  std::vector<double> work_s = {};                             ///< by job
  std::vector<std::pair<std::size_t, std::size_t>> arcs = {};  ///< (before, after), no cycle
  std::vector<std::vector<std::size_t>> machines = {};         ///< the jobs of each, each once
  std::vector<std::vector<part_of_machine>> shared = {};
};

/// Starts of all jobs, the earliest for the orders that were chosen.
struct job_order {
  std::vector<double> start_s = {};  ///< by job; empty: none was found
  double makespan_s = std::numeric_limits<double>::infinity();
  bool complete = false;  ///< the search came to its end: nothing below the limit is shorter
};

/// The shortest schedule below a limit, by branch and bound: heads and tails from longest paths; a pair whose one order would be too long
/// gets the other; every machine is bounded as if it could be interrupted, and so is every shared one; of the pairs that overlap, the one
/// whose better order costs most is branched on. What starts at the same time without duration overlaps nothing.
///
/// One object may search many graphs and keeps its memory.
/// Complexity   exponential; a node costs O(jobs + arcs + pairs of jobs that share a machine).
/// Determinism  yes.
/// Source       disjunctive graph: Roy and Sussmann 1964; heads, tails and immediate selection: Carlier and Pinson, "An algorithm for
///              solving the job-shop problem", 1989. Deviations: jobs with several machines.
class disjunctive_search {
 public:
  /// @param limit_s  only what is shorter counts.   @param nodes  that the search may still open; it takes off what it opens.
  [[nodiscard]] job_order run(const disjunctive_graph& g, double limit_s, long long& nodes);

 private:
  struct pair {
    std::size_t a, b;
    bool decided = false;
  };

  void load(const disjunctive_graph& g);
  /// Explores what is below the present decisions; false: the nodes ran out.
  bool explore();
  /// All that follows from the limit; false: nothing below it is left.
  bool propagate();
  /// Heads and tails; false: a cycle, or too long.
  bool measure();
  [[nodiscard]] bool machines_too_long();
  [[nodiscard]] double shared_bound_s(const std::vector<disjunctive_graph::part_of_machine>& machine);
  [[nodiscard]] const pair* most_costly_overlap() const;
  void decide(pair& p, bool a_first);
  void undo(std::size_t mark);
  /// The makespan at least if job a precedes job b.
  [[nodiscard]] double through_s(std::size_t a, std::size_t b) const { return head_s_[a] + work_s_[a] + work_s_[b] + tail_s_[b]; }

  std::vector<double> work_s_, head_s_, tail_s_;   ///< tail: from a job's end to the end of all
  std::vector<std::vector<std::uint32_t>> after_;  ///< by job; decisions at the end
  std::vector<std::uint32_t> waits_for_, waiting_, order_;
  std::vector<pair> pairs_;
  std::vector<std::pair<std::size_t, bool>> trail_;  ///< decided pairs, and whether a goes first
  std::vector<std::vector<std::size_t>> machines_;
  std::vector<std::vector<disjunctive_graph::part_of_machine>> shared_;
  std::vector<machine_job> jobs_;
  double limit_s_ = 0;
  long long* nodes_ = nullptr;
  job_order best_;
};

/// Only what is shorter by more than rounding is an improvement: a part in 1e9.
[[nodiscard]] inline double below(double makespan_s) { return makespan_s * (1 - 1e-9); }

struct optimal_options {
  long long steps = standard_steps / 4;
};

/// Steps that a node of the search costs: narrowing looks at every edge between every two devices, ordering at all pairs of operators.
[[nodiscard]] long long steps_per_node(std::size_t operators, std::size_t edges, std::size_t devices);

/// Chooses a device for one operator after the other, the one on the longest path first, and narrows what is left for the others
/// (device_domains); devices that are alike are tried once. Where all are chosen, the order of operators on devices and of transfers on
/// channels is a disjunctive graph, searched likewise (disjunctive_search). Where half of the steps do not suffice, the rest goes into
/// proofs that no schedule is shorter than something in between, so that the bound rises.
///
/// @param known  a schedule to begin with and its bound; may hold none. The answer is never longer.
/// @return       gap 0: proven, to a part in 1e9. Infeasible: proven that nothing keeps memory and routes. Stopped: the steps ended, or an
///               observer, who is asked after each search below a limit; then the best so far with its bound. None found: the steps ended
///               before any. Feasible with a gap, under contention::shared: no schedule in which transfers take turns is shorter, and the
///               bound holds for every way to share; between the two is what turns may cost.
/// Complexity    exponential; some 1e5 to 1e6 steps a second. Ten operators on four devices take milliseconds.
/// Throws        invalid_input: more than 64 devices.
/// Determinism   yes, unless the observer stops it.
/// Source        ours; Moirai hands its program (eqs. 4-8) to Gurobi, see solve_placement.hpp. Bounds that are proven from below:
///               "destructive improvement" (Klein and Scholl, 1999).
[[nodiscard]] operator_schedule optimal_schedule(const placement_table& t, const placement_rules& r, operator_schedule known = {},
                                                 const optimal_options& options = {}, const any_observer<schedule_improved>& observer = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/optimal_schedule.ipp>
#endif
