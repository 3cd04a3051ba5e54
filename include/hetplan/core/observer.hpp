// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Observers are callables at the tail of a call: they see events and may stop the work.

#include <concepts>
#include <memory>
#include <type_traits>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// An observer's answer: go on, or stop and return what there is (status `stopped`).
enum class control { go, stop };

/// `observes<O, Event>`: O can be called with the event and answers go or stop.
template <class O, class Event>
concept observes = requires(O& o, const Event& e) {
  { o(e) } -> std::same_as<control>;
};

/// Sees events, and may stop the work. `observer<O, Events...>`: O handles at least one of the events that a call sends. A lambda will
/// do; none ships.
///
/// * Observers stand at the end of a call, as many as you like. If one says `stop`, the others are still told about that event; then the
///   call returns what it has, with status `stopped`.
/// * An observer may keep state, but must not change the model or the cluster. The caller's thread tells it.
/// * Planners send `candidate_judged`: how many of how many, and the best plan so far or null. `judged` is 1, 2, 3, ... over the whole
///   call; `total` is an estimate, never less than `judged`, and judged / total never falls. A planner of one's own that asks others gets
///   the same by `candidate_rounds`.
/// * `simulate`, `judge` and `evaluate` send `task_ended` and `transfer_ended`: the task or transfer and its interval, in time order.
template <class O, class... Events>
concept observer = (observes<O, Events> || ...);

template <class O, class... Events>
consteval bool check_observer() {
  static_assert(observer<O, Events...>, "observer needs: hetplan::control operator()(const Event&) for an event of this call");
  return observer<O, Events...>;
}

/// Sends an event to every observer that handles it; `stop` if any of them says so.
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

/// Observers of one kind of event, for a function that is no template. It refers to them: they must outlive the call that it is
/// made for.
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

  /// Is anybody observing? Ask before making an event that costs something.
  explicit operator bool() const { return tell_ != nullptr; }
  control operator()(const Event& e) const { return tell_ != nullptr ? tell_(observer_, e) : control::go; }

 private:
  void* observer_ = nullptr;
  control (*tell_)(void*, const Event&) = nullptr;
};

/// Several observers as one, which refers to them: `stop` if any of them says so.
template <class... Observers>
[[nodiscard]] auto all_of(Observers&... observers) {
  return [&observers...](const auto& event) { return notify(event, observers...); };
}

}  // namespace hetplan
