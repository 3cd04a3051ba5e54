// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/instance_state.hpp>

#include <cmath>
#include <string>

namespace hetplan::serve {

HETPLAN_INLINE instance_times::instance_times(const any_service_time& model, const std::vector<service>& services, const instance& i)
    : model_(model), services_(&services), what_(i.what), variant_(i.variant), batch_(i.batch) {
  const auto& s = services[what_.index()];
  const auto& v = s.variants[static_cast<std::size_t>(variant_)];
  stages_ = s.batches == batching::continuous ? 1 : v.pipeline_parallel;
  generates_ = s.generates;
  latency_s_ = s.latency.value();
  begin_within_s_ = s.begin_within().value();
  ttft_s_ = s.ttft.value();
  chunk_ = s.prefill_chunk;
  if (v.cache_tokens > 0) cache_tokens_ = static_cast<double>(v.cache_tokens);
  typical_in_ = s.generates ? s.tokens.in : 0;
  typical_out_ = s.generates ? s.tokens.out : 1;
  typical_batch_ = static_cast<int>(
      std::clamp(std::floor(cache_tokens_ / (typical_in_ + typical_out_) * (1 + relative_tolerance)), 1.0, static_cast<double>(batch_)));
  if (generates_) {
    cached_s_ = model_.per_cached_token(run()).value();
    if (!std::isfinite(cached_s_) || cached_s_ < 0)
      throw invalid_model("service_time: per_cached_token(service \"" + escaped(s.name) + "\", variant \"" + escaped(v.name) +
                          "\") = " + to_text(cached_s_) + " s; expected finite >= 0");
  }
  const auto sizes = static_cast<std::size_t>(batch_) + 1;
  pass_s_.resize(sizes);
  typical_s_.resize(sizes);
  step_s_.resize(sizes);
  for (int b = 1; b <= batch_; ++b) {
    const auto at = static_cast<std::size_t>(b);
    if (generates_) step_s_[at] = checked(model_.step(run(), b), "step", b);
    pass_s_[at] = ask_pass(b, generates_ ? static_cast<double>(b) * s.tokens.in : 0);
    typical_s_[at] = pass_s_[at] + (generates_ ? steps_s(b, static_cast<double>(b) * s.tokens.in, typical_out_ - 1) : 0);
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
    if (chunk_ > 0) riding_one_s_ = riding_s(s.tokens.in);
    capacity_ = static_cast<double>(typical_batch_) / typical_in_set_s(typical_batch_);
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

HETPLAN_INLINE double instance_times::riding_s(double tokens_in) const {
  if (tokens_in == 0) return 0;
  // A step reads the weights anyway, as a pass over no tokens does.
  return std::max(0.0, ask_pass(1, tokens_in) - model_.pass(run(), {1, 0}).value());
}

HETPLAN_INLINE void stream_set::advance(double now_s, ended_requests& out) {
  while (!under_way_.empty() && is_over(under_way_.first().end_s, now_s)) {
    const auto s = under_way_.pop();
    held_ = under_way_.empty() ? 0 : held_ - s.rate;
    out.emplace_back(s.number, ended_request::how::done, s.end_s, s.rate / wanted_);
  }
}

HETPLAN_INLINE double stream_set::free_rate(double now_s) const {
  if (!is_over(ready_s_, now_s)) return 0;
  const double left = times_->stream_capacity(static_cast<int>(under_way_.size()) + 1) - held_;
  return left > relative_tolerance * wanted_ ? left : 0;
}

HETPLAN_INLINE void stream_set::begin(request_number r, double frames, double now_s) {
  const double rate = has_whole_rate(now_s) ? wanted_ : free_rate(now_s);
  held_ += rate;
  under_way_.push({now_s + frames / wanted_, r, rate, now_s});
}

HETPLAN_INLINE void stream_set::fail(double now_s, ended_requests& out) {
  for (const auto& s : under_way_) {
    const double part = (now_s - s.begin_s) / (s.end_s - s.begin_s);
    out.emplace_back(s.number, ended_request::how::failed, now_s, part * s.rate / wanted_);
  }
  under_way_.clear();
  held_ = 0;
}

HETPLAN_INLINE running_set::running_set(const instance_times& times, double ready_s) : times_(&times), boundary_s_(ready_s) {
  if (times.cached_s() > 0 || times.chunk() > 0 || std::isfinite(times.cache_tokens())) tokens_ = std::make_unique<token_use>();
}

HETPLAN_INLINE double running_set::boundary_s(std::int64_t steps) const {
  if (steps == 0) return boundary_s_;
  const auto k = static_cast<double>(steps);
  double at_s = boundary_s_ + k * each_s();
  if (tokens_) at_s += times_->cached_s() * k * (tokens_->cached + static_cast<double>(set_.size()) * (k - 1) / 2);
  return at_s;
}

HETPLAN_INLINE std::int64_t running_set::next_change() const {
  if (!busy()) return line_.empty() ? never : 0;
  auto changes = set_.empty() ? never : set_.first().leaves - steps_done_;
  if (tokens_) changes = std::min(changes, tokens_->alike);
  return room() && looks_ < changes ? looks_ : changes;
}

HETPLAN_INLINE std::int64_t running_set::next_boundary(double now_s) const {
  if (!busy() || !is_over(boundary_s_, now_s)) return 0;
  const double since_s = now_s - boundary_s_;
  double steps = since_s / each_s();
  if (tokens_ && times_->cached_s() > 0) {  // the root of a k^2 + b k = since_s
    const double a = times_->cached_s() * static_cast<double>(set_.size()) / 2;
    const double b = each_s() + times_->cached_s() * tokens_->cached - a;
    steps = 2 * since_s / (b + std::sqrt(b * b + 4 * a * std::max(0.0, since_s)));
  }
  auto k = static_cast<std::int64_t>(std::floor(steps));
  while (!is_over(boundary_s(k), now_s)) --k;  // corrects a rounded quotient
  while (is_over(boundary_s(k), now_s)) ++k;
  return k;
}

HETPLAN_INLINE void running_set::advance(double now_s, const request_stream& all, ended_requests& out) {
  for (;;) {
    const auto k = next_change();
    if (k == never || !is_over(boundary_s(k), now_s)) return;
    change(k, all, out);
  }
}

HETPLAN_INLINE void running_set::change(std::int64_t steps, const request_stream& all, ended_requests& out) {
  boundary_s_ = boundary_s(steps);
  steps_done_ += steps;
  looks_ = never;
  if (tokens_) {
    tokens_->cached += static_cast<double>(steps) * static_cast<double>(set_.size());
    read_prompts(steps, all);
  }
  while (!set_.empty() && set_.first().leaves <= steps_done_) {
    const auto m = set_.pop();
    const auto& r = all[m.number];
    const double between_s = r.length > 1 ? (boundary_s_ - m.first_s) / (static_cast<double>(r.length) - 1) : -1;
    out.emplace_back(m.number, ended_request::how::done, boundary_s_, 1, m.first_s, between_s);
    ++done_;
    if (!tokens_) continue;
    tokens_->cached -= tokens_of(r);
    tokens_->reserved -= tokens_of(r);
  }
  let_in(all, out);
  if (times_->chunk() > 0) plan_prompts();
}

HETPLAN_INLINE void running_set::read_prompts(std::int64_t steps, const request_stream& all) {
  auto& t = *tokens_;
  if (t.prompts.empty() || steps == 0) return;
  for (; t.whole > 0; --t.whole) {
    const auto [number, left] = t.prompts.front();
    t.prompts.pop_front();
    t.unread -= left;
    set_.push({steps_done_ + static_cast<std::int64_t>(all[number].length) - 1, number, boundary_s_});
    t.cached += static_cast<double>(all[number].tokens_in) + 1;
  }
  if (t.part == 0) return;
  const double read = static_cast<double>(steps) * t.part;
  t.prompts.front().left -= read;
  t.unread -= read;
}

HETPLAN_INLINE void running_set::plan_prompts() {
  auto& t = *tokens_;
  t.alike = never;
  t.whole = 0;
  t.part = 0;
  if (t.prompts.empty()) return;
  const double chunk = times_->chunk();
  double left = chunk;
  for (const auto& p : t.prompts) {
    if (p.left > left) {
      t.part = left;
      break;
    }
    left -= p.left;
    ++t.whole;
  }
  if (t.part > 0) left = 0;
  // Chunks of one prompt alone are alike, up to its last.
  t.alike = t.whole > 0 ? 1 : static_cast<std::int64_t>(std::ceil(t.prompts.front().left / chunk)) - 1;
  const double tokens = chunk - left;
  const int parts = static_cast<int>(t.whole) + (t.part > 0 ? 1 : 0);
  t.each_s = set_.empty() ? times_->pass_s(parts, tokens) : times_->step_s(static_cast<int>(set_.size())) + times_->riding_s(tokens);
}

HETPLAN_INLINE void running_set::let_in(const request_stream& all, ended_requests& out) {
  std::vector<request_number> joined;
  double tokens_in = 0;
  while (!line_.empty() && members() + joined.size() < static_cast<std::size_t>(times_->batch())) {
    const auto number = line_[0];
    const auto& r = all[number];
    if (tokens_ && tokens_->reserved + tokens_of(r) > times_->cache_tokens()) break;  // first come, first served
    line_.pop();
    if (is_over(all.arrival_s(number) + times_->begin_within_s(), boundary_s_)) {
      out.emplace_back(number, ended_request::how::timed_out, boundary_s_, 0);
      continue;
    }
    if (tokens_) tokens_->reserved += tokens_of(r);
    if (times_->chunk() > 0) {
      tokens_->prompts.push_back({number, static_cast<double>(r.tokens_in)});
      tokens_->unread += static_cast<double>(r.tokens_in);
      continue;
    }
    joined.push_back(number);
    tokens_in += static_cast<double>(r.tokens_in);
  }
  if (joined.empty()) return;
  boundary_s_ += times_->pass_s(static_cast<int>(joined.size()), tokens_in);
  looks_ = 0;
  for (const auto number : joined) set_.push({steps_done_ + static_cast<std::int64_t>(all[number].length) - 1, number, boundary_s_});
  if (tokens_) tokens_->cached += tokens_in + static_cast<double>(joined.size());
}

HETPLAN_INLINE void running_set::join(request_number r, double now_s, const request_stream& all, ended_requests& out) {
  if (!can_hold(all[r])) {
    out.emplace_back(r, ended_request::how::refused, now_s, 0);
    return;
  }
  line_.push(r);
  if (!busy()) {
    if (!is_over(boundary_s_, now_s)) return;  // still loading
    boundary_s_ = now_s;
    change(0, all, out);
  } else if (line_.size() == 1) {
    looks_ = next_boundary(now_s);
  }
}

HETPLAN_INLINE double running_set::expected_start_s(double now_s, double there_s, std::size_t coming) const {
  const double next_s = std::max(there_s, !busy() ? boundary_s_ : boundary_s(next_boundary(now_s)));
  const auto batch = times_->typical_batch();
  const auto free = static_cast<std::int64_t>(batch) - static_cast<std::int64_t>(members());
  const auto late = static_cast<std::int64_t>(line_.size() + coming) + 1 - free;
  if (late <= 0) return next_s;
  return next_s + static_cast<double>(late) * times_->typical_in_set_s(batch) / static_cast<double>(batch);
}

HETPLAN_INLINE double running_set::expected_end_s(double now_s, double there_s, std::size_t coming) const {
  const auto after = std::min(static_cast<std::size_t>(times_->typical_batch()), members() + line_.size() + coming + 1);
  const int together = static_cast<int>(after);
  const double start_s = expected_start_s(now_s, there_s, coming);
  const double end_s = start_s + times_->typical_in_set_s(together);
  if (!times_->limits_first()) return end_s;
  const double read_s = times_->chunk() > 0 ? times_->typical_read_s(together, unread_tokens(now_s)) : times_->pass_one_s();
  return times_->end_with_first(end_s, start_s + read_s);
}

HETPLAN_INLINE double running_set::unread_tokens(double now_s) const {
  if (tokens_->prompts.empty()) return 0;
  return tokens_->unread - static_cast<double>(std::max<std::int64_t>(0, next_boundary(now_s) - 1)) * tokens_->part;
}

HETPLAN_INLINE void running_set::fail(double now_s, ended_requests& out) {
  for (const auto& m : set_) out.emplace_back(m.number, ended_request::how::failed, now_s, 0);
  set_.clear();
  if (!tokens_) return;
  for (const auto& p : tokens_->prompts) out.emplace_back(p.number, ended_request::how::failed, now_s, 0);
  *tokens_ = {};
}

HETPLAN_INLINE void batch_queue::play(double now_s, const request_stream& all, ended_requests& out) {
  for (;;) {
    const bool takes = !line_.empty() && is_over(take_s_, now_s);
    if (size_ > 0 && is_over(end_s_, takes ? take_s_ : now_s)) {
      end_first(all, out);
    } else if (takes) {
      take_batch(all, out);
    } else {
      return;
    }
  }
}

HETPLAN_INLINE void batch_queue::take_batch(const request_stream& all, ended_requests& out) {
  std::size_t size = 0;
  double tokens_in = 0;
  double tokens_out = 1;
  while (!line_.empty() && size < static_cast<std::size_t>(times_->batch())) {
    const auto number = line_[0];
    line_.pop();
    const auto& r = all[number];
    if (is_over(all.arrival_s(number) + times_->begin_within_s(), take_s_)) {
      out.emplace_back(number, ended_request::how::timed_out, take_s_, 0);
      continue;
    }
    computing_.push(number);
    ++size;
    if (times_->generates()) {
      tokens_in += static_cast<double>(r.tokens_in);
      tokens_out = std::max(tokens_out, static_cast<double>(r.length));
    }
  }
  if (size == 0) return;
  const int requests = static_cast<int>(size);
  double duration_s = times_->pass_s(requests, tokens_in);
  if (tokens_out > 1) duration_s += times_->steps_s(requests, tokens_in, tokens_out - 1);
  const double end_s = take_s_ + duration_s;
  if (size_ == 0) {
    end_s_ = end_s;
    size_ = size;
  } else {
    if (!behind_) behind_ = std::make_unique<std::deque<batch_under_way>>();
    const double before_s = behind_->empty() ? end_s_ : behind_->back().end_s;
    behind_->push_back({std::max(end_s, before_s), size});  // batches in a pipeline do not overtake
  }
  take_s_ += times_->stages() == 1 ? duration_s : duration_s / static_cast<double>(times_->stages());
}

HETPLAN_INLINE void batch_queue::end_first(const request_stream& all, ended_requests& out) {
  if (times_->generates()) {
    const int requests = static_cast<int>(size_);
    double tokens_in = 0;
    double tokens_out = 1;
    for (std::size_t k = 0; k < size_; ++k) {
      tokens_in += static_cast<double>(all[computing_[k]].tokens_in);
      tokens_out = std::max(tokens_out, static_cast<double>(all[computing_[k]].length));
    }
    const double first_s = end_s_ - (tokens_out > 1 ? times_->steps_s(requests, tokens_in, tokens_out - 1) : 0);
    for (std::size_t k = 0; k < size_; ++k) {
      const double steps = static_cast<double>(all[computing_[k]].length) - 1;
      const double between_s = steps > 0 ? times_->steps_s(requests, tokens_in, steps) / steps : -1;
      out.emplace_back(computing_[k], ended_request::how::done, end_s_, 1, first_s, between_s);
    }
  } else {
    for (std::size_t k = 0; k < size_; ++k) out.emplace_back(computing_[k], ended_request::how::done, end_s_, 1);
  }
  computing_.pop(size_);
  done_ += size_;
  size_ = 0;
  if (!behind_ || behind_->empty()) return;
  end_s_ = behind_->front().end_s;
  size_ = behind_->front().size;
  behind_->pop_front();
}

HETPLAN_INLINE std::vector<request_number> batch_queue::send_back() { return line_.take_all(); }

HETPLAN_INLINE void batch_queue::fail(double now_s, ended_requests& out) {
  for (const auto number : computing_.take_all()) out.emplace_back(number, ended_request::how::failed, now_s, 0);
  size_ = 0;
  behind_.reset();
}

}  // namespace hetplan::serve
