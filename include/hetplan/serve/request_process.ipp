// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/request_process.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace hetplan::serve {

HETPLAN_INLINE request_stream::request_stream(std::vector<request> requests) : requests_(std::move(requests)) {
  if (requests_.size() >= std::numeric_limits<std::uint32_t>::max())
    throw invalid_input("request_stream: " + std::to_string(requests_.size()) + " requests; expected fewer than 2^32 - 1");
  double before_s = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const auto& r = requests_[i];
    const auto refuse = [i](const std::string& what) { throw invalid_input("request_stream: request " + std::to_string(i) + ": " + what); };
    if (!std::isfinite(r.arrival_s) || r.arrival_s < 0) refuse("arrival = " + to_text(r.arrival_s) + " s; expected a finite time >= 0");
    if (r.arrival_s < before_s)
      refuse("arrival = " + to_text(r.arrival_s) + " s, before the " + to_text(before_s) +
             " s of the one before it; expected ascending times");
    if (!r.service.valid() || !r.server.valid()) refuse("names no service or no server");
    if (r.length == 0) refuse("length = 0; expected at least one token or frame");
    before_s = r.arrival_s;
  }
}

HETPLAN_INLINE std::span<const request> request_stream::between(seconds from, seconds to) const {
  const auto since_s = [this](const request& r) { return since_first_s(r.arrival_s); };
  const auto first = std::ranges::lower_bound(requests_, from.value(), {}, since_s);
  const auto last = std::ranges::lower_bound(first, requests_.end(), to.value(), {}, since_s);
  return {first, last};
}

HETPLAN_INLINE void validate(const request_stream& requests, const edge_cloud& cloud, const std::vector<service>& services) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto& r = requests[i];
    if (r.service.index() >= services.size())
      throw invalid_input("request " + std::to_string(i) + ": service " + std::to_string(r.service.value) + "; there are " +
                          std::to_string(services.size()));
    if (r.server.index() >= cloud.size())
      throw invalid_input("request " + std::to_string(i) + ": server " + std::to_string(r.server.value) + "; cloud \"" + cloud.name +
                          "\" has " + std::to_string(cloud.size()));
  }
}

namespace detail {

[[nodiscard]] HETPLAN_INLINE request_length typical_length(const service& s) {
  return {s.generates ? rounded_count(s.tokens.in, 0) : 0, rounded_count(s.typical_length(), 1)};
}

/// The gaps between the requests at one server for one service.
class gap_source {
 public:
  gap_source(const request_rate& rate, std::uint64_t seed)
      : seed_(seed), mean_s_(1 / rate.per_s), cv_(rate.cv), shape_(rate.cv > 0 ? 1 / (rate.cv * rate.cv) : 0) {}

  [[nodiscard]] double next() {
    if (cv_ == 0) return mean_s_;
    if (cv_ == 1) return -std::log(1 - uniform()) * mean_s_;
    return gamma(shape_) * (mean_s_ / shape_);
  }
  /// Returns the time from a random instant to the next arrival: it falls into a gap in proportion to its length, and anywhere in it.
  [[nodiscard]] double first() {
    if (cv_ == 1) return next();
    const double gap = cv_ == 0 ? mean_s_ : gamma(shape_ + 1) * (mean_s_ / shape_);
    return uniform() * gap;
  }

 private:
  [[nodiscard]] double uniform() { return draw(seed_, drawn_++, 0); }

  /// Returns a normal number by the polar method of Marsaglia, without a sine.
  [[nodiscard]] double normal() {
    for (;;) {
      const double x = 2 * uniform() - 1;
      const double y = 2 * uniform() - 1;
      const double square = x * x + y * y;
      if (square < 1 && square > 0) return x * std::sqrt(-2 * std::log(square) / square);
    }
  }

  /// Returns a gamma number: Marsaglia and Tsang, "A simple method for generating gamma variables", section 2 (below shape 1: 6).
  [[nodiscard]] double gamma(double shape) {
    if (shape < 1) {
      const double larger = gamma(shape + 1);
      return larger * std::pow(uniform(), 1 / shape);
    }
    const double d = shape - 1.0 / 3;
    const double c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = normal();
      const double root = 1 + c * x;
      if (root <= 0) continue;
      const double v = root * root * root;
      if (std::log(1 - uniform()) < x * x / 2 + d * (1 - v + std::log(v))) return d * v;
    }
  }

  std::uint64_t seed_;
  double mean_s_, cv_, shape_;
  std::uint64_t drawn_ = 0;
};

}  // namespace detail

HETPLAN_INLINE void validate(const request_process& process, const edge_cloud& cloud, const std::vector<service>& services) {
  const double duration_s = process.duration.value();
  if (!std::isfinite(duration_s) || duration_s < 0)
    throw invalid_input("request_process: duration = " + to_text(duration_s) + " s; expected a finite time >= 0");
  std::set<std::pair<std::size_t, std::size_t>> known;
  double expected = 0;
  for (std::size_t i = 0; i < process.rates.size(); ++i) {
    const auto& r = process.rates[i];
    const auto refuse = [i](const std::string& what) { throw invalid_input("request_process: rate " + std::to_string(i) + ": " + what); };
    if (!r.service.valid() || r.service.index() >= services.size())
      refuse("service " + std::to_string(r.service.value) + "; there are " + std::to_string(services.size()));
    if (!r.server.valid() || r.server.index() >= cloud.size())
      refuse("server " + std::to_string(r.server.value) + "; there are " + std::to_string(cloud.size()));
    if (!known.emplace(r.service.index(), r.server.index()).second)
      refuse("service " + std::to_string(r.service.value) + " at server " + std::to_string(r.server.value) + " again; expected it once");
    if (!std::isfinite(r.per_s) || r.per_s < 0) refuse("per_s = " + to_text(r.per_s) + "; expected a finite number >= 0");
    if (r.cv != 0 && !(r.cv >= 0.001 && r.cv <= 100)) refuse("cv = " + to_text(r.cv) + "; expected 0, or 0.001 to 100");
    expected += r.per_s * duration_s;
  }
  if (!(expected < std::numeric_limits<std::uint32_t>::max() - 1.0))
    throw invalid_input("request_process: " + to_text(expected) + " requests on average; expected fewer than 2^32 - 2");
  for (std::size_t s = 0; s < process.lengths.size(); ++s) {
    const auto refuse = [s](const std::string& what) {
      throw invalid_input("request_process: lengths of service " + std::to_string(s) + ": " + what);
    };
    if (process.lengths[s].empty()) continue;
    if (s >= services.size()) refuse("there are " + std::to_string(services.size()) + " services");
    if (!services[s].generates && !services[s].is_stream()) refuse("it has neither tokens nor frames");
    if (std::ranges::any_of(process.lengths[s], [](const request_length& l) { return l.length == 0; }))
      refuse("0; expected at least one token or frame");
  }
}

HETPLAN_INLINE request_stream draw_requests(const request_process& process, const edge_cloud& cloud, const std::vector<service>& services,
                                            std::uint64_t seed) {
  validate(process, cloud, services);
  std::vector<request> all;
  for (const auto& r : process.rates) {
    if (r.per_s == 0) continue;
    const std::uint64_t where = (std::uint64_t{r.service.index()} << 32) + r.server.index();
    // Handlers never use the last turn.
    const auto own_seed = static_cast<std::uint64_t>(draw(seed, where, 63) * 0x1p53);
    const auto s = r.service.index();
    std::vector<request_length> lengths{detail::typical_length(services[s])};
    if (s < process.lengths.size() && !process.lengths[s].empty()) lengths = process.lengths[s];
    detail::gap_source gaps(r, own_seed);
    double at_s = gaps.first();
    for (std::uint64_t i = 0; at_s < process.duration.value(); ++i, at_s += gaps.next()) {
      const auto& l = lengths[static_cast<std::size_t>(draw(own_seed, i, 1) * static_cast<double>(lengths.size()))];
      all.push_back({at_s, r.service, r.server, l.tokens_in, l.length});
    }
  }
  std::ranges::stable_sort(all, {}, &request::arrival_s);
  return request_stream(std::move(all));
}

}  // namespace hetplan::serve
