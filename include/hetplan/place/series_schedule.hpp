// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A schedule and a bound part by part: dynamic programming over the devices of the milestones between the parts.

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

// Where a graph of operators is narrow: operators that all others come before or after.

/// Milestones are operators of one path; what lies between two of them, and nowhere else, is a part. All of a part runs after the
/// milestone before it and before the one behind it, so that the makespan is at least the sum of the parts', on whichever devices
/// the milestones are.
struct series_parts {
  std::vector<std::size_t> milestones = {};          ///< in the order of the path
  std::vector<std::vector<std::size_t>> parts = {};  ///< milestones + 1, each in topological order; may be empty
  std::vector<std::size_t> sides = {};               ///< operators that run beside a milestone: in no part
  std::size_t crossing_edges = 0;                    ///< between operators of parts or milestones, past another milestone

  /// Is the makespan without contention exactly the sum?
  [[nodiscard]] bool exact() const { return sides.empty() && crossing_edges == 0; }
};

struct series_options {
  std::size_t wanted_operators = 40;  ///< of the largest part; where sharp milestones give that, no others are taken
  double most_dropped = 0.3;          ///< seconds of sides, and of transfers along crossing edges, at most, relative to all work
};

/// Milestones of a longest path: at first those with nothing beside them; where parts are still large, also those with little.
///
/// Complexity   O(operators log operators + edges x devices^2), at most 16 times.
/// Determinism  yes; the longest path by fastest times, then by operators, then by the smallest numbers.
/// Source       ours: dominators of a flow graph, relaxed so that a mask that all layers read does no harm.
[[nodiscard]] series_parts find_series_parts(const placement_table& t, const series_options& options = {});

// What is known of every part of a series between every two devices of its milestones: a schedule, and what none can beat.

// A part of a series of parts as a placement table of its own.

/// A part with the milestones around it.
struct part_of_series {
  std::vector<std::size_t> operators = {};  ///< of the whole table, in topological order: the entry, what is inside, the exit
  bool entry = false;                       ///< is the first one the milestone before the part
  bool exit = false;                        ///< is the last one the milestone behind it
};

/// All parts of a series, in the order of its path.
[[nodiscard]] std::vector<part_of_series> list_parts(const series_parts& s);

/// The edges among the operators of a part, in the order of part_data's.
[[nodiscard]] std::vector<std::size_t> part_edges(const placement_table& t, const part_of_series& p);

/// What the operators and the edges among them are in a table: the same for parts that are the same. No names. Of a tied tensor that
/// operators of other parts hold, too, each operator has its share (shared_out_bytes): so parts never hold more than the whole.
///
/// Complexity  O(operators x devices + edges x (devices^2 + log operators)) of the part.
/// Source      ours: networks repeat their blocks, and what is the same is searched once.
[[nodiscard]] placement_data part_data(const placement_table& t, const part_of_series& p);

/// That with the milestones on given devices, from the end of the entry to the end of the exit: the entry takes no time and holds nothing.
///
/// Source  ours: with its ends on known devices a part is a table like any other, so that every search takes it.
[[nodiscard]] placement_table part_table(placement_data data, const part_of_series& p, std::optional<std::size_t> entry_on,
                                         std::optional<std::size_t> exit_on);

struct series_search_options {
  long long steps = standard_steps / 4;
  std::size_t exact_operators = 48;  ///< parts of at most so many are searched by optimal_schedule alone
  any_lp_solver lp = {};             ///< for the relaxed programs of parts (relax_placement)
};

/// A part between two devices, from the end of its entry on.
struct part_between {
  double lower_s = 0;
  operator_schedule best = {};
  std::vector<operator_schedule> elsewhere = {};  ///< on one device alone, where memory asks for it
  long long steps = 0;                            ///< of the last search
  bool relaxed = false;                           ///< has it been asked for the bound of its linear program
  bool exhausted = false;                         ///< was all searched: more steps would find nothing shorter, nor a better bound

  [[nodiscard]] double upper_s() const { return best.makespan_s; }
  [[nodiscard]] bool settled() const { return exhausted || lower_s >= below(upper_s()); }
  /// The best, or one of those elsewhere.
  [[nodiscard]] const operator_schedule& schedule(std::size_t choice) const { return choice == 0 ? best : elsewhere[choice - 1]; }
};

/// Parts that are the same are known once.
struct part_kind {
  part_of_series like;
  placement_data data;
  std::vector<part_between> between;  ///< devices x devices: entry, exit; one for an end without milestone
};

/// A choice for every part: the devices around it, and which of its schedules.
struct part_path {
  struct step {
    std::size_t from = 0, to = 0, choice = 0;
  };
  std::vector<step> steps = {};
  double length_s = std::numeric_limits<double>::infinity();  ///< infinite: there is no way
};

/// Searches parts of a table as far as its steps go. The table and the series must outlive it.
///
/// Determinism  yes: the order of searches depends on kinds and pairs alone.
/// Source       ours: bounds and schedules of parts that meet, each part by optimal_schedule, improve_schedule and relax_placement.
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
  /// Where a step of a path stands among the pairs of its kind.
  [[nodiscard]] std::size_t pair_of(const part_kind& kind, const part_path::step& s) const { return s.from * exits(kind) + s.to; }
  [[nodiscard]] const operator_schedule& chosen(std::size_t part, const part_path::step& s) const {
    return kind(part).between[pair_of(kind(part), s)].schedule(s.choice);
  }
  [[nodiscard]] placement_table table_between(const part_kind& kind, std::size_t pair) const;

  [[nodiscard]] long long steps_left() const { return left_; }
  [[nodiscard]] long long steps_used() const { return options_.steps - left_; }
  /// Choices that were looked at to prove parts impossible.
  [[nodiscard]] long long searched() const { return searched_; }
  void spend(long long steps) { left_ -= steps; }
  /// What a shortest path costs.
  [[nodiscard]] long long steps_of_path() const {
    return 1 + static_cast<long long>(parts_.size() * table_.devices() * table_.devices() / 256);
  }
  /// So many steps are not for refine.
  void reserve(long long steps) { reserved_ = steps; }

  /// A first look at every part between every two devices; false: the steps do not even suffice for that.
  [[nodiscard]] bool look();
  /// Linear programs for what is not settled on a path; false: all had theirs.
  [[nodiscard]] bool relax(const part_path& path);
  /// More steps for what is not settled on some paths; false: all is, or too few steps are left to be of use.
  [[nodiscard]] bool refine(std::initializer_list<const part_path*> paths);
  /// Gives every part schedules on the device of its entry alone, and of its exit.
  void add_elsewhere();

  /// The shortest way through all parts.
  ///
  /// @param length     of a part, between a pair of devices, by a choice of its schedules.
  /// @param elsewhere  are schedules on one device choices?
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

/// Every part is scheduled and bounded for each pair of devices that the milestones around it may have; parts that are the same, once.
/// Two shortest paths through those pairs are the schedule and the bound. Parts on the path of the bound are searched again, with more
/// and more steps, until the two meet or the steps end. Where memory binds, prices of the devices' bytes choose (series_schedule.hpp), and
/// with a solver they tighten the bound.
///
/// @return      the schedule and a bound on every schedule of the table; none found where no path of parts was found that keeps
///              memory. Infeasible, with an infinite bound: proven that there is none. Under contention::shared the bound holds
///              for any way to share. Proven optimal where the parts are exact, memory does not bind and the parts are small.
/// Complexity   parts x devices^2 beside the searches.
/// Determinism  yes, unless the observer stops it.
/// Source       ours.
[[nodiscard]] operator_schedule series_schedule(const placement_table& t, const placement_rules& r, const series_parts& parts,
                                                const series_search_options& options = {},
                                                const any_observer<schedule_improved>& observer = {});

// The best schedule of a placement table that a budget allows, with what nothing can beat: the searches of this folder in turn.

/// A quarter of the steps is for parts at sharp milestones, an eighth for each other way to cut, a quarter for improve_schedule; fewer
/// where the options of a search say so.
struct find_options {
  long long steps = standard_steps;
  series_search_options series = {.steps = std::numeric_limits<long long>::max()};
  improve_options improve = {.steps = std::numeric_limits<long long>::max()};
  any_lp_solver lp = {};         ///< for the relaxed programs of m-SCT, GETF and the bound of parts
  operator_schedule known = {};  ///< a schedule of the table, with its bound, to begin with; or none
};

/// The best of all list schedules, each of which tries one device alone, too; ties in this order: HEFT, PEFT, m-ETF, m-SCT, GETF.
///
/// @return  without a bound. Where none found one, HEFT's status.   Source  ours: list schedules cost little, and none is always the best.
[[nodiscard]] operator_schedule best_list_schedule(const placement_table& t, const placement_rules& r, const any_lp_solver& lp = {});

/// List schedules and bounds; then series_schedule, which proves optima of small graphs and of rows of small parts; then
/// improve_schedule for what they leave open.
///
/// @return      feasible, whether proven optimal (gap 0) or not; stopped: an observer said so. Infeasible: proven; none
///              found: a placement that fits may exist.
/// Complexity   by the budget; list schedules and bounds come on top, half a second for 50 000 operators, 3 s where ports contend.
/// Determinism  yes, unless an observer stops it.
/// Source       ours; Moirai hands the whole to Gurobi.
[[nodiscard]] operator_schedule find_schedule(const placement_table& t, const placement_rules& r, const find_options& options = {},
                                              const any_observer<schedule_improved>& observer = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/series_schedule.ipp>
#endif
