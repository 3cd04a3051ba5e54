// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How concurrent transfers share the network: the concepts of network policies and of network sharings.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include <hetplan/cluster/network.hpp>
#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>

namespace hetplan {

namespace tasks {
struct transfer;
}

/// Condition for the start of a transfer on its route. All but `unlimited` share the rates of resources max-min fairly.
enum class route_access {
  shared,           ///< at once
  exclusive_ports,  ///< when the sender's out-port and the receiver's in-port are free; held until it ends
  exclusive_links,  ///< when all resources of the route are free; held until it ends
  unlimited         ///< at once, at the route's peak rate, whatever other transfers do
};

/// Returns the access that a user's policy or sharing gave. Throws invalid_model if it is not a value of the enumeration.
[[nodiscard]] inline route_access checked_access(route_access a, const char* who) {
  if (a >= route_access::shared && a <= route_access::unlimited) return a;
  throw invalid_model(std::string(who) + ": access() = " + std::to_string(static_cast<int>(a)) + "; expected a route_access with a name");
}

template <class P>
concept ranks_transfers = requires(const P& p, const tasks::transfer& t) {
  { p.tier(t) } -> std::same_as<int>;  // smaller first; each tier shares max-min what smaller tiers leave
};
template <class P>
concept opens_routes = requires(const P& p) {
  { p.access() } -> std::same_as<route_access>;  // when a transfer may start, and whether others slow it
};

/// Tiers of transfers that compete for bandwidth. Rates inside a tier are max-min fair; a `network_sharing` gives other rates.
///
/// * `tier` is called once per transfer, when its latency is over. It may read kind, stages, microbatch, step, priority, volume.
/// * `access` is called once per run. `unlimited` has no tiers.
/// * A user's policy is an argument of `simulate`, or in the `judge_models` of `judge`, `evaluate` and planners, which by default use the
///   plan's `sharing_policy`.
/// * Pure; called from several threads at once where planners use threads.
///
/// Ships: `fair_share`, `by_priority`, `exclusive_ports`, `exclusive_links` (`per_link` in a plan), `unlimited`, `policy_of_plan`,
/// `any_network_policy` (chosen at run time).
template <class P>
concept network_policy = ranks_transfers<P> && opens_routes<P>;

template <class P>
consteval bool check_network_policy() {
  static_assert(ranks_transfers<P>, "network_policy needs: int tier(const hetplan::tasks::transfer&) const");
  static_assert(opens_routes<P>, "network_policy needs: hetplan::route_access access() const");
  return network_policy<P>;
}

/// Type-erased network policy, held by value and shared by copies (policies are pure). One indirect call per question. Empty: the plan's.
class any_network_policy {
 public:
  any_network_policy() = default;
  template <class P>
    requires(!std::same_as<P, any_network_policy>)
  any_network_policy(P policy) {
    static_assert(check_network_policy<P>());
    if constexpr (network_policy<P>)
      policy_ = {std::move(policy),
                 {.tier = [](void* p, auto... a) { return as<const P>(p).tier(a...); },
                  .access = [](void* p) { return as<const P>(p).access(); }}};
  }

  [[nodiscard]] bool as_planned() const { return !policy_; }
  /// tier() and access() throw invalid_input if no policy is held.
  [[nodiscard]] int tier(const tasks::transfer& t) const { return held().call(&calls::tier, t); }
  [[nodiscard]] route_access access() const { return held().call(&calls::access); }

 private:
  struct calls {
    int (*tier)(void*, const tasks::transfer&);
    route_access (*access)(void*);
  };
  [[nodiscard]] const erased<calls>& held() const {
    if (!policy_) throw invalid_input("any_network_policy: holds no policy; expected one, such as fair_share{}");
    return policy_;
  }

  erased<calls> policy_;
};

static_assert(check_network_policy<any_network_policy>());

/// Callbacks: a transfer drains at another rate [B/s] from now on; a transfer has ended. Its number is the same from start to end.
using rate_changed = std::function<void(std::uint32_t transfer, double rate)>;
using transfer_finished = std::function<void(std::uint32_t transfer)>;

template <class S>
concept starts_transfers =
    requires(S& s, double now_s, std::uint32_t number, const tasks::transfer& t, const std::span<const resource_use>& route) {
      { s.start(now_s, number, t, route) } -> std::same_as<void>;  // only with volume and resources; `t` and `route` outlive the run
    };
template <class S>
concept updates_rates = requires(S& s, double now_s, const rate_changed& changed) {
  { s.update(now_s, changed) } -> std::same_as<void>;  // after all starts and ends of an instant; a rate is 0 until it is changed
};
template <class S>
concept tells_next_end = requires(S& s) {
  { s.next_end() } -> std::same_as<double>;  // [s] of the next end, or change of rates by themselves; infinite: none
};
template <class S>
concept finishes_transfers = requires(S& s, double time_s, const transfer_finished& finished) {
  { s.finish_until(time_s, finished) } -> std::same_as<void>;  // reports all ends up to then; afterwards next_end is later
};
/// A refinement: follows changing capacities. Without it, a run in which capacities change is bad input.
template <class S>
concept follows_capacities = requires(S& s, std::size_t resource, double capacity) {
  { s.set_capacity(resource, capacity) } -> std::same_as<void>;  // [B/s] from now on; an update follows
};

/// Rates at which the transfers under way drain, such that weight * rate of all transfers on a resource is at most its capacity. One
/// object serves one run: `simulate` copies it, also on several threads.
///
/// * A transfer's number is its index among the task graph's transfers; background transfers follow. A transfer is started when its
///   latency is over, and only if it has volume and resources.
/// * `update` is called once after all starts and ends of an instant, and calls `changed` for each rate that differs from before.
/// * `next_end` may also be the time at which rates change by themselves (a medium that fades); `finish_until` then takes note of it.
/// * Every step is checked. Rates that exceed a capacity (by more than a millionth), an end before all bytes have moved, a `next_end`
///   that is NaN or in the past, or none while a transfer is under way throw `invalid_model` with the resource or transfer.
/// * Optional: `set_capacity`, and `access` as in a `network_policy` (without it `shared`).
/// * `transfers_under_way` does the bookkeeping, so that a user's sharing is just a rule for rates. `judge_models{.sharing = ...}` takes
///   a sharing in place of a policy. Dora's search of schedules assumes a fluid network; its results are judged under the sharing.
///
/// Ships: `fluid_sharing` (made from a `network_policy`), `prescribed_sharing` (made from `prescribed` rates: a solver's, replayed),
/// `any_network_sharing` (chosen at run time).
template <class S>
concept network_sharing = starts_transfers<S> && updates_rates<S> && tells_next_end<S> && finishes_transfers<S>;

namespace detail {

struct calls_set_capacity {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.set_capacity(a...));
  template <class M>
  static auto address() -> decltype(&M::set_capacity);
};
struct calls_access {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.access(a...));
  template <class M>
  static auto address() -> decltype(&M::access);
};

}  // namespace detail

namespace detail {
template <class S>
concept nearly_names_set_capacity = HETPLAN_HAS_FUNCTION(S, set_capacities) || HETPLAN_HAS_FUNCTION(S, setCapacity) ||
                                    HETPLAN_HAS_FUNCTION(S, setcapacity) || HETPLAN_HAS_FUNCTION(S, set_capcity);
template <class S>
concept nearly_names_access = HETPLAN_HAS_FUNCTION(S, acces) || HETPLAN_HAS_FUNCTION(S, acess) || HETPLAN_HAS_FUNCTION(S, route_access);
}  // namespace detail

template <class S>
consteval bool check_network_sharing() {
  static_assert(starts_transfers<S>,
                "network_sharing needs: void start(double now_s, std::uint32_t number, const hetplan::tasks::transfer&, "
                "std::span<const hetplan::resource_use> route)");
  static_assert(updates_rates<S>, "network_sharing needs: void update(double now_s, const hetplan::rate_changed&)");
  static_assert(tells_next_end<S>, "network_sharing needs: double next_end()");
  static_assert(finishes_transfers<S>, "network_sharing needs: void finish_until(double time_s, const hetplan::transfer_finished&)");
  static_assert(follows_capacities<S> || !names_member<S, detail::calls_set_capacity, double>,
                "network_sharing's optional capacities are: void set_capacity(std::size_t resource, double capacity)");
  static_assert(opens_routes<S> || !names_member<S, detail::calls_access>,
                "network_sharing's optional access is: hetplan::route_access access() const");
  static_assert(follows_capacities<S> || !detail::nearly_names_set_capacity<S>,
                "network_sharing's optional member is called set_capacity; this sharing has one of nearly that name");
  static_assert(opens_routes<S> || !detail::nearly_names_access<S>,
                "network_sharing's optional member is called access; this sharing has one of nearly that name");
  return network_sharing<S>;
}

/// Returns when transfers may start under a sharing. Throws invalid_model: see checked_access.
template <network_sharing S>
[[nodiscard]] route_access access_of([[maybe_unused]] const S& sharing) {
  if constexpr (opens_routes<S>) return checked_access(sharing.access(), "network sharing");
  else return route_access::shared;
}

/// Type-erased network sharing, held by value in its state before a run. Copying it copies the sharing, so that each run has its own,
/// also on several threads. One indirect call per question. Empty: there is no sharing.
class any_network_sharing {
 public:
  any_network_sharing() = default;
  template <class S>
    requires(!std::same_as<S, any_network_sharing>)
  any_network_sharing(S sharing) {
    static_assert(check_network_sharing<S>());
    static_assert(std::copy_constructible<S>, "network_sharing needs: a copy constructor, for each run has its own");
    if constexpr (network_sharing<S> && std::copy_constructible<S>) {
      calls c;
      c.copy = [](void* s) { return any_network_sharing(as<const S>(s)); };
      c.hears_of_capacities = [](void*) { return follows_capacities<S>; };
      c.access = [](void* s) { return access_of(as<const S>(s)); };
      c.start = [](void* s, auto... a) { as<S>(s).start(a...); };
      c.set_capacity = [](void* s, auto... a) {
        if constexpr (follows_capacities<S>) as<S>(s).set_capacity(a...);
      };
      c.update = [](void* s, auto... a) { as<S>(s).update(a...); };
      c.next_end = [](void* s) { return as<S>(s).next_end(); };
      c.finish_until = [](void* s, auto... a) { as<S>(s).finish_until(a...); };
      sharing_ = {std::move(sharing), c};
    }
  }
  any_network_sharing(const any_network_sharing& other)
      : any_network_sharing(other ? other.sharing_.call(&calls::copy) : any_network_sharing()) {}
  any_network_sharing(any_network_sharing&&) = default;
  any_network_sharing& operator=(any_network_sharing other) noexcept {
    sharing_ = std::move(other.sharing_);
    return *this;
  }
  ~any_network_sharing() = default;

  explicit operator bool() const { return bool(sharing_); }
  /// True if the held sharing has a set_capacity.
  [[nodiscard]] bool hears_of_capacities() const { return sharing_.call(&calls::hears_of_capacities); }

  [[nodiscard]] route_access access() const { return sharing_.call(&calls::access); }
  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    sharing_.call(&calls::start, now_s, number, t, route);
  }
  void set_capacity(std::size_t resource, double capacity) { sharing_.call(&calls::set_capacity, resource, capacity); }
  void update(double now_s, const rate_changed& changed) { sharing_.call(&calls::update, now_s, changed); }
  [[nodiscard]] double next_end() { return sharing_.call(&calls::next_end); }
  void finish_until(double time_s, const transfer_finished& finished) { sharing_.call(&calls::finish_until, time_s, finished); }

 private:
  struct calls {
    any_network_sharing (*copy)(void*);
    bool (*hears_of_capacities)(void*);
    route_access (*access)(void*);
    void (*start)(void*, double now_s, std::uint32_t number, const tasks::transfer&, std::span<const resource_use> route);
    void (*set_capacity)(void*, std::size_t resource, double capacity);
    void (*update)(void*, double now_s, const rate_changed&);
    double (*next_end)(void*);
    void (*finish_until)(void*, double time_s, const transfer_finished&);
  };
  erased<calls> sharing_;
};

static_assert(check_network_sharing<any_network_sharing>());

}  // namespace hetplan
