// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The environment of a running job: actual and noticed conditions, failure detection, and foreign traffic.

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
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
#include <hetplan/core/min_queue.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// Returns the coordinator: of the present devices the one with the most compute (all its accelerators), then the most usable
/// memory, then the smallest id. The rule reads the cluster's nominal numbers, not current speeds, so that all devices agree.
///
/// Complexity  O(devices).
/// Throws      invalid_input if no device is present.
/// Source      Dora, section 4.3 (failover of the coordinator); Asteroid, section 5.5: planning runs "on the most powerful
///             remaining device". Tie-breaking is ours.
[[nodiscard]] device_id elect_coordinator(const cluster& c, const conditions& now);

/// Returns the time in which the present devices agree on who is left. All know the device list, so one message from each device to
/// each other suffices. Messages use the network; none is sent between devices without a route.
///
/// Complexity  that of run_migration on N^2 messages.
[[nodiscard]] seconds election_time(const cluster& c, const conditions& now, bytes message = bytes(64));

template <class D>
concept notices_silence = requires(const D& d, seconds at) {
  { d.noticed(at) } -> std::same_as<seconds>;  // time at which a device silent since `at` is declared lost; finite, >= at, pure
};
template <class D>
concept sees_changes = requires(const D& d, seconds at) {
  { d.seen(at) } -> std::same_as<seconds>;  // time at which another change at `at` is known; finite, >= at, pure
};

/// Determines when the coordinator learns of an event. Times count from the timeline's start; both members are non-decreasing.
///
/// * A result that is not finite or before `at` throws `invalid_model`.
/// * `noticed` applies to departures of devices, `seen` to all other events except new targets, which are known at once. A device that
///   returns before it is declared lost reports its return itself.
/// * Heartbeats take no bandwidth; `heartbeat::traffic` returns what they would take. `times_known` returns when each event is known.
///
/// Ships: `heartbeat` (the default: a beat per second, loss 2 s after the last beat plus a probe of 0.5 s), `immediate` (for oracles).
template <class D>
concept failure_detector = notices_silence<D> && sees_changes<D>;

template <class D>
consteval bool check_failure_detector() {
  static_assert(notices_silence<D>, "failure_detector needs: hetplan::seconds noticed(hetplan::seconds at) const");
  static_assert(sees_changes<D>, "failure_detector needs: hetplan::seconds seen(hetplan::seconds at) const");
  return failure_detector<D>;
}

/// Detects failures by heartbeats: every device sends a beat at 0, period, 2 period, ..., also if it falls silent at that instant.
/// A device is suspected `timeout` after its last beat; then one probe is sent, and the device is declared lost `probe` later. So
/// it is noticed more than timeout - period + probe and at most timeout + probe after it fell silent. Beats carry speeds and
/// capacities: a change is known with the next beat, one at the same instant included. Beats arrive without delay.
///
/// Needs   period > 0, timeout >= period (else every device would always be suspected), probe >= 0; see check_heartbeat.
/// Source  Asteroid, section 3.4, heartbeat-guided failure detection. The paper gives no periods; the defaults are ours.
struct heartbeat {
  seconds period{1};
  seconds timeout{2};
  seconds probe{0.5};
  bytes beat{64};  ///< size on the wire

  [[nodiscard]] seconds noticed(seconds at) const;
  [[nodiscard]] seconds seen(seconds at) const { return std::max(at, seconds(std::ceil(at.value() / period.value()) * period.value())); }
  /// Returns the bandwidth that the beats of so many devices take on the coordinator's link.
  [[nodiscard]] bytes_per_second traffic(std::size_t devices) const { return static_cast<double>(devices) * beat / period; }
};

/// Throws invalid_input that names the field, its value and what is expected.
void check_heartbeat(const heartbeat& h);

/// Detects every event at once: the knowledge of an oracle, and a bound for all other detectors.
struct immediate {
  [[nodiscard]] seconds noticed(seconds at) const { return at; }
  [[nodiscard]] seconds seen(seconds at) const { return at; }
};

static_assert(check_failure_detector<heartbeat>() && check_failure_detector<immediate>());

/// Returns the times at which the coordinator knows the events of a timeline, in list order.
///
/// A departure is known when the detector declares the device lost or the device is back, whichever is first. New targets are known
/// at once, other events when the detector sees them. Times may lie beyond the timeline's end; later events may be known earlier.
/// Complexity  O(events^2) in the worst case, for devices that leave and join repeatedly.
/// Throws      invalid_model if the detector returns a time that is not finite or before the event.
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

/// Returns the conditions with each capacity reduced to the max-min share of one more transfer beside foreign traffic.
///
/// Planners cannot model foreign traffic; a probe of the network would report these capacities.
/// Complexity  O(transfers x resources per route + resources).
[[nodiscard]] conditions offered(conditions now, std::span<const foreign_traffic> traffic, const network& net);

/// A planning problem under given conditions, for any planner. Absent and halted devices are left out, slower devices take longer,
/// capacities are those of the conditions, and the job has the given targets.
///
/// `inside` and `outside` convert plans by renumbering devices.
/// Source  semantics, section 10: what re-planning sees of speeds and capacities.
class present_problem {
 public:
  /// `whole` must outlive this object.  Throws  invalid_input if no device works.
  present_problem(const planning_problem& whole, const conditions& now, const qoe_target& wanted);
  present_problem(const present_problem&) = delete;
  present_problem& operator=(const present_problem&) = delete;

  [[nodiscard]] const auto& operator*() const { return problem_; }
  [[nodiscard]] const auto* operator->() const { return &problem_; }

  /// Converts a plan of the whole cluster that uses only working devices.
  [[nodiscard]] plan inside(plan p) const { return rename_devices(std::move(p), part_.renamed, part_.original.size()); }
  [[nodiscard]] plan outside(plan p) const { return rename_devices(std::move(p), part_.original, devices_); }
  [[nodiscard]] plan_result outside(plan_result r) const;

 private:
  cluster_part part_;
  std::size_t devices_;
  planning_problem problem_;
};

/// The purpose of a transfer that is not part of a plan.
enum class purpose { foreign, weights, backup };

/// A transfer beside those of the plan.
struct side_transfer {
  device_id from;
  device_id to;
  double left_bytes = 0;
  double release_s = 0;  ///< earliest time of the first byte, on the timeline
  int priority = 0;
  purpose what = purpose::foreign;
  bool began = true;  ///< false if an end was absent at the start: the run of that time leaves the transfer out
};

/// Follows a timeline: the actual conditions, the conditions noticed by a detector, and the transfers beside the plan's.
///
/// The simulator moves the transfers; the environment makes its options and keeps the remaining bytes.
/// Source  semantics, section 10.
class environment {
 public:
  /// Cluster and timeline must outlive this object.  Throws  as check_timeline.
  template <failure_detector Detector>
  environment(const cluster& c, const timeline& t, const Detector& detector, const qoe_target& first_wanted)
      : wanted(first_wanted), cluster_(&c), timeline_((check_timeline(t, c), &t)), actual_(nominal(c)), noticed_(actual_),
        known_(times_known(t, detector)), gone_known_s_(c.size(), 0) {
    while (end_ < t.events.size() && t.events[end_].at < t.duration) ++end_;
  }
  template <failure_detector Detector>
  environment(const cluster&& the_cluster_must_outlive_it, const timeline&, const Detector&, const qoe_target&) = delete;
  template <failure_detector Detector>
  environment(const cluster&, const timeline&& the_timeline_must_outlive_it, const Detector&, const qoe_target&) = delete;

  qoe_target wanted;  ///< current targets

  [[nodiscard]] const conditions& actual() const { return actual_; }
  [[nodiscard]] const conditions& noticed() const { return noticed_; }

  /// Returns the current coordinator. All devices apply the same rule, so a lost coordinator is replaced at once, and its loss is
  /// known when the survivors have agreed.
  [[nodiscard]] device_id coordinator() const { return elect_coordinator(*cluster_, actual_); }

  /// Applies all events and notices up to `now`.
  void advance(double now);
  /// Returns the time of the first event that became known since the last call; empty if none did.
  [[nodiscard]] std::optional<double> take_news() { return std::exchange(news_, std::nullopt); }

  /// Returns when the conditions or the foreign traffic change next; infinite: never.
  [[nodiscard]] double next_event() const { return next_ < end_ ? timeline_->events[next_].at.value() : never; }
  /// Returns when the next event becomes known.
  [[nodiscard]] double next_notice() const { return to_notice_.empty() ? never : to_notice_.first().first; }
  /// Returns when the first of some devices leaves, up to `horizon`; infinite if none does.
  [[nodiscard]] double next_loss(std::span<const device_id> devices, double horizon) const;

  /// Returns when the coordinator first learns, after `after` and up to `horizon`, of a halt that still lasts: one of the devices
  /// stands still or one of the resources has no capacity. Infinite if there is none.
  /// Complexity  O(events until then), and again for each halting event.
  [[nodiscard]] double next_halt(std::span<const device_id> devices, std::span<const resource_id> resources, double after,
                                 double horizon) const;

  /// Returns the times before `until` at which a speed or capacity becomes 0.
  [[nodiscard]] std::vector<double> halts(double until) const;

  /// Returns the simulator's options for a run from `now` to `until`: conditions, their changes, and transfers.
  [[nodiscard]] simulator_options options(double now, double until) const;

  /// Starts the transfers of a migration, at the lowest priority: under priorities they take what the plan's transfers leave.
  void begin(const migration& m, purpose what, double now);
  void drop(purpose what);
  [[nodiscard]] bool under_way(purpose what) const;
  /// True if a transfer waits for an absent device.
  [[nodiscard]] bool waits(purpose what) const;
  [[nodiscard]] std::span<const side_transfer> transfers() const { return transfers_; }
  [[nodiscard]] std::vector<foreign_traffic> foreign() const;

  /// Returns how many consecutive runs take the same bytes of every transfer, after one that left `left`; 1 if the next may differ.
  [[nodiscard]] double repeats(const std::vector<double>& left, double now) const;
  /// Returns the remaining bytes after so many such runs.
  [[nodiscard]] std::vector<double> left_after(long long runs, std::vector<double> left) const;

  /// Returns the remaining bytes after a period without other traffic; empty if there are no transfers.
  [[nodiscard]] std::vector<double> transfers_alone(double now, double until) const;

  /// The bytes that the job's transfers beside the plan moved in a period.
  struct carried {
    double volume_bytes = 0;
    std::vector<double> sent_bytes, received_bytes;  ///< by device; empty if nothing moved
  };

  /// Takes over the remaining bytes of a run with `options` and advances to its end. Returns what weights moved, then backups.
  std::array<carried, 2> settle(const std::vector<double>& left, double now);

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  [[nodiscard]] seconds latency(const transfer_begins& x) const { return cluster_->network().find(x.from, x.to)->latency; }
  /// True if both ends are present. Otherwise a transfer waits, but a run that has begun with it carries it to the end.
  [[nodiscard]] bool moves(const side_transfer& f) const {
    return actual_.present[f.from.index()] != 0 && actual_.present[f.to.index()] != 0;
  }

  const cluster* cluster_;
  const timeline* timeline_;
  conditions actual_, noticed_;
  std::vector<seconds> known_;                    ///< by event
  std::vector<double> gone_known_s_;              ///< by device: when its last departure is known
  std::size_t next_ = 0, end_ = 0;                ///< range of future events; events at the timeline's end never happen
  using notice = std::pair<double, std::size_t>;  ///< time, index of the event
  min_queue<notice> to_notice_;
  std::optional<double> news_;
  std::vector<side_transfer> transfers_;
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/environment.ipp>
#endif
