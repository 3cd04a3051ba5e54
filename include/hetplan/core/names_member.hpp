// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Has a user's type a member of some name, whatever its signature? A slip in an optional member is then an error, not "absent".

#include <type_traits>

#include <hetplan/core/quantity.hpp>

namespace hetplan {

namespace detail {

struct any_argument {
  template <class T>
  operator T() const;
};

template <class P>
concept address_of_function = std::is_member_function_pointer_v<P> || std::is_function_v<std::remove_pointer_t<P>>;

template <class Call, class M, class... Arguments>
concept calls_member = requires(const Call& call, M& m, const Arguments&... a) { call(m, a...); };
template <class Call, class M>
concept takes_address_of_member = requires { Call::template address<M>(); };

template <class Call, class M, class First, class... Others>
inline constexpr bool calls_member_with = calls_member<Call, M, First> || calls_member<Call, M, First, any_argument> ||
                                          calls_member<Call, M, any_argument, First> || (calls_member<Call, M, First, Others> || ...);

}  // namespace detail

/// No address can be taken of a set of overloads, so they are called: with what the right one takes, in any order, with other usual
/// things, and with what converts to anything. A member whose own constraint fails is absent.
///
/// @tparam Call     says the name, for nothing else can: two members, declared only,
///                      template <class M, class... A> auto operator()(M& m, const A&... a) const -> decltype(m.NAME(a...));
///                      template <class M> static auto address() -> decltype(&M::NAME);
/// @tparam Typical  what the right signature takes.
template <class M, class Call, class... Typical>
concept names_member =
    detail::takes_address_of_member<Call, M> || detail::calls_member<Call, M> || detail::calls_member<Call, M, detail::any_argument> ||
    detail::calls_member<Call, M, detail::any_argument, detail::any_argument> ||
    detail::calls_member<Call, M, detail::any_argument, detail::any_argument, detail::any_argument> ||
    detail::calls_member<Call, M, detail::any_argument, detail::any_argument, detail::any_argument, detail::any_argument> ||
    detail::calls_member<Call, M, double> || detail::calls_member<Call, M, bytes> ||
    (detail::calls_member_with<Call, M, Typical, Typical...> || ...);

}  // namespace hetplan

/// Has M a member function of that very name, static or not? Of an optional member's clear misspellings, which nobody would call anything
/// else: a slip would be taken for "absent", in silence. A set of overloads or a template has no address and is not seen.
#define HETPLAN_HAS_FUNCTION(M, NAME) (requires { requires ::hetplan::detail::address_of_function<decltype(&M::NAME)>; })
