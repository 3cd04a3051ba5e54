// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun that a run over a timeline makes: what happened, stretch by stretch, and what it came to.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/status.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::adapt {

enum class activity {
  running,    ///< whole iterations, all alike
  cut_off,    ///< an iteration that never ended: a device left, or the timeline did. Its work is lost
  migrating,  ///< nothing runs while weights move
  stalled,    ///< no plan can run, or nobody knows yet that one cannot
  idle        ///< on purpose: there is time until the deadline
};
[[nodiscard]] constexpr std::string_view to_string(activity a) {
  return a == activity::running     ? "running"
         : a == activity::cut_off   ? "cut off"
         : a == activity::migrating ? "migrating"
         : a == activity::stalled   ? "stalled"
                                    : "idle";
}

/// A stretch of time in which one thing happened. Stretches follow one another without gaps.
struct stretch {
  activity what = activity::running;
  double start_s = 0;
  double end_s = 0;
  std::size_t plan = 0;      ///< index into history::plans
  long long iterations = 0;  ///< that ended in it, each (end_s - start_s) / iterations long
  double response_s = 0;     ///< of each: T, or the time between tokens
  double energy_J = 0;
  bool violates = false;  ///< each response is above what was wanted
  friend bool operator==(const stretch&, const stretch&) = default;
};

/// How far up the ladder a reaction went.
enum class rung { none, network, known_plan, replanned };
[[nodiscard]] constexpr std::string_view to_string(rung r) {
  return r == rung::none ? "nothing" : r == rung::network ? "network" : r == rung::known_plan ? "known plan" : "re-planned";
}

/// A plan was adopted: when, why, and what that took.
struct adoption {
  double caused_s = 0;           ///< the event that it answers
  double decided_s = 0;          ///< the policy has decided
  double done_s = 0;             ///< the plan runs
  std::size_t from = 0, to = 0;  ///< indices into history::plans
  rung reached = rung::none;
  std::string reason = {};
  double stall_s = 0;      ///< nothing ran
  double moved_bytes = 0;  ///< weights, state and caches, stopped and in the background
  double moved_J = 0;      ///< what moving them took
  friend bool operator==(const adoption&, const adoption&) = default;
};

/// What became of a job over a timeline under one policy.
///
/// Source  semantics, section 10, results.
struct history {
  hetplan::status status = {};   ///< none found: it ended without a plan that can run; stopped: by an observer
  std::vector<plan> plans = {};  ///< in the order of their first use
  std::vector<stretch> stretches = {};
  std::vector<adoption> adoptions = {};
  long long iterations = 0;               ///< done and kept: the sum over stretches, less `lost`
  long long lost = 0;                     ///< done and lost again with the weights of a device that left
  long long cut_off = 0;                  ///< begun and not ended
  long long violations = 0;               ///< iterations whose response was above what was wanted
  std::optional<double> finished_s = {};  ///< when the job's iterations were all done
  bool missed_deadline = false;
  double stall_s = 0;  ///< stalled and migrating
  double energy_J = 0;
  std::vector<double> device_energy_J = {};
  double moved_bytes = 0;
  long long switches = 0;  ///< adoptions that changed who computes what
  double reaction_s = 0;   ///< the longest time from an event to the adoption that answers it
  friend bool operator==(const history&, const history&) = default;
};

/// Iterations done in a part of the timeline, those of a stretch spread evenly over it; later lost or not.
///
/// Complexity  O(stretches).
[[nodiscard]] inline double iterations_between(const history& h, double from_s, double to_s) {
  double sum = 0;
  for (const stretch& s : h.stretches) {
    const double inside_s = std::min(s.end_s, to_s) - std::max(s.start_s, from_s);
    if (s.iterations > 0 && inside_s > 0) sum += static_cast<double>(s.iterations) * inside_s / (s.end_s - s.start_s);
  }
  return sum;
}

}  // namespace hetplan::adapt
