// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The outside of a job while it runs: what is, what has been noticed, and the traffic that nobody planned.

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

// The door for how a coordinator learns what happens elsewhere, and the two that ship.

// Who coordinates, and what it takes to agree on another when the coordinator is gone.

/// The device that coordinates: most compute (of all its accelerators), then most usable memory, then the smaller id, among
/// those that are there. The rule reads the cluster's numbers, not present speeds, so that everybody knows the same list.
///
/// Complexity  O(devices).
/// Throws      invalid_input if nobody is there.
/// Source      Dora, section 4.3 (failover of the coordinator); Asteroid, section 5.5: planning runs "on the most powerful
///             remaining device". The ties are ours.
[[nodiscard]] device_id elect_coordinator(const cluster& c, const conditions& now);

/// How long it takes the devices that are there to agree: every one knows the list, so one message from each to each
/// other says who is left. Runs on the network; pairs without a way receive nothing from each other.
///
/// Complexity  that of run_migration on N^2 messages.
[[nodiscard]] seconds election_time(const cluster& c, const conditions& now, bytes message = bytes(64));

template <class D>
concept notices_silence = requires(const D& d, seconds at) {
  { d.noticed(at) } -> std::same_as<seconds>;  // when a device that falls silent at `at` is given up; finite, >= at, pure
};
template <class D>
concept sees_changes = requires(const D& d, seconds at) {
  { d.seen(at) } -> std::same_as<seconds>;  // when a change at `at` is known that devices live to tell; finite, >= at, pure
};

/// When the coordinator knows what happened. Times are seconds from the timeline's start; neither answer falls as `at` grows.
///
/// * Not finite or before `at`: `invalid_model`.
/// * `noticed` is asked for devices that leave, `seen` for everything else but targets: what the user asks for is known at once. A device
///   that is back before it was given up tells so itself.
/// * Beats take no bandwidth; `heartbeat::traffic` says how much they would. `times_known` is when each event of a timeline is known.
///
/// Ships: `heartbeat` (a beat every second, given up 2 s after the last one and a probe of 0.5 s; the default), `immediate` (for
/// oracles).
template <class D>
concept failure_detector = notices_silence<D> && sees_changes<D>;

template <class D>
consteval bool check_failure_detector() {
  static_assert(notices_silence<D>, "failure_detector needs: hetplan::seconds noticed(hetplan::seconds at) const");
  static_assert(sees_changes<D>, "failure_detector needs: hetplan::seconds seen(hetplan::seconds at) const");
  return failure_detector<D>;
}

/// Every device sends a beat at 0, period, 2 period, ...; one that falls silent at the instant of a beat still sends it.
/// It is suspected `timeout` after its last beat; then one probe is sent, and it is given up `probe` later. So it is
/// noticed more than timeout - period + probe and at most timeout + probe after it fell silent. Beats carry speeds and
/// capacities: a change is known with the next beat, that of the same instant included. The way of a beat takes no time.
///
/// Needs   period > 0, timeout >= period (else every device would always be suspected), probe >= 0; check_heartbeat says so.
/// Source  Asteroid, section 3.4, heartbeat-guided failure detection; its periods are not given: the defaults are ours.
struct heartbeat {
  seconds period{1};
  seconds timeout{2};
  seconds probe{0.5};
  bytes beat{64};  ///< on the wire

  [[nodiscard]] seconds noticed(seconds at) const;
  [[nodiscard]] seconds seen(seconds at) const { return std::max(at, seconds(std::ceil(at.value() / period.value()) * period.value())); }
  /// What the beats of so many devices take of the coordinator's link.
  [[nodiscard]] bytes_per_second traffic(std::size_t devices) const { return static_cast<double>(devices) * beat / period; }
};

/// Throws invalid_input that names the field, its value and what was expected.
void check_heartbeat(const heartbeat& h);

/// Everything is known as it happens: what an oracle has, and a bound for all others.
struct immediate {
  [[nodiscard]] seconds noticed(seconds at) const { return at; }
  [[nodiscard]] seconds seen(seconds at) const { return at; }
};

static_assert(check_failure_detector<heartbeat>() && check_failure_detector<immediate>());

/// When each event of a timeline is known to the coordinator, in list order.
///
/// A departure is known when the detector gives the device up, or when the device is back and says so, whichever is first.
/// What the user asks for is known at once; all else when the detector sees it. A time may lie beyond the timeline's end, and
/// later events may be known earlier.
/// Complexity  O(events^2) at worst, for devices that leave and join over and over.
/// Throws      invalid_model if the detector answers a time that is not finite or before the event.
template <failure_detector Detector>
[[nodiscard]] std::vector<seconds> times_known(const timeline& t, const Detector& detector) {
  const auto checked = [](seconds known, seconds at, const char* member) {
    if (!is_finite(known) || known < at) {
      throw invalid_model("failure detector: " + std::string(member) + "(" + to_text(at.value()) + " s) = " + to_text(known.value()) +
                          " s; expected a finite time, not before what it tells");
    }
    return known;
  };
  const auto seen = [&](seconds at) { return checked(detector.seen(at), at, "seen"); };
  std::vector<seconds> known;
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    const event& e = t.events[i];
    if (const auto* leaves = std::get_if<device_leaves>(&e.what)) {
      known.push_back(checked(detector.noticed(e.at), e.at, "noticed"));
      for (std::size_t j = i + 1; j < t.events.size(); ++j) {
        const auto* back = std::get_if<device_joins>(&t.events[j].what);
        if (back == nullptr || back->device != leaves->device) continue;
        known.back() = std::min(known.back(), seen(t.events[j].at));
        break;
      }
    } else {
      known.push_back(std::holds_alternative<qoe_becomes>(e.what) ? e.at : seen(e.at));
    }
  }
  return known;
}

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

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/environment.ipp>
#endif
