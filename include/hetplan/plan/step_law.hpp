// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How the steps of a pipeline add up to its latency: the door for step laws.

#include <concepts>
#include <type_traits>

#include <hetplan/core/names_member.hpp>

namespace hetplan {

/// An iteration of a pipeline, as far as a law knows it.
struct pipelining {
  int microbatches = 1;
  int in_turn = 1;  ///< microbatches that go the whole way before the next one starts: all where warm-up lets in one, else 1
};

/// Seconds of a stage.
struct stage_times {
  double total_s = 0;       ///< e: forward and backward of a microbatch
  double backward_s = 0;    ///< b: of it, the way back; 0 outside training
  double collective_s = 0;  ///< A: once an iteration
};

/// Seconds of a link between two stages.
struct link_times {
  double total_s = 0;     ///< e: a microbatch there and its gradients back
  double backward_s = 0;  ///< b: of it, the way back
  double own_s = 0;       ///< the whole traffic of an iteration, latency once each way
};

/// What stages and the links between them, from somewhere to the end of the pipeline, amount to. Two numbers, whose meaning is the
/// law's; both 0 behind the last stage.
struct pipeline_tail {
  double reach_s = 0;
  double rest_s = 0;

  friend bool operator==(const pipeline_tail&, const pipeline_tail&) = default;
};

template <class L>
concept extends_by_a_stage = requires(const L& l, const pipelining& p, const stage_times& s, const pipeline_tail& behind) {
  { l.extend(p, s, behind) } -> std::same_as<pipeline_tail>;  // pure, as all of them
};
template <class L>
concept extends_by_a_link = requires(const L& l, const pipelining& p, const link_times& c, const pipeline_tail& behind) {
  { l.extend(p, c, behind) } -> std::same_as<pipeline_tail>;
};
template <class L>
concept tells_response = requires(const L& l, const pipelining& p, const pipeline_tail& whole) {
  { l.response_s(p, whole) } -> std::same_as<double>;  // of all stages; >= 0
};
/// Optional: no less than what is certain when a link with at least these times and then one or more stages come before the tail,
/// that take path_s for one microbatch together and busiest_s in the slowest of them. Without it: response_s(p, behind).
template <class L>
concept tells_bound =
    requires(const L& l, const pipelining& p, const pipeline_tail& behind, const link_times& least, double path_s, double busiest_s) {
      { l.bound_s(p, behind, least, path_s, busiest_s) } -> std::same_as<double>;
    };

/// Adds up a pipeline from its end: extend by a stage, by the link before it, by the next stage, ..., then the response.
///
/// All answers are non-decreasing in both numbers of the tail and in every time but backward_s, in which they must not
/// increase (more of the same total on the way back): then a tail that is no worse in both numbers is no worse in any whole, and a
/// search may drop the other. Two tails behind one stage of a DAG count as the larger of both numbers.
/// check_law finds a law that is not so, with the two points. Called from several threads at once where a search has threads.
template <class L>
concept step_law = extends_by_a_stage<L> && extends_by_a_link<L> && tells_response<L>;

namespace detail {
struct bound_s_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.bound_s(a...));
  template <class M>
  static auto address() -> decltype(&M::bound_s);
};
}  // namespace detail

namespace detail {
/// Likely slips in the optional members' names.
template <class L>
concept nearly_names_bound_s = HETPLAN_HAS_FUNCTION(L, bounds_s) || HETPLAN_HAS_FUNCTION(L, bound_S) || HETPLAN_HAS_FUNCTION(L, boundS) ||
                               HETPLAN_HAS_FUNCTION(L, lower_bound_s) || HETPLAN_HAS_FUNCTION(L, bound_seconds);
}  // namespace detail

template <class L>
consteval bool check_step_law() {
  static_assert(extends_by_a_stage<L>,
                "step_law needs: hetplan::pipeline_tail extend(const hetplan::pipelining&, const hetplan::stage_times&, const "
                "hetplan::pipeline_tail& behind) const");
  static_assert(extends_by_a_link<L>,
                "step_law needs: hetplan::pipeline_tail extend(const hetplan::pipelining&, const hetplan::link_times&, const "
                "hetplan::pipeline_tail& behind) const");
  static_assert(tells_response<L>, "step_law needs: double response_s(const hetplan::pipelining&, const hetplan::pipeline_tail&) const");
  static_assert(tells_bound<L> || !names_member<L, detail::bound_s_call, pipelining, pipeline_tail, link_times, double>,
                "step_law's optional bound is: double bound_s(const hetplan::pipelining&, const hetplan::pipeline_tail& behind, const "
                "hetplan::link_times& least, double path_s, double busiest_s) const");
  static_assert(tells_bound<L> || !detail::nearly_names_bound_s<L>,
                "a step_law's optional member is called bound_s; this law has one of nearly that name");
  return step_law<L>;
}

}  // namespace hetplan
