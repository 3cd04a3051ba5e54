// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A step law chosen at run time, and what it says of a whole plan.

#include <cmath>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include <hetplan/plan/latency_estimator.hpp>
#include <hetplan/plan/pipeline_steps.hpp>
#include <hetplan/plan/step_laws.hpp>

namespace hetplan {

namespace detail {

[[nodiscard]] std::string law_text(const pipeline_tail& t);
[[nodiscard]] std::string law_text(const stage_times& s);
[[nodiscard]] std::string law_text(const link_times& c);
[[noreturn]] void refuse_law(const pipelining& p, const std::string& what);
[[noreturn]] void refuse_tail(const pipelining& p, const std::string& step, const pipeline_tail& behind, const pipeline_tail& given);
[[noreturn]] void refuse_seconds(const pipelining& p, const char* member, const pipeline_tail& t, double given, const char* expected);

/// A user's law: one virtual call per question. Answers that are no numbers, or a response below 0, are invalid_model.
class erased_step_law {
 public:
  erased_step_law() = default;
  template <class L>
  explicit erased_step_law(L law) : law_(std::make_shared<holder<L>>(std::move(law))) {}

  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    const pipeline_tail x = law_->extend(p, s, behind);
    if (std::isnan(x.reach_s) || std::isnan(x.rest_s)) refuse_tail(p, law_text(s), behind, x);
    return x;
  }
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const link_times& c, const pipeline_tail& behind) const {
    const pipeline_tail x = law_->extend(p, c, behind);
    if (std::isnan(x.reach_s) || std::isnan(x.rest_s)) refuse_tail(p, law_text(c), behind, x);
    return x;
  }
  [[nodiscard]] double response_s(const pipelining& p, const pipeline_tail& whole) const {
    const double r = law_->response_s(p, whole);
    if (!(r >= 0)) refuse_seconds(p, "response_s", whole, r, "a number >= 0");
    return r;
  }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double path_s, double busiest_s) const {
    const double b = law_->bound_s(p, t, c, path_s, busiest_s);
    if (std::isnan(b)) refuse_seconds(p, "bound_s", t, b, "a number");
    return b;
  }

 private:
  struct interface {
    virtual ~interface() = default;
    [[nodiscard]] virtual pipeline_tail extend(const pipelining&, const stage_times&, const pipeline_tail&) const = 0;
    [[nodiscard]] virtual pipeline_tail extend(const pipelining&, const link_times&, const pipeline_tail&) const = 0;
    [[nodiscard]] virtual double response_s(const pipelining&, const pipeline_tail&) const = 0;
    [[nodiscard]] virtual double bound_s(const pipelining&, const pipeline_tail&, const link_times&, double, double) const = 0;
  };
  template <class L>
  struct holder final : interface {
    explicit holder(L l) : law(std::move(l)) {}
    [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const override {
      return law.extend(p, s, behind);
    }
    [[nodiscard]] pipeline_tail extend(const pipelining& p, const link_times& c, const pipeline_tail& behind) const override {
      return law.extend(p, c, behind);
    }
    [[nodiscard]] double response_s(const pipelining& p, const pipeline_tail& whole) const override { return law.response_s(p, whole); }
    [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, [[maybe_unused]] const link_times& c,
                                 [[maybe_unused]] double path_s, [[maybe_unused]] double busiest_s) const override {
      if constexpr (tells_bound<L>) return law.bound_s(p, t, c, path_s, busiest_s);
      else return law.response_s(p, t);
    }
    L law;
  };
  std::shared_ptr<const interface> law_;
};

static_assert(check_step_law<erased_step_law>());

}  // namespace detail

/// Holds any step law by value; copies share a user's. A search asks those that ship by their own types, any other by one virtual
/// call per question: nothing of the search is compiled anew for it.
class any_step_law {
 public:
  /// The dominant step's law of a mode.
  explicit any_step_law(mode m) : number_(m == mode::training ? 0 : m == mode::inference ? 1 : 2) {}
  template <class L>
    requires(!std::same_as<L, any_step_law> && !std::same_as<L, mode>)
  any_step_law(L law) : number_(number_of<L>(shipped{})) {
    static_assert(check_step_law<L>());
    if constexpr (step_law<L>) {
      if (is_users()) users_ = detail::erased_step_law(std::move(law));
    }
  }

  /// Is it none of those that ship?
  [[nodiscard]] bool is_users() const { return number_ == std::tuple_size_v<shipped>; }
  /// Calls f with the law.
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

  /// Of a whole plan: a latency_estimator. Tails behind one stage, and at last all sources, count as the larger of both numbers.
  ///
  /// Complexity  O(stages + links).
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const;

 private:
  using shipped = std::tuple<training_pipeline, inference_pipeline, generation_pipeline, sum_and_largest, largest_step>;
  /// The law's place among those that ship; their number for any other.
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

/// How a plan's microbatches pass: all in turn where every stage holds one at a time.
[[nodiscard]] pipelining pipelining_of(const pipeline_steps& steps);

/// Throws invalid_model where, on a grid of points, an answer is not a number, falls where it must not (see step_law), or the bound
/// exceeds the response of a pipeline that it should bound: with the two points.
///
/// Complexity  some thousand questions.
void check_law(const any_step_law& law, const pipelining& p);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/any_step_law.ipp>
#endif
