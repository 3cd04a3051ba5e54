// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Concept for step laws: how the steps of a pipeline add up to its latency.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/estimate/pipeline_steps.hpp>

namespace hetplan {

/// Parameters of a pipeline's iteration that a step law uses.
struct pipelining {
  int microbatches = 1;
  int in_turn = 1;       ///< microbatches that pass all stages before the next one starts: all if every stage holds one at a time, else 1
  int first_passes = 1;  ///< generation: passes until the first token; see run_part
  int later_passes = 0;  ///< generation: passes behind it
  int chunks_in_flight = 0;  ///< generation: most chunks of a prompt that are under way; 0: any number

  [[nodiscard]] int passes() const { return first_passes + later_passes; }
};

struct stage_times {
  double total_s = 0;       ///< e: forward and backward of a microbatch; in generation one pass, the mean of the run
  double backward_s = 0;    ///< b: backward part of e; 0 outside training
  double collective_s = 0;  ///< A: collectives, once an iteration
  double first_s = 0;       ///< generation: e of a pass until the first token
  double later_s = 0;       ///< generation: e of a pass behind it
};

struct link_times {
  double total_s = 0;      ///< e: activations of a microbatch forward and their gradients back; in generation as of stages
  double backward_s = 0;   ///< b: backward part of e
  double own_s = 0;        ///< whole traffic of an iteration, in generation of a pass of all microbatches; latency once in each direction
  double first_s = 0;      ///< generation: e of a pass until the first token
  double first_own_s = 0;  ///< generation: whole traffic of all those passes
  double later_s = 0;      ///< generation: e of a pass behind it
  double later_own_s = 0;  ///< generation: own_s of such a pass
};

/// Returns the times of a link of a plan.
[[nodiscard]] link_times link_of(const pipeline_steps::link_step& l);

/// Summary of the stages and links from some point to the end of the pipeline: numbers whose meaning the law defines; most need two. All
/// are 0 behind the last stage.
struct pipeline_tail {
  double reach_s = 0;
  double rest_s = 0;
  double first_reach_s = 0;  ///< generation: the same of the passes until the first token
  double first_rest_s = 0;

  friend bool operator==(const pipeline_tail&, const pipeline_tail&) = default;
};
/// Returns the larger, or the smaller, of each number.
[[nodiscard]] inline pipeline_tail larger_of(const pipeline_tail& a, const pipeline_tail& b) {
  return {std::max(a.reach_s, b.reach_s), std::max(a.rest_s, b.rest_s), std::max(a.first_reach_s, b.first_reach_s),
          std::max(a.first_rest_s, b.first_rest_s)};
}
[[nodiscard]] inline pipeline_tail smaller_of(const pipeline_tail& a, const pipeline_tail& b) {
  return {std::min(a.reach_s, b.reach_s), std::min(a.rest_s, b.rest_s), std::min(a.first_reach_s, b.first_reach_s),
          std::min(a.first_rest_s, b.first_rest_s)};
}
/// Returns true if no number of `a` is larger.
[[nodiscard]] inline bool no_longer(const pipeline_tail& a, const pipeline_tail& b) {
  return a.reach_s <= b.reach_s && a.rest_s <= b.rest_s && a.first_reach_s <= b.first_reach_s && a.first_rest_s <= b.first_rest_s;
}

template <class L>
concept extends_by_a_stage = requires(const L& l, const pipelining& p, const stage_times& s, const pipeline_tail& behind) {
  { l.extend(p, s, behind) } -> std::same_as<pipeline_tail>;  // pure, like all members
};
template <class L>
concept extends_by_a_link = requires(const L& l, const pipelining& p, const link_times& c, const pipeline_tail& behind) {
  { l.extend(p, c, behind) } -> std::same_as<pipeline_tail>;
};
template <class L>
concept tells_response = requires(const L& l, const pipelining& p, const pipeline_tail& whole) {
  { l.response_s(p, whole) } -> std::same_as<double>;  // of the tail of all stages; >= 0
};
/// Optional: a lower bound on the response of every pipeline that puts a link with at least the times `least`, then one or more stages,
/// before the tail. The stages take path_s together for one microbatch and busiest_s in the slowest one. Default: response_s(p, behind).
template <class L>
concept tells_bound =
    requires(const L& l, const pipelining& p, const pipeline_tail& behind, const link_times& least, double path_s, double busiest_s) {
      { l.bound_s(p, behind, least, path_s, busiest_s) } -> std::same_as<double>;
    };
/// What the stages before a tail take at least: together for one microbatch, and in the slowest one.
struct stages_ahead {
  double path_s = 0;
  double busiest_s = 0;
};
/// The law of a mode whose times are not one number (generation_pipeline) tells all of them, and bounds on all of them.
template <class L>
concept tells_times = requires(const L& l, const pipelining& p, const pipeline_tail& t, const link_times& least, const stages_ahead& first,
                               const stages_ahead& later) {
  { l.times(p, t) } -> std::same_as<run_times>;
  { l.bounds(p, t, least, first, later) } -> std::same_as<run_times>;
};

/// Rule by which stages and links add up to a pipeline's latency, from the last stage to the first. The law extends a tail by a stage,
/// by the link before it, by the next stage, and so on. The response of the whole tail is the latency, which a search minimises.
/// `recipes::dora`, `view_search` and `search_options` take a law.
///
/// * In generation the response is of one pass, the mean of the run: a run takes as many of them as it has passes.
/// * All answers are non-decreasing in both numbers of the tail and in every time but `backward_s`. In `backward_s`, at the same total,
///   they are non-increasing. Hence a tail that is no worse in both numbers is no worse in any pipeline, and a search may drop the other.
///   Before a search starts, `check_law` throws `invalid_model` for a law that violates this, with the two points.
/// * Several tails behind one stage of a DAG count as one, with the maximum of each number.
/// * A user's law costs the search one indirect call per query. NaN, or a response below 0, is `invalid_model`.
/// * A tighter `bound_s` makes the search faster. It may be negative.
/// * A search with several threads calls the law concurrently.
///
/// Ships: `training_pipeline` (1F1B and GPipe), `inference_pipeline` and `generation_pipeline`, all by the dominant step;
/// `split_backward` (zero bubble), `sum_and_largest` (Alpa, Metis); `largest_step` (PipeDream); `any_step_law` (chosen at run time). The
/// recurrence behind the laws, without pruning, is in partition/brute_force.hpp.
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
/// Returns true if a law has a member whose name is a likely misspelling of `bound_s`.
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

/// Law of 1F1B and GPipe in training, by the dominant step: T = D + R with reach D = max_i (M e_i + sum_{j<i} e_j) and
/// rest R = max_s (A_s - sum_{j<s} b_j), steps i from the head, stages s. Without overlap of microbatches: D = M sum_i e_i.
///
/// A stage h and its link c before a pipeline with (D, R) give
///
///     D' = max(M e_h, e_h + M e_c, e_h + e_c + D),    R' = max(A_h, R - b_h - b_c)
///
/// so the pair is all that a search needs to know of the stages behind. On a DAG of stages there is one pair per port (a place where the
/// planned part reads from the unplanned part), sums follow the longest path, and T is that of the worst source.
///
/// Source     Asteroid, section 3.2, eqs. 4-6, regrouped. Deviation: a link counts its own whole traffic instead of M e, so that both
///            directions of a full-duplex wire overlap.
struct training_pipeline {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return {std::max(p.microbatches * s.total_s, p.in_turn * s.total_s + behind.reach_s),
            std::max(s.collective_s, behind.rest_s - s.backward_s)};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s, p.in_turn * c.total_s + behind.reach_s), behind.rest_s - c.backward_s};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const {
    return whole.reach_s + std::max(0.0, whole.rest_s);
  }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double path_s, double busiest_s) const {
    return std::max(std::max(p.in_turn * path_s + std::max(c.own_s, p.in_turn * c.total_s + t.reach_s), response_s(p, t)),
                    p.microbatches * busiest_s);
  }
};

/// Law of inference, by the dominant step: the reach is T = max_i (M e_i + sum_{j != i} e_j), the rest one microbatch's sum of steps.
/// Source     Asteroid, eqs. 4-6, without the backward pass.
struct inference_pipeline {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return {std::max(p.microbatches * s.total_s + behind.rest_s, s.total_s + behind.reach_s), s.total_s + behind.rest_s};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s + behind.rest_s, c.total_s + behind.reach_s), c.total_s + behind.rest_s};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double path_s, double busiest_s) const {
    return std::max(std::max(path_s + c.total_s + t.reach_s, p.microbatches * busiest_s + t.rest_s), c.own_s + t.rest_s);
  }
};

/// Law of generation. A pass of K until the first token takes f_i in step i, one of G behind it e_i, for each of M microbatches:
///
///     first token      F = max(max_i (M K f_i + sum_{j != i} f_j), K / in flight sum_i f_i), as in inference_pipeline, of all chunks
///     between tokens   E = max(M max_i e_i, sum_i e_i), the larger of a full pipeline's period and a token's path
///     whole run        T = F + G E
///
/// The reach is E, the rest its sum; first_reach and first_rest are those of inference.
/// Source     ours (semantics, section 4). Deviation: the token's return to the first stage is left out.
struct generation_pipeline {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    const double way_s = s.later_s + behind.rest_s, all = static_cast<double>(p.microbatches) * p.first_passes;
    return {std::max({p.microbatches * s.later_s, behind.reach_s, way_s}), way_s,
            std::max(all * s.first_s + behind.first_rest_s, s.first_s + behind.first_reach_s), s.first_s + behind.first_rest_s};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.later_own_s, behind.reach_s), c.later_s + behind.rest_s,
            std::max(c.first_own_s + behind.first_rest_s, c.first_s + behind.first_reach_s), c.first_s + behind.first_rest_s};
  }
  [[nodiscard]] run_times times(const pipelining& p, const pipeline_tail& whole) const {
    const double first_s = std::max(whole.first_reach_s, rounds(p) * whole.first_rest_s);
    return times_of(p, first_s, whole.reach_s);
  }
  /// Returns the mean of a pass.
  [[nodiscard]] double response_s(const pipelining& p, const pipeline_tail& whole) const {
    return times(p, whole).makespan.value() / p.passes();
  }
  [[nodiscard]] run_times bounds(const pipelining& p, const pipeline_tail& t, const link_times& c, const stages_ahead& first,
                                 const stages_ahead& later) const {
    const double all = static_cast<double>(p.microbatches) * p.first_passes;
    const double way_s = first.path_s + c.first_s + t.first_rest_s;
    return times_of(p,
                    std::max({first.path_s + c.first_s + t.first_reach_s, all * first.busiest_s + t.first_rest_s,
                              c.first_own_s + t.first_rest_s, rounds(p) * way_s}),
                    std::max({t.reach_s, later.path_s + c.later_s + t.rest_s, p.microbatches * later.busiest_s, c.later_own_s}));
  }

 private:
  [[nodiscard]] static double rounds(const pipelining& p) {
    return p.chunks_in_flight > 0 ? static_cast<double>(p.first_passes) / std::min(p.first_passes, p.chunks_in_flight) : 1;
  }
  [[nodiscard]] static run_times times_of(const pipelining& p, double first_s, double later_s) {
    const double all_s = p.later_passes > 0 ? first_s + p.later_passes * later_s : first_s;
    return {seconds(all_s), seconds(first_s), seconds(p.later_passes > 0 ? later_s : all_s)};
  }
};

/// Returns the times of a run whose passes take `pass_s` each.
[[nodiscard]] inline run_times times_of_pass(const pipelining& p, double pass_s) {
  const double all_s = p.passes() * pass_s;
  return {seconds(all_s), seconds(p.first_passes * pass_s), seconds(p.later_passes > 0 ? pass_s : all_s)};
}

/// Returns the times of a run by a law: those that it tells, or as many responses as there are passes.
template <class L>
[[nodiscard]] run_times times_by(const L& law, const pipelining& p, const pipeline_tail& whole) {
  if constexpr (tells_times<L>) return law.times(p, whole);
  else return times_of_pass(p, law.response_s(p, whole));
}

/// Law of one fill, then the slowest step for every other microbatch: T = sum_i e_i + (M - 1) max_i e_i over the steps, links included. A
/// stage's collective A is spread over the microbatches, e + A / M. The reach is the second term, the rest the first.
/// Source     Alpa (Zheng et al., 2022), section 5.1, eq. 2, its latency of a pipeline; Metis takes the same. Deviation: links are steps.
struct sum_and_largest {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    const double step_s = s.total_s + s.collective_s / p.microbatches;
    return {std::max((p.microbatches - 1) * step_s, behind.reach_s), step_s + behind.rest_s};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const link_times& c, const pipeline_tail& behind) const {
    return {std::max((p.microbatches - 1) * c.total_s, behind.reach_s), c.total_s + behind.rest_s};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s + whole.rest_s; }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double path_s, double busiest_s) const {
    return std::max(t.reach_s, (p.microbatches - 1) * std::max(busiest_s, c.total_s)) + std::max(path_s, busiest_s) + c.total_s + t.rest_s;
  }
};

/// Law of a pipeline that never fills or drains, with reductions hidden behind work. The reach T is the largest of all stages' work,
/// collectives and links' traffic of an iteration.
/// Source     PipeDream (Narayanan et al., 2019), section 3.1: the slowest stage of its optimizer; synchronisation overlaps computation.
struct largest_step {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return {std::max({p.microbatches * s.total_s, s.collective_s, behind.reach_s}), 0};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s, behind.reach_s), 0};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double, double busiest_s) const {
    return std::max({t.reach_s, p.microbatches * busiest_s, c.own_s});
  }
};

/// Law of zero-bubble pipelines, whose weight gradients fill idle gaps: T = max_s (M e_s + max(0, w_s - min(M, K) f_s) + A_s). The window
/// w_s = f_s + b_{s+1} + c_s + w_{s+1} runs from a stage's first forward to the end of the gradient that follows from it. f and b are the
/// shares of forward and input gradient in a stage's time e; c is the round trip of a microbatch over the link. The reach is the largest
/// term, the rest the window with the stage's own b. A link's whole traffic competes in the maximum like a stage.
///
/// Source     the bound on the longest span of Qi et al., Zero Bubble Pipeline Parallelism, 2023, for unequal stages (docs/semantics.md,
///            section 7). Deviation: one split of e for all stages; the best order of a pipeline may take longer, and transfers share
///            links.
struct split_backward {
  double forward_share = 1.0 / 3;                        ///< f / e of the model
  double input_share = 1.0 / 3;                          ///< b / e
  int most_in_flight = std::numeric_limits<int>::max();  ///< K: microbatches whose activations a stage holds at once

  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    const double forward_s = forward_share * s.total_s, window_s = forward_s + behind.rest_s;
    const double idle_s = std::max(0.0, window_s - std::min(p.microbatches, most_in_flight) * forward_s);
    return {std::max(behind.reach_s, p.microbatches * s.total_s + idle_s + s.collective_s), window_s + input_share * s.total_s};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s, behind.reach_s), c.total_s + behind.rest_s};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double, double busiest_s) const {
    return std::max({t.reach_s, p.microbatches * busiest_s, c.own_s});
  }
};

static_assert(tells_times<generation_pipeline>);
static_assert(check_step_law<training_pipeline>() && check_step_law<inference_pipeline>() && check_step_law<generation_pipeline>() &&
              check_step_law<sum_and_largest>() && check_step_law<largest_step>() && check_step_law<split_backward>());

namespace detail {

[[nodiscard]] std::string law_text(const pipeline_tail& t);
[[nodiscard]] std::string law_text(const stage_times& s);
[[nodiscard]] std::string law_text(const link_times& c);
[[noreturn]] void refuse_law(const pipelining& p, const std::string& what);
[[noreturn]] void refuse_tail(const pipelining& p, const std::string& step, const pipeline_tail& behind, const pipeline_tail& given);
[[noreturn]] void refuse_seconds(const pipelining& p, const char* member, const pipeline_tail& t, double given, const char* expected);

/// User-defined law behind one indirect call per query. Throws invalid_model for NaN and for a response below 0.
class erased_step_law {
 public:
  erased_step_law() = default;
  template <class L>
  explicit erased_step_law(L law)
      : law_(std::move(law), {.by_stage = [](void* l, auto... a) { return as<const L>(l).extend(a...); },
                              .by_link = [](void* l, auto... a) { return as<const L>(l).extend(a...); },
                              .response_s = [](void* l, auto... a) { return as<const L>(l).response_s(a...); },
                              .bound_s =
                                  [](void* l, const pipelining& p, const pipeline_tail& behind, auto... a) {
                                    if constexpr (tells_bound<L>) return as<const L>(l).bound_s(p, behind, a...);
                                    else return as<const L>(l).response_s(p, behind);
                                  }}) {}

  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    const pipeline_tail x = law_->by_stage(law_.get(), p, s, behind);
    if (std::isnan(x.reach_s) || std::isnan(x.rest_s)) refuse_tail(p, law_text(s), behind, x);
    return x;
  }
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const link_times& c, const pipeline_tail& behind) const {
    const pipeline_tail x = law_->by_link(law_.get(), p, c, behind);
    if (std::isnan(x.reach_s) || std::isnan(x.rest_s)) refuse_tail(p, law_text(c), behind, x);
    return x;
  }
  [[nodiscard]] double response_s(const pipelining& p, const pipeline_tail& whole) const {
    const double r = law_->response_s(law_.get(), p, whole);
    if (!(r >= 0)) refuse_seconds(p, "response_s", whole, r, "a number >= 0");
    return r;
  }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double path_s, double busiest_s) const {
    const double b = law_->bound_s(law_.get(), p, t, c, path_s, busiest_s);
    if (std::isnan(b)) refuse_seconds(p, "bound_s", t, b, "a number");
    return b;
  }

 private:
  struct calls {
    pipeline_tail (*by_stage)(void*, const pipelining&, const stage_times&, const pipeline_tail&);
    pipeline_tail (*by_link)(void*, const pipelining&, const link_times&, const pipeline_tail&);
    double (*response_s)(void*, const pipelining&, const pipeline_tail&);
    double (*bound_s)(void*, const pipelining&, const pipeline_tail&, const link_times&, double, double);
  };
  erased<calls> law_;
};

static_assert(check_step_law<erased_step_law>());

}  // namespace detail

/// Holder of any step law by value; copies share a user-defined law. A search calls the laws in `shipped` through their own types and
/// any other by one indirect call per query, so no code of the search is instantiated for it.
class any_step_law {
 public:
  /// Selects the dominant-step law of a mode.
  explicit any_step_law(mode m) : number_(m == mode::training ? 0 : m == mode::inference ? 1 : 2) {}
  template <class L>
    requires(!std::same_as<L, any_step_law> && !std::same_as<L, mode>)
  any_step_law(L law) : number_(number_of<L>(shipped{})) {
    static_assert(check_step_law<L>());
    if constexpr (step_law<L>) {
      if (is_users()) users_ = detail::erased_step_law(std::move(law));
    }
  }

  /// Returns true if the law is not in `shipped` and is called indirectly.
  [[nodiscard]] bool is_users() const { return number_ == std::tuple_size_v<shipped>; }
  /// Calls f with the law in its own type.
  template <class F>
  decltype(auto) visit(F&& f) const {
    switch (number_) {
      case 0: return f(training_pipeline{});
      case 1: return f(inference_pipeline{});
      case 2: return f(generation_pipeline{});
      case 3: return f(sum_and_largest{});
      case 4: return f(largest_step{});
      default: return f(users_);
    }
  }

  /// Returns the times of a whole plan. Tails behind one stage, and finally all sources, count as one with the maximum of each number.
  /// Complexity  O(stages + links).
  [[nodiscard]] run_times times(const pipeline_steps& steps) const;
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const { return times(steps).makespan; }

 private:
  using shipped = std::tuple<training_pipeline, inference_pipeline, generation_pipeline, sum_and_largest, largest_step>;
  /// Index of the law in `shipped`; the size of `shipped` for any other law.
  template <class L, class... Laws>
  static constexpr std::size_t number_of(std::tuple<Laws...>) {
    std::size_t n = 0;
    static_cast<void>(((std::same_as<L, Laws> || (++n, false)) || ...));
    return n;
  }

  std::size_t number_;
  detail::erased_step_law users_ = {};
};

static_assert(check_latency_estimator<any_step_law>());

/// Returns the parameters of a plan's iteration; microbatches do not overlap if every stage holds one at a time.
[[nodiscard]] pipelining pipelining_of(const pipeline_steps& steps);

/// Queries the law on a grid of points.
/// Complexity  some thousand queries.
/// Throws invalid_model, with the two points, where an answer is NaN, violates the monotonicity of `step_law`, or where the bound
/// exceeds the response of a pipeline that it covers.
void check_law(const any_step_law& law, const pipelining& p);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/estimate/step_law.ipp>
#endif
