// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Schedule and bound part by part: dynamic programming over the devices of the milestones between the parts.

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <optional>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/place/improve_schedule.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/optimal_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::place {

/// Parts of a table in series. Milestones are operators of one path; a part is what lies between two of them and nowhere else. All of a
/// part runs after the milestone before it and before the one behind it. Hence the makespan is at least the sum over the parts, whichever
/// devices the milestones are on.
struct series_parts {
  std::vector<std::size_t> milestones = {};          ///< in the order of the path
  std::vector<std::vector<std::size_t>> parts = {};  ///< milestones + 1, each in topological order; may be empty
  std::vector<std::size_t> sides = {};               ///< operators parallel to a milestone, in no part
  std::size_t crossing_edges = 0;                    ///< edges of parts or milestones that bypass another milestone

  /// Returns true if the makespan without contention is exactly the sum over the parts.
  [[nodiscard]] bool exact() const { return sides.empty() && crossing_edges == 0; }
};

struct series_options {
  std::size_t wanted_operators = 40;  ///< target size of the largest part; only sharp milestones are taken if they reach it
  double most_dropped = 0.3;          ///< limit on seconds of sides and crossing edges' transfers, relative to all work
};

/// Returns the parts between milestones of a longest path. Sharp milestones, with nothing parallel, come first; while parts are large,
/// operators with little parallel work follow.
/// Complexity   O(operators log operators + edges x devices^2), at most 16 times.
/// Determinism  yes; the longest path by fastest times, then by operators, then by the smallest numbers.
/// Source       ours: dominators of a flow graph, relaxed so that a mask that all layers read does no harm.
[[nodiscard]] series_parts find_series_parts(const placement_table& t, const series_options& options = {});

/// Part of a series, with the milestones around it.
struct part_of_series {
  std::vector<std::size_t> operators = {};  ///< numbers in the whole table, in topological order: entry, inside, exit
  bool entry = false;                       ///< true if the first operator is the milestone before the part
  bool exit = false;                        ///< true if the last operator is the milestone behind the part
};

/// Returns all parts of a series, in the order of its path.
[[nodiscard]] std::vector<part_of_series> list_parts(const series_parts& s);

/// Returns the edges among the operators of a part, in the order of part_data's edges.
[[nodiscard]] std::vector<std::size_t> part_edges(const placement_table& t, const part_of_series& p);

/// Returns the data of a part's operators and of the edges among them, without names, so that equal parts have equal data. If operators
/// of other parts also hold a tied tensor, each operator has its share of it (shared_out_bytes), so parts never hold more than the whole.
/// Complexity  O(operators x devices + edges x (devices^2 + log operators)) of the part.
/// Source      ours: networks repeat their blocks, and equal blocks are searched once.
[[nodiscard]] placement_data part_data(const placement_table& t, const part_of_series& p);

/// Returns the table of a part with the milestones on given devices, from the end of the entry to the end of the exit. The entry takes
/// no time and holds nothing.
/// Source  ours: with its ends on known devices a part is a table that every search takes.
[[nodiscard]] placement_table part_table(placement_data data, const part_of_series& p, std::optional<std::size_t> entry_on,
                                         std::optional<std::size_t> exit_on);

struct series_search_options {
  long long steps = standard_steps / 4;
  std::size_t exact_operators = 48;  ///< largest size of a part that is searched by optimal_schedule alone
  any_lp_solver lp = {};             ///< for the relaxed programs of parts (relax_placement)
};

/// Bound and schedules of a part between two devices, from the end of its entry on.
struct part_between {
  double lower_s = 0;
  operator_schedule best = {};
  std::vector<operator_schedule> elsewhere = {};  ///< schedules on one device alone, if memory binds
  long long steps = 0;                            ///< of the last search
  bool relaxed = false;                           ///< true if the bound of its linear program has been computed
  bool exhausted = false;                         ///< true if more steps would find nothing shorter, nor a better bound

  [[nodiscard]] double upper_s() const { return best.makespan_s; }
  [[nodiscard]] bool settled() const { return exhausted || lower_s >= below(upper_s()); }
  /// Returns the best schedule for choice 0, else one of `elsewhere`.
  [[nodiscard]] const operator_schedule& schedule(std::size_t choice) const { return choice == 0 ? best : elsewhere[choice - 1]; }
};

/// Class of equal parts, which are searched once.
struct part_kind {
  part_of_series like;
  placement_data data;
  std::vector<part_between> between;  ///< devices x devices: entry, exit; one for an end without milestone
};

/// Path through all parts, with the devices around each part and the choice of its schedule.
struct part_path {
  struct step {
    std::size_t from = 0, to = 0, choice = 0;
  };
  std::vector<step> steps = {};
  double length_s = std::numeric_limits<double>::infinity();  ///< infinite if there is no path
};

/// Search of the parts of a table within a number of steps. The table and the series must outlive the object.
/// Determinism  yes: the order of searches depends on kinds and pairs alone.
/// Source       ours: bounds and schedules of adjacent parts, each by optimal_schedule, improve_schedule and relax_placement.
class known_parts {
 public:
  known_parts(const placement_table& t, const placement_rules& r, const series_parts& s, const series_search_options& o);

  [[nodiscard]] const placement_table& table() const { return table_; }
  [[nodiscard]] const placement_rules& rules() const { return rules_; }
  [[nodiscard]] const series_parts& series() const { return series_; }
  [[nodiscard]] const series_search_options& options() const { return options_; }
  [[nodiscard]] const std::vector<part_of_series>& parts() const { return parts_; }
  [[nodiscard]] const std::vector<part_kind>& kinds() const { return kinds_; }
  [[nodiscard]] std::size_t kind_of(std::size_t part) const { return kind_of_[part]; }
  [[nodiscard]] const part_kind& kind(std::size_t part) const { return kinds_[kind_of_[part]]; }
  /// Returns the index of a step's pair of devices in part_kind::between.
  [[nodiscard]] std::size_t pair_of(const part_kind& kind, const part_path::step& s) const { return s.from * exits(kind) + s.to; }
  [[nodiscard]] const operator_schedule& chosen(std::size_t part, const part_path::step& s) const {
    return kind(part).between[pair_of(kind(part), s)].schedule(s.choice);
  }
  [[nodiscard]] placement_table table_between(const part_kind& kind, std::size_t pair) const;

  [[nodiscard]] long long steps_left() const { return left_; }
  [[nodiscard]] long long steps_used() const { return options_.steps - left_; }
  /// Returns the number of choices examined to prove parts infeasible.
  [[nodiscard]] long long searched() const { return searched_; }
  void spend(long long steps) { left_ -= steps; }
  /// Returns the steps that a shortest path costs.
  [[nodiscard]] long long steps_of_path() const {
    return 1 + static_cast<long long>(parts_.size() * table_.devices() * table_.devices() / 256);
  }
  /// Reserves steps that refine may not use.
  void reserve(long long steps) { reserved_ = steps; }

  /// Searches every part between every two devices briefly; false if the steps do not suffice for that.
  [[nodiscard]] bool look();
  /// Solves linear programs for unsettled parts on a path; false if all have theirs.
  [[nodiscard]] bool relax(const part_path& path);
  /// Spends more steps on unsettled parts on some paths; false if all are settled or too few steps are left.
  [[nodiscard]] bool refine(std::initializer_list<const part_path*> paths);
  /// Adds schedules on the entry's device alone, and on the exit's, to every part.
  void add_elsewhere();

  /// Returns the shortest path through all parts.
  /// @param length     of a part, between a pair of devices, by a choice of its schedules.
  /// @param elsewhere  true if schedules on one device are choices.
  /// Complexity        O(parts x devices^2).   Source  Bellman's dynamic program on a graph of layers.
  template <class Length>
  [[nodiscard]] part_path shortest(const Length& length, bool elsewhere = false) const;
  [[nodiscard]] part_path shortest_lower() const {
    return shortest([&](std::size_t part, std::size_t pair, std::size_t) { return kind(part).between[pair].lower_s; });
  }
  [[nodiscard]] part_path shortest_upper() const {
    return shortest([&](std::size_t part, std::size_t pair, std::size_t) { return kind(part).between[pair].upper_s(); });
  }

 private:
  [[nodiscard]] std::size_t exits(const part_kind& kind) const { return kind.like.exit ? table_.devices() : 1; }
  [[nodiscard]] long long steps_of_node(const part_kind& kind) const;
  void search(part_kind& kind, std::size_t pair, long long steps);

  const placement_table& table_;
  placement_rules rules_;
  const series_parts& series_;
  series_search_options options_;
  std::vector<part_of_series> parts_;
  std::vector<part_kind> kinds_;
  std::vector<std::size_t> kind_of_;  ///< by part
  long long left_, reserved_ = 0, searched_ = 0;
};

template <class Length>
part_path known_parts::shortest(const Length& length, bool elsewhere) const {
  const std::size_t d = table_.devices();
  struct arrival {
    double length_s = std::numeric_limits<double>::infinity();
    part_path::step last = {};
  };
  std::vector<std::vector<arrival>> at(parts_.size(), std::vector<arrival>(d));
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const part_kind& k = kind(i);
    for (std::size_t b = 0; b < k.between.size(); ++b) {
      const std::size_t from = b / exits(k), to = b % exits(k);
      const double before_s = i == 0 ? 0 : at[i - 1][from].length_s;
      for (std::size_t c = 0; c <= (elsewhere ? k.between[b].elsewhere.size() : 0); ++c) {
        const double there_s = before_s + length(i, b, c);
        if (there_s < at[i][to].length_s) at[i][to] = {there_s, {from, to, c}};
      }
    }
  }
  part_path path;
  std::size_t to = 0;
  for (std::size_t k = 1; k < d; ++k) {
    if (at.back()[k].length_s < at.back()[to].length_s) to = k;
  }
  path.length_s = at.back()[to].length_s;
  if (path.length_s == std::numeric_limits<double>::infinity()) return path;
  path.steps.resize(parts_.size());
  for (std::size_t i = parts_.size(); i-- > 0; to = path.steps[i].from) path.steps[i] = at[i][to].last;
  return path;
}

/// Schedules and bounds every part for each pair of devices of the milestones around it, equal parts once. Two shortest paths through
/// those pairs are the schedule and the bound. Parts on the path of the bound are searched again, with more and more steps, until the two
/// meet or the steps end. If memory binds, prices of the devices' bytes choose (schedule_by_prices) and, with a solver, tighten the bound.
///
/// @return      the schedule and a bound on every schedule of the table. None found: no path of parts within memory was found.
///              Infeasible, with an infinite bound: proven. Under contention::shared the bound holds for every way to share. Proven
///              optimal if the parts are exact and small and memory does not bind.
/// Complexity   parts x devices^2, plus the searches.
/// Determinism  yes, unless the observer stops it.
/// Source       ours.
[[nodiscard]] operator_schedule series_schedule(const placement_table& t, const placement_rules& r, const series_parts& parts,
                                                const series_search_options& options = {},
                                                const any_observer<schedule_improved>& observer = {});

/// Options of find_schedule. A quarter of the steps is for parts at sharp milestones, an eighth for each other decomposition, a quarter
/// for improve_schedule; fewer if the options of a search say so.
struct find_options {
  long long steps = standard_steps;
  series_search_options series = {.steps = std::numeric_limits<long long>::max()};
  improve_options improve = {.steps = std::numeric_limits<long long>::max()};
  any_lp_solver lp = {};         ///< for the relaxed programs of m-SCT, GETF and the bound of parts
  operator_schedule known = {};  ///< a first schedule of the table, with its bound; or none
};

/// Returns the best of all list schedules, each of which also tries one device alone; ties in this order: HEFT, PEFT, m-ETF, m-SCT, GETF.
/// @return  without a bound; HEFT's status if none was found.   Source  ours: list schedules are cheap, and none is always the best.
[[nodiscard]] operator_schedule best_list_schedule(const placement_table& t, const placement_rules& r, const any_lp_solver& lp = {});

/// Returns the best schedule that a budget allows, with a bound: list schedules and bounds first; then series_schedule, which proves
/// optima of small graphs and of series of small parts; then improve_schedule for what they leave open.
///
/// @return      feasible, with gap 0 if proven optimal; stopped: by the observer. Infeasible: proven; none found: one that fits may exist.
/// Complexity   by the budget; list schedules and bounds come on top, half a second for 50 000 operators, 3 s if ports contend.
/// Determinism  yes, unless an observer stops it.
/// Source       ours; Moirai gives the whole problem to Gurobi.
[[nodiscard]] operator_schedule find_schedule(const placement_table& t, const placement_rules& r, const find_options& options = {},
                                              const any_observer<schedule_improved>& observer = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/series_schedule.ipp>
#endif
