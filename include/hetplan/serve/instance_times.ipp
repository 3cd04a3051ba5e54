// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/instance_times.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <hetplan/core/error.hpp>
#include <hetplan/core/escaped.hpp>

namespace hetplan::serve {

HETPLAN_INLINE instance_times::instance_times(const any_service_time& model, const std::vector<service>& services, const instance& i)
    : model_(model), services_(&services), what_(i.what), variant_(i.variant), batch_(i.batch) {
  const auto& s = services[what_.index()];
  const auto& v = s.variants[static_cast<std::size_t>(variant_)];
  stages_ = s.batches == batching::continuous ? 1 : v.pipeline_parallel;
  generates_ = s.generates;
  latency_s_ = s.latency.value();
  typical_out_ = s.generates ? s.tokens.out : 1;
  const auto sizes = static_cast<std::size_t>(batch_) + 1;
  pass_s_.resize(sizes);
  typical_s_.resize(sizes);
  step_s_.resize(sizes);
  for (int b = 1; b <= batch_; ++b) {
    const auto at = static_cast<std::size_t>(b);
    if (generates_) step_s_[at] = ask_step(b);
    pass_s_[at] = ask_pass(b, generates_ ? static_cast<double>(b) * s.tokens.in : 0);
    typical_s_[at] = pass_s_[at] + (generates_ ? (typical_out_ - 1) * step_s_[at] : 0);
  }
  if (s.is_stream()) {
    stream_capacity_.resize(sizes);
    for (int n = 1; n <= batch_; ++n) {
      const int frames = static_cast<int>(std::min<std::int64_t>(batch_, static_cast<std::int64_t>(n) * i.frames));
      const double once_s = generates_ ? step_s(frames) : pass_s_[static_cast<std::size_t>(frames)];
      const double rate = static_cast<double>(v.pipeline_parallel) * static_cast<double>(frames) / once_s;
      const auto at = static_cast<std::size_t>(n);
      stream_capacity_[at] = std::max(stream_capacity_[at - 1], rate * static_cast<double>(i.groups));
    }
    capacity_ = stream_capacity_.back();
  } else if (s.batches == batching::continuous) {
    pass_one_s_ = ask_pass(1, s.tokens.in);
    capacity_ = static_cast<double>(batch_) / typical_in_set_s(batch_);
  } else {
    capacity_ = static_cast<double>(stages_) * static_cast<double>(batch_) / typical_s(batch_);
  }
}

HETPLAN_INLINE service_run instance_times::run() const {
  const auto& s = (*services_)[what_.index()];
  return {s, s.variants[static_cast<std::size_t>(variant_)], what_, variant_};
}

HETPLAN_INLINE double instance_times::checked(seconds answer, const char* what, int requests) const {
  if (std::isfinite(answer.value()) && answer.value() > 0) return answer.value();
  const auto r = run();
  throw invalid_model("service_time: " + std::string(what) + "(service \"" + escaped(r.what.name) + "\", variant \"" + escaped(r.as.name) +
                      "\", batch " + std::to_string(requests) + ") = " + to_text(answer.value()) + " s; expected finite > 0");
}

HETPLAN_INLINE double instance_times::ask_pass(int requests, double tokens_in) const {
  return checked(model_.pass(run(), {requests, tokens_in}), "pass", requests);
}

HETPLAN_INLINE double instance_times::ask_step(int requests) const { return checked(model_.step(run(), requests), "step", requests); }

}  // namespace hetplan::serve
