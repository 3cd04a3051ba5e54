// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/estimate/step_law.hpp>

#include <array>
#include <vector>

namespace hetplan {

HETPLAN_INLINE pipelining pipelining_of(const pipeline_steps& steps) {
  const bool in_turn =
      steps.mode == mode::training && std::all_of(steps.stages.begin(), steps.stages.end(), [](const auto& s) { return s.in_flight == 1; });
  return {steps.microbatches, in_turn ? steps.microbatches : 1, steps.first_passes, steps.later_passes, steps.chunks_in_flight};
}

HETPLAN_INLINE link_times link_of(const pipeline_steps::link_step& l) {
  return {l.total_s, l.backward_s, l.own_s, l.first_s, l.first_own_s, l.later_s, l.later_own_s};
}

HETPLAN_INLINE run_times any_step_law::times(const pipeline_steps& steps) const {
  if (!steps.connected()) return {seconds(std::numeric_limits<double>::infinity())};
  const pipelining p = pipelining_of(steps);
  return visit([&](const auto& law) {
    std::vector<pipeline_tail> from(steps.stages.size());
    pipeline_tail whole;
    for (std::size_t h = from.size(); h-- > 0;) {
      const auto& stage = steps.stages[h];
      pipeline_tail behind;
      for (const std::size_t l : stage.out) {
        const auto& link = steps.links[l];
        behind = larger_of(behind, law.extend(p, link_of(link), from[link.to]));
      }
      from[h] = law.extend(p, stage_times{stage.total_s, stage.backward_s, stage.collective_s, stage.first_s, stage.later_s}, behind);
      if (stage.in.empty()) whole = larger_of(whole, from[h]);
    }
    return times_by(law, p, whole);
  });
}

namespace detail {

HETPLAN_INLINE std::string law_text(const pipeline_tail& t) { return "tail (" + to_text(t.reach_s) + ", " + to_text(t.rest_s) + ")"; }
HETPLAN_INLINE std::string law_text(const stage_times& s) {
  return "stage (" + to_text(s.total_s) + ", " + to_text(s.backward_s) + ", " + to_text(s.collective_s) + ")";
}
HETPLAN_INLINE std::string law_text(const link_times& c) {
  return "link (" + to_text(c.total_s) + ", " + to_text(c.backward_s) + ", " + to_text(c.own_s) + ")";
}
HETPLAN_INLINE void refuse_law(const pipelining& p, const std::string& what) {
  throw invalid_model("step law, " + std::to_string(p.microbatches) + " microbatches: " + what);
}
HETPLAN_INLINE void refuse_tail(const pipelining& p, const std::string& step, const pipeline_tail& behind, const pipeline_tail& given) {
  refuse_law(p, step + " before " + law_text(behind) + " gives " + law_text(given) + "; expected numbers");
}
HETPLAN_INLINE void refuse_seconds(const pipelining& p, const char* member, const pipeline_tail& t, double given, const char* expected) {
  refuse_law(p, std::string(member) + " of " + law_text(t) + " is " + to_text(given) + " s; expected " + expected);
}

/// Grid test of a law: queries at pairs of points that differ in one number.
template <class Law>
class law_probe {
 public:
  law_probe(const Law& law, const pipelining& p) : law_(law), p_(p) {}

  void run() const {
    for (const double reach : points) {
      for (const double rest : points) {
        const pipeline_tail t{reach, rest};
        for (const double x : points) {
          for (const double y : points) probe({x, std::min(x, y), y}, {x, std::min(x, y), p_.microbatches * x + y}, t);
        }
      }
    }
  }

 private:
  static constexpr std::array points{0.0, 1e-3, 1.0, 30.0};

  static std::string text(const pipeline_tail& t) { return law_text(t); }
  template <class Step>
  std::string text(const Step& s, const pipeline_tail& t) const {
    return law_text(s) + " before " + law_text(t);
  }
  [[noreturn]] void refuse(const std::string& what) const { refuse_law(p_, what); }

  template <class Step>
  [[nodiscard]] pipeline_tail extended(const Step& s, const pipeline_tail& t) const {
    const pipeline_tail x = law_.extend(p_, s, t);
    if (std::isnan(x.reach_s) || std::isnan(x.rest_s)) refuse_tail(p_, law_text(s), t, x);
    return x;
  }
  /// Throws invalid_model if a number at `more` is less than its counterpart.
  template <class Step>
  void compare(const Step& s, const pipeline_tail& t, const Step& more_s, const pipeline_tail& more_t) const {
    const pipeline_tail x = extended(s, t), y = extended(more_s, more_t);
    if (y.reach_s < x.reach_s || y.rest_s < x.rest_s)
      refuse(text(s, t) + " gives " + text(x) + ", " + text(more_s, more_t) + " gives " + text(y) + "; expected no less of either number");
  }
  void probe(const stage_times& s, const link_times& c, const pipeline_tail& t) const {
    for (const double more : {0.5, 20.0}) {
      const pipeline_tail reach{t.reach_s + more, t.rest_s}, rest{t.reach_s, t.rest_s + more};
      compare(s, t, s, reach);
      compare(s, t, s, rest);
      compare(c, t, c, reach);
      compare(c, t, c, rest);
      compare(s, t, {s.total_s + more, s.backward_s, s.collective_s}, t);
      compare(s, t, {s.total_s, s.backward_s, s.collective_s + more}, t);
      compare(c, t, {c.total_s + more, c.backward_s, c.own_s}, t);
      compare(c, t, {c.total_s, c.backward_s, c.own_s + more}, t);
      compare(stage_times{s.total_s + more, s.backward_s + more, s.collective_s}, t, {s.total_s + more, s.backward_s, s.collective_s}, t);
      compare(link_times{c.total_s + more, c.backward_s + more, c.own_s}, t, {c.total_s + more, c.backward_s, c.own_s}, t);
      const double here = response(t), there = std::min(response(reach), response(rest));
      if (there < here)
        refuse(text(t) + " takes " + to_text(here) + " s, " + text(response(reach) < here ? reach : rest) + " takes " + to_text(there) +
               " s; expected no less");
    }
    // A pipeline with one stage more, then with two, the second behind an empty link.
    const pipeline_tail one = extended(s, extended(c, t)), two = extended(stage_times{1, 0, 0}, extended(link_times{}, one));
    check_bound(t, c, s.total_s, s.total_s, one);
    check_bound(t, c, s.total_s + 1, std::max(s.total_s, 1.0), two);
  }
  [[nodiscard]] double response(const pipeline_tail& t) const {
    const double r = law_.response_s(p_, t);
    if (!(r >= 0)) refuse(text(t) + " takes " + to_text(r) + " s; expected a number >= 0");
    return r;
  }
  void check_bound(const pipeline_tail& t, const link_times& c, double path_s, double busiest_s, const pipeline_tail& whole) const {
    double bound = law_.response_s(p_, t);
    if constexpr (tells_bound<Law>) bound = law_.bound_s(p_, t, c, path_s, busiest_s);
    if (!(bound <= response(whole) * (1 + 1e-9)))
      refuse("the bound of " + text(c, t) + ", " + to_text(path_s) + " s to come, is " + to_text(bound) + " s; such a pipeline is " +
             text(whole) + " and takes " + to_text(response(whole)) + " s; expected no more");
  }

  const Law& law_;
  const pipelining& p_;
};

}  // namespace detail

HETPLAN_INLINE void check_law(const any_step_law& law, const pipelining& p) {
  law.visit([&](const auto& l) { detail::law_probe(l, p).run(); });
}

}  // namespace hetplan
