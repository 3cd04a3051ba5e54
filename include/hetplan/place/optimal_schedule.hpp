// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Shortest schedule of a small placement table, with its proof: branch and bound over devices, then over orders.

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

/// Jobs with precedences. The jobs of one machine run one at a time, in an order to be found; a job may need several machines. Shared
/// machines serve jobs in any way, in parallel or in turn. With shared machines the result is a bound and no schedule, since every job
/// gets its uncontended time.
struct disjunctive_graph {
  /// Job on a shared machine, and how long it would keep the machine busy alone.
  struct part_of_machine {
    std::size_t job;
    double work_s;
  };

  std::vector<double> work_s = {};                             ///< by job
  std::vector<std::pair<std::size_t, std::size_t>> arcs = {};  ///< (before, after), no cycle
  std::vector<std::vector<std::size_t>> machines = {};         ///< jobs of each machine, without duplicates
  std::vector<std::vector<part_of_machine>> shared = {};
};

/// Earliest starts of all jobs for the chosen orders.
struct job_order {
  std::vector<double> start_s = {};  ///< by job; empty: none was found
  double makespan_s = std::numeric_limits<double>::infinity();
  bool complete = false;  ///< true if the search ended: nothing below the limit is shorter
};

/// Branch and bound for the shortest schedule below a limit. Heads and tails come from longest paths. A pair of jobs with one order too
/// long gets the other. Every machine is bounded as if preemptive, and so is every shared one. The search branches on the overlapping
/// pair whose better order costs most. A job without duration overlaps nothing that starts at the same time.
/// One object may search many graphs and keeps its memory.
/// Complexity   exponential; a node costs O(jobs + arcs + pairs of jobs that share a machine).
/// Determinism  yes.
/// Source       disjunctive graph: Roy and Sussmann 1964; heads, tails and immediate selection: Carlier and Pinson, "An algorithm for
///              solving the job-shop problem", 1989. Deviations: jobs with several machines.
class disjunctive_search {
 public:
  /// @param limit_s  only shorter schedules count.   @param nodes  that the search may still open, less those that it opens.
  [[nodiscard]] job_order run(const disjunctive_graph& g, double limit_s, long long& nodes);

 private:
  struct pair {
    std::size_t a, b;
    bool decided = false;
  };

  void load(const disjunctive_graph& g);
  /// Explores the subtree of the present decisions; false if the nodes run out.
  bool explore();
  /// Draws all conclusions from the limit; false if nothing below it is left.
  bool propagate();
  /// Computes heads and tails; false on a cycle or a too long path.
  bool measure();
  [[nodiscard]] bool machines_too_long();
  [[nodiscard]] double shared_bound_s(const std::vector<disjunctive_graph::part_of_machine>& machine);
  [[nodiscard]] const pair* most_costly_overlap() const;
  void decide(pair& p, bool a_first);
  void undo(std::size_t mark);
  /// Returns a lower bound on the makespan if job a precedes job b.
  [[nodiscard]] double through_s(std::size_t a, std::size_t b) const { return head_s_[a] + work_s_[a] + work_s_[b] + tail_s_[b]; }

  std::vector<double> work_s_, head_s_, tail_s_;   ///< tail: from a job's end to the end of all
  std::vector<std::vector<std::uint32_t>> after_;  ///< successors by job, decided ones last
  std::vector<std::uint32_t> waits_for_, waiting_, order_;
  std::vector<pair> pairs_;
  std::vector<std::pair<std::size_t, bool>> trail_;  ///< decided pairs; true if a goes first
  std::vector<std::vector<std::size_t>> machines_;
  std::vector<std::vector<disjunctive_graph::part_of_machine>> shared_;
  std::vector<machine_job> jobs_;
  double limit_s_ = 0;
  long long* nodes_ = nullptr;
  job_order best_;
};

/// Returns the limit for an improvement, below a makespan by more than rounding: a part in 1e9.
[[nodiscard]] inline double below(double makespan_s) { return makespan_s * (1 - 1e-9); }

struct optimal_options {
  long long steps = standard_steps / 4;
};

/// Returns the steps of a node of the search: narrowing visits every edge between every two devices, ordering all pairs of operators.
[[nodiscard]] long long steps_per_node(std::size_t operators, std::size_t edges, std::size_t devices);

/// Returns a shortest schedule. The search chooses a device for one operator after the other, the one on the longest path first, and
/// narrows the devices of the others (device_domains); interchangeable devices are tried once. With all devices chosen, the orders of
/// operators on devices and of transfers on channels are a disjunctive graph (disjunctive_search). If half of the steps do not suffice,
/// the rest goes into proofs that no schedule is shorter than values in between, which raise the bound.
///
/// @param known  a first schedule and its bound; may hold none. The answer is never longer.
/// @return       gap 0: proven, to a part in 1e9. Infeasible: proven that nothing keeps memory and routes. Stopped: by the end of steps
///               or by the observer, called after each search below a limit; the best so far with its bound. None found: the steps ended
///               before any schedule. Feasible with a gap, under contention::shared: no schedule with transfers in turn is shorter, the
///               bound holds for every way to share, and the gap is what turns may cost.
/// Complexity    exponential; some 1e5 to 1e6 steps a second. Ten operators on four devices take milliseconds.
/// Throws        invalid_input: more than 64 devices.
/// Determinism   yes, unless the observer stops it.
/// Source        ours; Moirai gives its program (eqs. 4-8) to Gurobi, see solve_placement.hpp. Bounds proven from below: "destructive
///               improvement" (Klein and Scholl, 1999).
[[nodiscard]] operator_schedule optimal_schedule(const placement_table& t, const placement_rules& r, operator_schedule known = {},
                                                 const optimal_options& options = {}, const any_observer<schedule_improved>& observer = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/optimal_schedule.ipp>
#endif
