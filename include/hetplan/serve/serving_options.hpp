// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Options of the simulation of a request stream: faults of the cloud, servers and devices that come and go, and new deployments.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

// Placement policies, which decide from time to time which services run where.

/// The input of a placement policy.
struct placement_question {
  const edge_cloud& cloud;
  const std::vector<service>& services;
  const any_service_time& times;
  std::span<const request> requests;  ///< of the last window
  seconds window;                     ///< length of the window
  const cloud_damage& damage;
  const deployment& present;  ///< empty at the beginning
  std::int64_t number = 0;    ///< 0: the first deployment of a run, 1: its first change, ...
};

template <class P>
concept places_services = requires(P& p, const placement_question& q) {
  { p.place(q) } -> std::same_as<deployment>;
};

/// Decides which services run where: before the run (`serve_with`), and then every `cycle` or at the times of
/// `serving_options::changes`, in order of time. A policy may have state. Deterministic.
///
/// * The result is validated: a deployment that does not fit throws `invalid_input`. Instances on absent or broken parts are out.
/// * An instance that is also in the present deployment goes on; a new one must load its weights first: move only what must move.
///
/// Ships: `submodular_placement` (EPARA: step by step the instance that serves most; its options cover most published systems),
/// `complementary_placement` (USHER: as many instances as each server needs, compute-heavy beside memory-heavy ones),
/// `cache_placement` (the services last, most or least often requested at each server), `fixed_placement` (given deployments, in
/// turn), `any_placement_policy` (chosen at run time). Published systems, each with a `request_handler`: recipes/serving_systems.hpp.
///
/// Source  EPARA, section 3.3; semantics, section 11 (deployments that change).
template <class P>
concept placement_policy = places_services<P>;

template <class P>
consteval bool check_placement_policy() {
  static_assert(places_services<P>, "placement_policy needs: hetplan::serve::deployment place(const hetplan::serve::placement_question&)");
  return placement_policy<P>;
}

/// A type-erased placement_policy; copies share it and its state.
/// Source  ours.
class any_placement_policy {
 public:
  any_placement_policy() = default;
  template <class P>
    requires(!std::same_as<P, any_placement_policy>)
  any_placement_policy(P policy) {
    static_assert(check_placement_policy<P>());
    if constexpr (placement_policy<P>) policy_ = {std::move(policy), {.place = [](void* p, auto... a) { return as<P>(p).place(a...); }}};
  }

  explicit operator bool() const { return bool(policy_); }
  /// Throws invalid_input if it is empty.
  [[nodiscard]] deployment place(const placement_question& q) {
    if (!policy_) throw invalid_input("any_placement_policy: holds no policy; expected one, such as submodular_placement{}");
    return policy_.call(&calls::place, q);
  }

 private:
  struct calls {
    deployment (*place)(void*, const placement_question&);
  };
  erased<calls> policy_;
};

/// A server fails, with its instances, those of its devices, and those with a GPU there.
struct server_fails {
  friend bool operator==(const server_fails&, const server_fails&) = default;
};
/// A GPU fails, with the instances that use it, on all of their GPUs.
struct gpu_fails {
  int gpu = 0;
  friend bool operator==(const gpu_fails&, const gpu_fails&) = default;
};
struct device_leaves {
  int device = 0;
  friend bool operator==(const device_leaves&, const device_leaves&) = default;
};
/// A device becomes available for deployments that begin later. A device that registers in its first event is absent before.
struct device_registers {
  int device = 0;
  friend bool operator==(const device_registers&, const device_registers&) = default;
};
/// No publication passes between this server and the next of the list.
struct ring_cut {
  seconds until;
  friend bool operator==(const ring_cut&, const ring_cut&) = default;
};
struct slow_link {
  seconds until;
  double factor = 1;  ///< of the bandwidth
  friend bool operator==(const slow_link&, const slow_link&) = default;
};
/// A silent error: the server publishes that it is idle.
struct wrong_state {
  seconds until;
  friend bool operator==(const wrong_state&, const wrong_state&) = default;
};
/// A server joins with the next change of the deployment. One that joins in its first event is absent before.
struct server_joins {
  friend bool operator==(const server_joins&, const server_joins&) = default;
};
struct server_leaves {
  friend bool operator==(const server_leaves&, const server_leaves&) = default;
};

struct serving_fault {
  seconds at;
  server_id server;
  std::variant<server_fails, gpu_fails, device_leaves, device_registers, ring_cut, slow_link, wrong_state, server_joins, server_leaves>
      what;
  friend bool operator==(const serving_fault&, const serving_fault&) = default;
};

/// The start or end of a fault.
struct fault_turn {
  double at_s = 0;
  std::size_t fault = 0;
  bool ends = false;
};
/// Returns the turns of all faults in order of time, those of one instant in list order.
[[nodiscard]] std::vector<fault_turn> turns(const std::vector<serving_fault>& faults);

/// Returns what is absent at the start: servers and devices whose first event is to join or register.
[[nodiscard]] cloud_damage damage_at_first(const std::vector<serving_fault>& faults, const edge_cloud& cloud);

/// Throws invalid_input for descending or non-finite times, an unknown server, GPU or device, an end not after its start, a factor not
/// above 0, a server that joins or leaves twice in a row, or a device that registers twice in a row.
/// Source  EPARA, sections 4.2 and 5.3.3; semantics, section 11.
void validate(const std::vector<serving_fault>& faults, const edge_cloud& cloud);

enum class history_detail { totals, records };

/// Changes of the deployment: their times and the policy that decides.
struct replacement {
  std::vector<seconds> at = {};  ///< ascending
  seconds cycle = {};            ///< or the interval of changes, while requests arrive
  any_placement_policy policy = {};
};

/// Source  semantics, section 11.
struct serving_options {
  std::vector<serving_fault> faults = {};
  replacement changes = {};
  history_detail detail = history_detail::totals;
  seconds bin = {};  ///< bin width of goodput over time; 0: a hundredth of the time from the first arrival to the last
  std::int64_t most_periods = 20'000'000;  ///< publications and changes after which the run is stopped
};

/// Throws invalid_input for change times that are not finite, positive and ascending; both times and a cycle; either without a policy; a
/// negative or non-finite cycle or bin; over 100 000 cycles or 10 000 bins between the first arrival and the last.
void validate(const serving_options& options, const request_stream& requests);

/// Returns the start of the period of the first request, fault or change [s after the first arrival]; not above 0.
[[nodiscard]] double first_period_s(const serving_options& options, const request_stream& requests, seconds period);

/// The progress of a run, for observers.
struct serving_progress {
  std::uint64_t handled = 0;  ///< arrived requests
  std::uint64_t of = 0;
  seconds now;
  double credit = 0;
};

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/serving_options.ipp>
#endif
