// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The door for network policies, and one chosen at run time.

#include <concepts>
#include <memory>
#include <string>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan {

namespace tasks {
struct transfer;
}

/// When a transfer may start on its route. All but `unlimited` share the rates of resources max-min.
enum class route_access {
  shared,           ///< at once
  exclusive_ports,  ///< when its sender's out-port and its receiver's in-port are free; held to its end
  exclusive_links,  ///< when all resources of its route are free; held to its end
  unlimited         ///< at once, at its route's peak rate, whatever others do
};

/// What a user's policy or sharing answered. Throws invalid_model where it is none of the enumeration.
[[nodiscard]] inline route_access checked_access(route_access a, const char* who) {
  if (a >= route_access::shared && a <= route_access::unlimited) return a;
  throw invalid_model(std::string(who) + ": access() = " + std::to_string(static_cast<int>(a)) + "; expected a route_access with a name");
}

template <class P>
concept ranks_transfers = requires(const P& p, const tasks::transfer& t) {
  { p.tier(t) } -> std::same_as<int>;  // smaller first; a tier shares max-min what smaller tiers leave
};
template <class P>
concept opens_routes = requires(const P& p) {
  { p.access() } -> std::same_as<route_access>;  // when a transfer may start, and whether others slow it
};

/// How transfers share the network. Pure; called from several threads at once where planners have threads.
template <class P>
concept network_policy = ranks_transfers<P> && opens_routes<P>;

template <class P>
consteval bool check_network_policy() {
  static_assert(ranks_transfers<P>, "network_policy needs: int tier(const hetplan::tasks::transfer&) const");
  static_assert(opens_routes<P>, "network_policy needs: hetplan::route_access access() const");
  return network_policy<P>;
}

/// Holds any network policy by value; copies share it (policies are pure). One virtual call per question. Of nothing: the policy
/// that the plan names.
class any_network_policy {
 public:
  any_network_policy() = default;
  template <class P>
    requires(!std::same_as<P, any_network_policy>)
  any_network_policy(P policy) {
    static_assert(check_network_policy<P>());
    if constexpr (network_policy<P>) policy_ = std::make_shared<holder<P>>(std::move(policy));
  }

  [[nodiscard]] bool as_planned() const { return policy_ == nullptr; }
  /// Throw invalid_input where it holds none.
  [[nodiscard]] int tier(const tasks::transfer& t) const { return held().tier(t); }
  [[nodiscard]] route_access access() const { return held().access(); }

 private:
  struct interface {
    virtual ~interface() = default;
    [[nodiscard]] virtual int tier(const tasks::transfer&) const = 0;
    [[nodiscard]] virtual route_access access() const = 0;
  };
  template <class P>
  struct holder final : interface {
    explicit holder(P p) : policy(std::move(p)) {}
    [[nodiscard]] int tier(const tasks::transfer& t) const override { return policy.tier(t); }
    [[nodiscard]] route_access access() const override { return policy.access(); }
    P policy;
  };
  [[nodiscard]] const interface& held() const {
    if (policy_ == nullptr) throw invalid_input("any_network_policy: holds no policy; expected one, such as fair_share{}");
    return *policy_;
  }

  std::shared_ptr<const interface> policy_;
};

static_assert(check_network_policy<any_network_policy>());

}  // namespace hetplan
