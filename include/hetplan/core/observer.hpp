// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Observers are callables at the tail of a call: they see events and may stop the work.

#include <concepts>
#include <type_traits>

#include <hetplan/core/linkage.hpp>

namespace HETPLAN_NAMESPACE {

/// An observer's answer: go on, or stop and return what there is (status `stopped`).
enum class flow { go, stop };

/// `observes<O, Event>`: O can be called with the event and answers go or stop.
template <class O, class Event>
concept observes = requires(O& o, const Event& e) {
  { o(e) } -> std::same_as<flow>;
};

/// `observer<O, Events...>`: O handles at least one of the events that a call sends.
template <class O, class... Events>
concept observer = (observes<O, Events> || ...);

template <class O, class... Events>
consteval bool check_observer() {
  static_assert(observer<O, Events...>, "observer needs: hetplan::flow operator()(const Event&) for an event of this call");
  return observer<O, Events...>;
}

/// Sends an event to every observer that handles it; `stop` if any of them says so.
template <class Event, class... Observers>
flow notify(const Event& event, Observers&... observers) {
  flow answer = flow::go;
  [[maybe_unused]] const auto tell = [&](auto& o) {
    if constexpr (observes<std::remove_reference_t<decltype(o)>, Event>) {
      if (o(event) == flow::stop) answer = flow::stop;
    }
  };
  (tell(observers), ...);
  return answer;
}

}  // namespace HETPLAN_NAMESPACE
