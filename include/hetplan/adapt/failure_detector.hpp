// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The door for how a coordinator learns what happens elsewhere, and the two that ship.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string>
#include <variant>
#include <vector>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan::adapt {

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

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/failure_detector.ipp>
#endif
