// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The outside of a job while it runs: what is, what has been noticed, and the traffic that nobody planned.

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/failure_detector.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/cluster/cluster.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

// The planning problem of the moment: the devices that are there, as fast as they are, on the network as it is.

/// What one more transfer would find of each resource while others use it: its max-min share beside them.
///
/// A planner cannot model traffic that is not its own; this is what a probe of the network would tell it.
/// Complexity  O(transfers x resources per route + resources).
[[nodiscard]] conditions offered(conditions now, std::span<const foreign_traffic> traffic, const network& net);

/// A problem seen through conditions, for every planner: devices that are away or stand still are left out, slower ones
/// take longer, capacities are those of the moment, and the job wants what is wanted now.
///
/// Plans cross the border by `inside` and `outside`, which change nothing but the numbers of devices.
/// Source  semantics, section 10: what re-planning sees of speeds and capacities.
class present_problem {
 public:
  /// `whole` must outlive it.  Throws  invalid_input if no device works.
  present_problem(const planning_problem& whole, const conditions& now, const qoe_target& wanted);
  present_problem(const present_problem&) = delete;
  present_problem& operator=(const present_problem&) = delete;

  [[nodiscard]] const auto& operator*() const { return problem_; }
  [[nodiscard]] const auto* operator->() const { return &problem_; }

  /// A plan of the whole, which uses working devices only.
  [[nodiscard]] plan inside(plan p) const { return rename_devices(std::move(p), part_.renamed, part_.original.size()); }
  [[nodiscard]] plan outside(plan p) const { return rename_devices(std::move(p), part_.original, devices_); }
  [[nodiscard]] plan_result outside(plan_result r) const;

 private:
  [[nodiscard]] static std::vector<char> working(const conditions& now);
  [[nodiscard]] std::vector<double> speeds(const conditions& now) const;
  [[nodiscard]] static job wanting(job j, const qoe_target& wanted);

  cluster_part part_;
  std::size_t devices_;
  planning_problem problem_;
};

/// Why bytes are under way that no plan sends.
enum class purpose { foreign, weights, backup };

/// Such bytes.
struct side_transfer {
  device_id from;
  device_id to;
  double left_bytes = 0;
  double release_s = 0;  ///< when its first byte may move, on the timeline
  int priority = 0;
  purpose what = purpose::foreign;
  bool began = true;  ///< no: one of its ends was away then, and the run in which that was leaves it out
};

/// Follows a timeline: the conditions that hold, those that a detector has noticed so far, and transfers beside the plan's.
///
/// The simulator moves the transfers; the environment only says what it must be told, and keeps what it leaves.
/// Source  semantics, section 10.
class environment {
 public:
  /// Cluster and timeline must outlive it.  Throws  as check_timeline.
  template <failure_detector Detector>
  environment(const cluster& c, const timeline& t, const Detector& detector, const qoe_target& first_wanted)
      : wanted(first_wanted), cluster_(&c), timeline_(&checked(t, c)), actual_(nominal(c)), noticed_(actual_),
        known_(times_known(t, detector)), gone_known_s_(c.size(), 0) {
    while (end_ < t.events.size() && t.events[end_].at < t.duration) ++end_;
  }
  // A temporary is gone at the end of the line.
  template <failure_detector Detector>
  environment(const cluster&& the_cluster_must_outlive_it, const timeline&, const Detector&, const qoe_target&) = delete;
  template <failure_detector Detector>
  environment(const cluster&, const timeline&& the_timeline_must_outlive_it, const Detector&, const qoe_target&) = delete;

  qoe_target wanted;  ///< now

  [[nodiscard]] const conditions& actual() const { return actual_; }
  [[nodiscard]] const conditions& noticed() const { return noticed_; }

  /// Who coordinates: the same rule for everybody, so a device that is lost is followed by the next one at once, and what
  /// happened is known when the survivors have agreed on it.
  [[nodiscard]] device_id coordinator() const { return elect_coordinator(*cluster_, actual_); }

  /// Lets everything happen that happens by now.
  void advance(double now);
  /// When the first thing happened that has become known since the last call; nothing: all is as it was.
  [[nodiscard]] std::optional<double> take_news() { return std::exchange(news_, std::nullopt); }

  /// When the conditions or the foreign traffic change next; infinite: never.
  [[nodiscard]] double next_event() const { return next_ < end_ ? timeline_->events[next_].at.value() : never; }
  /// When something becomes known next.
  [[nodiscard]] double next_notice() const { return to_notice_.empty() ? never : to_notice_.top().first; }
  /// When the first of some devices leaves next, not after `horizon`; infinite if none does.
  [[nodiscard]] double next_loss(std::span<const device_id> devices, double horizon) const;

  /// When it becomes known next, after a time and not after `horizon`, that one of some devices stands still or one of some
  /// resources carries nothing, and is not over by then; infinite if never.
  /// Complexity  O(events until then), and again for each of them that halts something.
  [[nodiscard]] double next_halt(std::span<const device_id> devices, std::span<const resource_id> resources, double after,
                                 double horizon) const;

  /// When speeds and capacities become 0, before a time.
  [[nodiscard]] std::vector<double> halts(double until) const;

  /// What the simulator must be told of a run from now on: the conditions, what changes until then, the transfers.
  [[nodiscard]] simulator_options options(double now, double until) const;

  // --- transfers ---

  /// Bytes of ours set out. Where the plan's transfers have priorities, they take what those leave: they are in no hurry.
  void begin(const migration& m, purpose what, double now);
  void drop(purpose what);
  [[nodiscard]] bool under_way(purpose what) const;
  /// Does one of them wait for a device to come back?
  [[nodiscard]] bool waits(purpose what) const;
  [[nodiscard]] std::span<const side_transfer> transfers() const { return transfers_; }
  [[nodiscard]] std::vector<foreign_traffic> foreign() const;

  /// How often runs one after another take the same of every transfer, after one that left this; 1: no second one need be like it.
  [[nodiscard]] double repeats(const std::vector<double>& left, double now) const;
  /// What so many such runs leave.
  [[nodiscard]] std::vector<double> left_after(long long runs, std::vector<double> left) const;

  /// What the transfers have left after a time in which nothing else uses the network; nothing if there are none.
  [[nodiscard]] std::vector<double> transfers_alone(double now, double until) const;

  /// What transfers of our own moved in a stretch of time.
  struct carried {
    double volume_bytes = 0;
    std::vector<double> sent_bytes, received_bytes;  ///< by device; empty if nothing moved
  };

  /// Takes over what a run with those options left of the transfers, and goes on to `now`, where it ended. First what was
  /// carried of weights, then of backups.
  std::array<carried, 2> settle(const std::vector<double>& left, double now);

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  [[nodiscard]] static const timeline& checked(const timeline& t, const cluster& c);
  [[nodiscard]] seconds latency(const transfer_begins& x) const { return cluster_->network().find(x.from, x.to)->latency; }
  /// A transfer waits while one of its ends is away; a run that has begun with it takes it along to its end.
  [[nodiscard]] bool moves(const side_transfer& f) const {
    return actual_.present[f.from.index()] != 0 && actual_.present[f.to.index()] != 0;
  }

  const cluster* cluster_;
  const timeline* timeline_;
  conditions actual_, noticed_;
  std::vector<seconds> known_;                    ///< by event
  std::vector<double> gone_known_s_;              ///< by device: when its last leaving is known
  std::size_t next_ = 0, end_ = 0;                ///< events to come: from, to; those at the timeline's end never happen
  using notice = std::pair<double, std::size_t>;  ///< when, which event
  std::priority_queue<notice, std::vector<notice>, std::greater<>> to_notice_;
  std::optional<double> news_;
  std::vector<side_transfer> transfers_;
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/environment.ipp>
#endif
