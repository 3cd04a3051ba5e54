// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/microbatch_adapter.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <tuple>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/simulate/dispatch.hpp>
#include <hetplan/tasks/expand.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE double pipeline_time_s(std::span<const pass_time> parts, long long samples, double pass_samples) {
  double sum = 0, most = 0;
  for (const pass_time& t : parts) {
    sum += t.of(pass_samples);
    most = std::max(most, t.of(pass_samples));
  }
  return sum + (static_cast<double>(samples) / pass_samples - 1) * most;
}

HETPLAN_INLINE double best_pass_size(std::span<const pass_time> parts, long long samples) {
  const auto all = static_cast<double>(samples);
  double sum_s = 0, best = all;
  for (const pass_time& t : parts) sum_s += t.each_s;
  const auto offer = [&](double size) {
    if (std::isnan(size)) return;
    size = std::clamp(size, 1.0, std::max(all, 1.0));
    if (pipeline_time_s(parts, samples, size) < pipeline_time_s(parts, samples, best)) best = size;
  };
  for (auto it = parts.begin(); it != parts.end(); ++it) {
    offer(std::sqrt(all * it->fixed_s / (sum_s - it->each_s)));
    for (auto other = parts.begin(); other != it; ++other) offer((other->fixed_s - it->fixed_s) / (it->each_s - other->each_s));
  }
  return best;
}

HETPLAN_INLINE int most_halvings(const stage& s, int size, long long samples) {
  const auto whole = [&](long long n) {
    return std::all_of(s.devices.begin(), s.devices.end(), [&](const assignment& a) { return a.samples * n % size == 0; });
  };
  int times = 0;
  for (; samples % 2 == 0 && whole(samples / 2); samples /= 2) ++times;
  return times;
}

HETPLAN_INLINE plan split_passes(plan p, const planning_graph& model, std::span<const pass_halvings> by_stage) {
  const stage_graph g = make_stage_graph(p, model);
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    stage& s = p.stages[i];
    const pass_halvings& how = by_stage[i];
    if (how == pass_halvings{}) continue;
    const int size = p.size_of(s);
    const auto boundaries = [&](phase what, const auto& times) {
      std::vector<long long> cuts{0};
      for (int k = 0; k < g.nodes[i].passes(what); ++k) {
        const auto [first, last] = g.nodes[i].samples(what, k);
        const long long parts = 1LL << std::min(times(first), most_halvings(s, size, last - first));
        for (long long n = 1; n <= parts; ++n) cuts.push_back(first + (last - first) / parts * n);
      }
      return cuts;
    };
    const bool training = p.workload.mode == mode::training;
    pass_cuts cuts;
    if (training && s.rows() > 1) {
      if (s.cuts.forward != s.cuts.backward) continue;
      const int both = std::max(how.forward, how.backward);
      cuts.forward = cuts.backward = boundaries(phase::forward, [&](long long first) { return both + (how.fill && first == 0 ? 1 : 0); });
    } else {
      cuts.forward = boundaries(phase::forward, [&](long long first) { return how.forward + (how.fill && first == 0 ? 1 : 0); });
      if (training) {
        cuts.backward =
            boundaries(phase::backward_input, [&](long long first) { return how.backward + (first >= how.drain_from ? 1 : 0); });
      }
    }
    s.cuts = std::move(cuts);
  }
  return p;
}

HETPLAN_INLINE iteration_load load_of(const stage_costs& s) {
  const tasks::task_graph g = tasks::expand(s);
  const std::size_t stages = s.plan.stages.size();
  iteration_load all;
  for (const phase what : {phase::forward, phase::backward_input}) {
    std::map<std::pair<std::size_t, device_id>, double> time_s;  // by stage and device
    for (const tasks::compute_task& t : g.computes) {
      const bool forward = t.what == phase::forward;
      if (t.what != phase::optimizer_step && forward == (what == phase::forward)) time_s[{t.stage.index(), t.device}] += t.duration_s;
    }
    std::vector<double> slowest_s(stages, 0);
    for (const auto& [at, each_s] : time_s) slowest_s[at.first] = std::max(slowest_s[at.first], each_s);
    (what == phase::forward ? all.forward_s : all.backward_s) = slowest_s;
    std::vector<int>& passes = what == phase::forward ? all.forwards : all.backwards;
    for (const stage_graph::node& n : s.graph.nodes) passes.push_back(n.passes(what));
  }

  struct message {
    double latency_s = 0;
    std::map<resource_id, double> work_bytes;
  };
  std::map<std::tuple<transfer_kind, stage_id, stage_id>, std::map<int, message>> links;
  for (const tasks::transfer& t : g.transfers) {
    if (t.kind != transfer_kind::forward && t.kind != transfer_kind::backward) continue;
    message& m = links[{t.kind, t.from_stage, t.to_stage}][t.microbatch];
    m.latency_s = std::max(m.latency_s, t.latency_s);
    for (const resource_use& u : g.routes[t.route].via) m.work_bytes[u.resource] += u.weight * t.volume_bytes;
  }
  for (const auto& [name, messages] : links) {
    const auto& [kind, from, to] = name;
    link_load l{kind, from, to, std::ssize(messages), 0, (kind == transfer_kind::forward ? all.forward_s : all.backward_s)[to.index()]};
    for (const auto& [pass, m] : messages) {
      double longest_s = 0;
      for (const auto& [r, work] : m.work_bytes) longest_s = std::max(longest_s, work / s.cluster.network()[r].capacity.value());
      l.comm_s += m.latency_s + longest_s;
    }
    all.links.push_back(l);
  }
  return all;
}

HETPLAN_INLINE void message_window::add(double comm_s, double comp_s, long long messages) {
  if (messages <= 0) return;
  last_.push_back({comm_s, comp_s, messages});
  held_ += messages;
  fresh_ = std::min(length_, fresh_ + std::min(messages, length_));
  while (held_ - last_.front().messages >= length_) {
    held_ -= last_.front().messages;
    last_.pop_front();
  }
}

HETPLAN_INLINE double message_window::ratio() const {
  double comm_s = 0, comp_s = 0;
  long long left = length_;
  for (auto it = last_.rbegin(); it != last_.rend() && left > 0; ++it) {
    const auto n = static_cast<double>(std::min(left, it->messages));
    comm_s += n * it->comm_s;
    comp_s += n * it->comp_s;
    left -= it->messages;
  }
  if (comm_s <= 0) return 0;
  return comp_s > 0 ? comm_s / comp_s : std::numeric_limits<double>::infinity();
}

namespace detail {

HETPLAN_INLINE microbatch_options checked(const microbatch_options& o) {
  const auto require = [](bool ok, const char* option, double given, const std::string& expected) {
    if (!ok) throw invalid_input(std::string("microbatch_adapter: ") + option + " = " + to_text(given) + "; expected " + expected);
  };
  require(std::isfinite(o.halve_above) && o.halve_above > 0, "halve_above", o.halve_above, "a finite number > 0");
  require(o.double_below >= 0 && o.double_below <= o.halve_above, "double_below", o.double_below,
          "a number from 0 to halve_above = " + to_text(o.halve_above));
  require(o.window >= 1 && o.window <= 1'000'000, "window", static_cast<double>(o.window), "1 to 1000000 messages");
  require(o.most_halvings >= 0 && o.most_halvings <= 20, "most_halvings", o.most_halvings, "0 to 20");
  require(o.thinking >= seconds{} && o.thinking <= longest_timeline, "thinking", o.thinking.value(),
          "seconds from 0 to " + to_text(longest_timeline.value()));
  require(o.most_plans >= 8, "most_plans", static_cast<double>(o.most_plans), "at least 8");
  return o;
}

/// Returns the first sample of the backward passes behind a stage's last forward.
HETPLAN_INLINE long long drained_from(const plan& ordered, const stage_graph& g, std::size_t s) {
  const auto& order = ordered.schedule.orders[ordered.stages[s].devices.front().device.index()];
  long long first = 0;
  for (auto e = order.rbegin(); e != order.rend(); ++e) {
    if (e->stage.index() != s || e->what == phase::backward_weight) continue;
    if (e->what == phase::forward) return first;
    first = g.nodes[s].samples(phase::backward_input, e->microbatch).first;
  }
  return first;
}

}  // namespace detail

HETPLAN_INLINE microbatch_adapter::microbatch_adapter(const planning_problem& problem, plan first, microbatch_options options)
    : problem_(&problem), first_(std::move(first)), options_(detail::checked(options)), known_(problem) {
  const bool training = first_.workload.mode == mode::training;
  if (first_.workload.mode == mode::generation)
    throw invalid_input("microbatch_adapter: a plan for generation, which knows no cuts; expected training or inference");
  dispatches_ = first_.schedule.kind == schedule_kind::explicit_orders || (training && first_.schedule.kind == schedule_kind::one_f_one_b);
  for (const stage& s : first_.stages) {
    if (dispatches_ && (s.shard == sharding::zero2 || s.shard == sharding::fsdp))
      throw invalid_input("microbatch_adapter: stage \"" + escaped(s.name) +
                          "\" shares out gradients or weights, and orders for such stages cannot be made anew; expected GPipe");
  }
  for (const auto& order : first_.schedule.orders) {
    splits_backward_ |= std::any_of(order.begin(), order.end(), [](const order_entry& e) { return e.what == phase::backward_weight; });
  }
  const stage_costs s(problem, first_);
  for (const link_load& l : load_of(s).links) {
    watched_link w{.name = l, .window = message_window(options_.window)};
    for (const stage_id end : {l.from, l.to}) {
      const stage_graph::node& n = s.graph[end];
      const phase what = l.kind == transfer_kind::forward ? phase::forward : phase::backward_input;
      for (int k = 0; k < n.passes(what); ++k) {
        const auto [from, to] = n.samples(what, k);
        w.most_halvings = std::max(w.most_halvings, most_halvings(first_[end], first_.size_of(first_[end]), to - from));
      }
    }
    w.most_halvings = std::min(w.most_halvings, options_.most_halvings);
    links_.push_back(std::move(w));
  }
  running_.halved.assign(links_.size(), 0);
}

HETPLAN_INLINE reaction microbatch_adapter::react(const situation& s) {
  if (s.running == nullptr) return {.next = first_, .ask_again = s.now};
  if (!s.can_run) return {};
  watch(s);
  const std::optional<sizes> wanted = decide();
  if (!wanted) return {.ask_again = next_question(s)};

  known_.forget(options_.most_plans);
  const conditions alike = rounded(*seen_, problem_->cluster);
  const present_problem there(*problem_, alike, s.wanted);
  std::vector<double> moment = alike.speed;
  for (const bytes_per_second c : alike.capacity) moment.push_back(c.value());
  std::vector<sizes> proposed{*wanted};
  if (options_.judged) {
    if (wanted->drain) proposed.push_back({wanted->halved, wanted->fill, false});
    proposed.push_back({std::vector<int>(links_.size(), 0), false, false});
    if (auto z = closed_form(s, there, moment)) proposed.push_back(std::move(*z));
  }
  const goal best_for(problem_->job, s);
  std::optional<std::pair<sizes, std::size_t>> best;
  serving least;
  const auto offer = [&](const sizes& z, const plan& p) {
    const std::size_t i = known_.add(p);
    const serving served = known_.serves(best_for, i, s.noticed, s.traffic);
    if (best && !served.beats(least)) return;
    best = {z, i};
    least = served;
  };
  if (options_.judged) offer(running_, *s.running);
  for (const sizes& z : proposed) {
    for (const plan& p : plans_of(z, there, moment)) offer(z, p);
  }
  if (!best || known_[best->second] == *s.running) return {.ask_again = next_question(s), .cancel = s.coming != nullptr};
  coming_ = candidate{best->first, known_[best->second]};
  return {.next = coming_->plan,
          .reached = rung::network,
          .thinking = options_.thinking,
          .answers = std::min(since_, s.now),
          .ask_again = s.now + options_.thinking,
          .reason = text_of(coming_->of)};
}

HETPLAN_INLINE iteration_load microbatch_adapter::load_under(const conditions& now, const situation& s, const plan& p) const {
  const present_problem there(*problem_, now, s.wanted);
  const plan inside = there.inside(p);
  return load_of(stage_costs(*there, inside));
}

/// Counts the messages since the last call.
HETPLAN_INLINE void microbatch_adapter::watch(const situation& s) {
  const bool adopted = coming_ && *s.running == coming_->plan;
  if (adopted) running_ = coming_->of;
  if (adopted || s.coming == nullptr) coming_.reset();
  conditions now = offered(s.noticed, s.traffic, problem_->cluster.network());
  const bool changed = adopted || !seen_ || now != *seen_;
  if (!seen_) {
    seen_ = now;
    load_ = load_under(now, s, *s.running);
  } else if (adopted) {
    load_ = load_under(*seen_, s, *s.running);
  }
  const long long iterations = std::max(0LL, s.done - std::exchange(done_, s.done));
  for (watched_link& w : links_) {
    const auto l = std::find_if(load_.links.begin(), load_.links.end(),
                                [&](const link_load& x) { return x.kind == w.name.kind && x.from == w.name.from && x.to == w.name.to; });
    if (l == load_.links.end()) continue;
    const auto n = static_cast<double>(l->messages);
    w.window.add(l->comm_s / n, l->comp_s / n, iterations * l->messages);
    w.under_this += iterations * l->messages;
    w.name.messages = l->messages;
  }
  if (!changed) return;
  if (now != *seen_) {
    since_ = s.since;
    load_ = load_under(now, s, *s.running);
    seen_ = std::move(now);
  }
  for (watched_link& w : links_) {
    w.under_this = 0;
    w.settled = false;
  }
}

/// Applies the rule to the links with a full window; empty if there is none.
HETPLAN_INLINE std::optional<microbatch_adapter::sizes> microbatch_adapter::decide() {
  sizes next = running_;
  bool any = false;
  for (std::size_t l = 0; l < links_.size(); ++l) {
    watched_link& w = links_[l];
    if (!w.window.is_full()) continue;
    any = true;
    w.settled = w.settled || w.under_this >= options_.window;
    const double ratio = w.window.ratio();
    w.poor = ratio > options_.halve_above;
    if (w.poor) next.halved[l] = std::min(next.halved[l] + 1, w.most_halvings);
    else if (ratio < options_.double_below) next.halved[l] = std::max(next.halved[l] - 1, 0);
    w.window.restart();
  }
  if (!any) return std::nullopt;
  next.fill = options_.fill && std::any_of(links_.begin(), links_.end(), [](const watched_link& w) { return w.poor; });
  next.drain = options_.drain && first_.workload.mode == mode::training;
  return next;
}

/// Returns when the next window is full among links without a whole window under current conditions.
HETPLAN_INLINE std::optional<seconds> microbatch_adapter::next_question(const situation& s) const {
  std::optional<seconds> next;
  for (const watched_link& w : links_) {
    if (w.settled || w.name.messages == 0) continue;
    const long long iterations = (w.window.missing() + w.name.messages - 1) / w.name.messages;
    const bool known = w.under_this > 0;  // the duration of an iteration; otherwise asks after one
    const seconds then = s.now + (known ? static_cast<double>(iterations) * s.response.value_or(seconds{}) : seconds{});
    if (!next || then < *next) next = std::min(then, s.now + longest_timeline);
  }
  return next;
}

/// Returns the halvings of each stage: those of its slowest link.
HETPLAN_INLINE std::vector<pass_halvings> microbatch_adapter::halvings(const sizes& z) const {
  std::vector<pass_halvings> by_stage(first_.stages.size());
  for (std::size_t l = 0; l < links_.size(); ++l) {
    for (const stage_id end : {links_[l].name.from, links_[l].name.to}) {
      pass_halvings& h = by_stage[end.index()];
      int& times = links_[l].name.kind == transfer_kind::forward ? h.forward : h.backward;
      times = std::max(times, z.halved[l]);
    }
  }
  for (pass_halvings& h : by_stage) h.fill = z.fill;
  return by_stage;
}

HETPLAN_INLINE const std::vector<plan>& microbatch_adapter::plans_of(const sizes& z, const present_problem& there,
                                                                     const std::vector<double>& moment) {
  if (made_.size() >= 4 * options_.most_plans) made_.clear();
  const auto [it, is_new] = made_.try_emplace({z, moment});
  if (is_new) it->second = made(z, there);
  return it->second;
}

HETPLAN_INLINE std::vector<plan> microbatch_adapter::made(const sizes& z, const present_problem& there) const {
  std::vector<pass_halvings> by_stage = halvings(z);
  if (!z.drain && std::all_of(by_stage.begin(), by_stage.end(), [](const pass_halvings& h) { return h == pass_halvings{}; }))
    return {first_};
  plan unordered = first_;
  unordered.schedule.transfers.clear();
  if (!dispatches_) {
    for (pass_halvings& h : by_stage) h.drain_from = z.drain ? 0 : h.drain_from;
    return {split_passes(std::move(unordered), problem_->model, by_stage)};
  }
  const auto ordered = [&](const auto& policy) -> std::optional<plan> {
    const auto by = [&](const std::vector<pass_halvings>& how) {
      return there.outside(
          dispatch(there.inside(split_passes(unordered, problem_->model, how)), *there, policy, {.split_backward = splits_backward_}));
    };
    try {
      plan p = by(by_stage);
      if (!z.drain) return p;
      const stage_graph g = make_stage_graph(p, problem_->model);
      std::vector<pass_halvings> drained = by_stage;
      for (std::size_t i = 0; i < drained.size(); ++i) drained[i].drain_from = detail::drained_from(p, g, i);
      return by(drained);
    } catch (const invalid_input&) {
      return std::nullopt;  // no memory for one microbatch per stage, or a deadlock between stages of a device
    }
  };
  std::vector<plan> all;
  if (auto p = ordered(compact{})) all.push_back(std::move(*p));
  if (auto p = ordered(eager{})) all.push_back(std::move(*p));
  return all;
}

/// Returns the best sizes for stages and links in a line, separately for forward and backward, from planned and halved passes.
HETPLAN_INLINE std::optional<microbatch_adapter::sizes> microbatch_adapter::closed_form(const situation& s, const present_problem& there,
                                                                                        const std::vector<double>& moment) {
  sizes z{std::vector<int>(links_.size(), 1), false, false};
  const std::vector<plan>& halves = plans_of(z, there, moment);
  if (halves.empty()) return std::nullopt;
  const iteration_load whole = load_under(*seen_, s, first_), half = load_under(*seen_, s, halves.front());
  const auto part = [](double whole_s, double half_s, long long whole_passes, long long half_passes, double samples) {
    const auto more = static_cast<double>(half_passes - whole_passes);
    const double fixed_s = more > 0 ? std::max(0.0, (half_s - whole_s) / more) : 0;
    return pass_time{fixed_s, std::max(0.0, whole_s - fixed_s * static_cast<double>(whole_passes)) / samples};
  };
  for (int q = 0; q < static_cast<int>(first_.pipeline_count()); ++q) {
    const long long samples = first_.pipeline_samples(q);
    const auto n = static_cast<double>(samples);
    for (const transfer_kind kind : {transfer_kind::forward, transfer_kind::backward}) {
      const bool forward = kind == transfer_kind::forward;
      std::vector<pass_time> parts;
      for (std::size_t i = 0; i < first_.stages.size(); ++i) {
        if (first_.stages[i].pipeline != q) continue;
        if (forward) parts.push_back(part(whole.forward_s[i], half.forward_s[i], whole.forwards[i], half.forwards[i], n));
        else parts.push_back(part(whole.backward_s[i], half.backward_s[i], whole.backwards[i], half.backwards[i], n));
      }
      for (std::size_t l = 0; l < std::min(whole.links.size(), half.links.size()); ++l) {
        const link_load &a = whole.links[l], &b = half.links[l];
        if (a.kind == kind && first_[a.from].pipeline == q) parts.push_back(part(a.comm_s, b.comm_s, a.messages, b.messages, n));
      }
      const double best = best_pass_size(parts, samples);
      for (std::size_t l = 0; l < links_.size(); ++l) {
        const link_load& name = links_[l].name;
        if (name.kind != kind || first_[name.from].pipeline != q) continue;
        const double planned = first_.size_of(first_[name.from]);
        int times = planned > best ? static_cast<int>(std::floor(std::log2(planned / best))) : 0;
        const auto time_s = [&](int k) { return pipeline_time_s(parts, samples, planned / static_cast<double>(1LL << k)); };
        if (planned > best && time_s(times + 1) < time_s(times)) ++times;
        z.halved[l] = std::min(times, links_[l].most_halvings);
      }
    }
  }
  return z;
}

HETPLAN_INLINE std::string microbatch_adapter::text_of(const sizes& z) const {
  std::string text;
  for (std::size_t l = 0; l < links_.size(); ++l) {
    if (z.halved[l] == 0) continue;
    const link_load& name = links_[l].name;
    text += (text.empty() ? "passes of 1/" : ", 1/") + std::to_string(1 << z.halved[l]) + " from \"" + escaped(first_[name.from].name) +
            "\" to \"" + escaped(first_[name.to].name) + "\"";
  }
  if (text.empty()) text = "passes as planned";
  if (z.fill) text += ", smaller to fill";
  if (z.drain) text += ", smaller to drain";
  return text;
}

}  // namespace hetplan::adapt
