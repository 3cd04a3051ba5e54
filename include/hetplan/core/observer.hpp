// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Observers: callables at the end of an argument list that receive events and may stop the work.

#include <concepts>
#include <memory>
#include <type_traits>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// Answer of an observer: continue, or stop and return the results so far with status `stopped`.
enum class control { go, stop };

/// True if `O` can be called with the event and returns a `control`.
template <class O, class Event>
concept observes = requires(O& o, const Event& e) {
  { o(e) } -> std::same_as<control>;
};

/// Callable that sees events and may stop the work: O handles at least one of the events that a call sends. None ships: use a lambda.
///
/// * A call takes any number of observers as its last arguments. If one of them returns `stop`, the others still receive that event; then
///   the call returns its results so far, with status `stopped`.
/// * An observer may keep state but must not change the model or the cluster. The caller's thread calls it.
/// * Planners send `candidate_judged`: the number of candidates judged so far, their estimated total, and the best plan so far or null.
///   `judged` is 1, 2, 3, ... over the whole call; `total` is never less than `judged`, and judged / total never falls. A user's planner
///   that calls other planners gets such numbers from `candidate_rounds`.
/// * `simulate`, `judge` and `evaluate` send `task_ended` and `transfer_ended`: the task or transfer and its interval, in time order.
template <class O, class... Events>
concept observer = (observes<O, Events> || ...);

template <class O, class... Events>
consteval bool check_observer() {
  static_assert(observer<O, Events...>, "observer needs: hetplan::control operator()(const Event&) for an event of this call");
  return observer<O, Events...>;
}

/// Sends an event to every observer that handles it. Returns `stop` if any of them does.
template <class Event, class... Observers>
control notify(const Event& event, Observers&... observers) {
  control answer = control::go;
  [[maybe_unused]] const auto tell = [&](auto& o) {
    if constexpr (observes<std::remove_reference_t<decltype(o)>, Event>) {
      if (o(event) == control::stop) answer = control::stop;
    }
  };
  (tell(observers), ...);
  return answer;
}

/// Type-erased observer of one kind of event, for functions that are not templates. The observer must outlive the call.
template <class Event>
class any_observer {
 public:
  any_observer() = default;
  template <class O>
    requires(!std::same_as<std::remove_cvref_t<O>, any_observer>)
  any_observer(O&& observer)  // NOLINT(bugprone-forwarding-reference-overload)
      : observer_(const_cast<void*>(static_cast<const void*>(std::addressof(observer)))) {
    using type = std::remove_reference_t<O>;
    static_assert(check_observer<type, Event>());
    if constexpr (observes<type, Event>) tell_ = [](void* o, const Event& e) { return (*static_cast<type*>(o))(e); };
  }

  /// True if there is an observer; lets callers skip costly events.
  explicit operator bool() const { return tell_ != nullptr; }
  control operator()(const Event& e) const { return tell_ != nullptr ? tell_(observer_, e) : control::go; }

 private:
  void* observer_ = nullptr;
  control (*tell_)(void*, const Event&) = nullptr;
};

/// Combines several observers, held by reference, into one that returns `stop` if any of them does.
template <class... Observers>
[[nodiscard]] auto all_of(Observers&... observers) {
  return [&observers...](const auto& event) { return notify(event, observers...); };
}

}  // namespace hetplan
