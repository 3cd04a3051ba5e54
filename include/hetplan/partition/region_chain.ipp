// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/region_chain.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace hetplan::partition {

namespace detail {

HETPLAN_INLINE region_times region_times_of(const region_chain& chain, std::size_t region, std::size_t i, std::size_t j) {
  const std::size_t first = chain.positions[i], last = j < chain.positions.size() ? chain.positions[j] : chain.layers;
  const region_stage s = chain.stage(region, first, last);
  const std::array parts{s.forward_s, s.backward_s, s.weights_s, s.collective_s};
  if (!std::all_of(parts.begin(), parts.end(), [](double x) { return x >= 0; })) {
    throw invalid_model("region_chain: stage(region " + std::to_string(region) + ", layers [" + std::to_string(first) + ", " +
                        std::to_string(last) + ")) = {" + to_text(parts[0]) + ", " + to_text(parts[1]) + ", " + to_text(parts[2]) + ", " +
                        to_text(parts[3]) + "} s; expected numbers >= 0");
  }
  const double work_s = chain.microbatches * (s.forward_s + s.backward_s + s.weights_s) + s.collective_s;
  return {s.forward_s, work_s, s.fits && std::isfinite(work_s)};
}

HETPLAN_INLINE double checked_transfer_s(const region_chain& chain, std::size_t from, std::size_t to, std::size_t j) {
  const double seconds = chain.transfer_s(from, to, chain.positions[j]);
  if (!(seconds >= 0)) {
    throw invalid_model("region_chain: transfer_s(region " + std::to_string(from) + ", region " + std::to_string(to) + ", layer " +
                        std::to_string(chain.positions[j]) + ") = " + to_text(seconds) + " s; expected a number >= 0");
  }
  return seconds;
}

HETPLAN_INLINE void region_cost_sum::add_stage(double forward_s, double work_s) {
  seconds_ = std::max(seconds_, fill_s_ + work_s);
  forward_s_ = forward_s;
}

HETPLAN_INLINE void region_cost_sum::add_transfer(double transfer_s) {
  if (cost_ == region_cost::serial_links) seconds_ = std::max(seconds_, sent_s_ + forward_s_ + microbatches_ * transfer_s);
  sent_s_ += forward_s_ + transfer_s;
  fill_s_ += transfer_s + std::max(forward_s_, transfer_s);
}

HETPLAN_INLINE void require_region_chain(const region_chain& chain, const std::string& who) {
  const auto fail = [&](const std::string& what) { throw invalid_input(who + ": " + what); };
  if (chain.regions == 0) fail("regions = 0; expected an integer >= 1");
  if (chain.microbatches < 1) fail("microbatches = " + std::to_string(chain.microbatches) + "; expected an integer >= 1");
  const auto& p = chain.positions;
  if (p.empty() || p.front() != 0) fail("positions do not begin with 0");
  if (std::adjacent_find(p.begin(), p.end(), std::greater_equal<>()) != p.end()) fail("positions do not ascend");
  if (p.back() >= chain.layers) {
    fail("the last position, " + std::to_string(p.back()) + ", is none of " + std::to_string(chain.layers) + " layers");
  }
  if (!chain.stage || !chain.transfer_s) fail("stage and transfer_s must be callable");
}

}  // namespace detail

HETPLAN_INLINE double region_split_seconds(const region_chain& chain, const region_split& split, region_cost cost) {
  const std::string who = "region_split_seconds";
  detail::require_region_chain(chain, who);
  const std::size_t stages = split.first.size();
  if (stages == 0 || split.region.size() != stages || split.first.front() != 0) {
    throw invalid_input(who + ": expected stages from layer 0 on, each with its region");
  }
  std::vector<bool> used(chain.regions, false);
  std::vector<std::size_t> at;
  for (std::size_t s = 0; s < stages; ++s) {
    const auto position = std::lower_bound(chain.positions.begin(), chain.positions.end(), split.first[s]);
    if (position == chain.positions.end() || *position != split.first[s] || (s > 0 && split.first[s] <= split.first[s - 1])) {
      throw invalid_input(who + ": stage " + std::to_string(s) + " begins with layer " + std::to_string(split.first[s]) +
                          "; expected a position behind the stage before");
    }
    at.push_back(static_cast<std::size_t>(position - chain.positions.begin()));
    const std::size_t g = split.region[s];
    if (g >= chain.regions || used[g]) {
      throw invalid_input(who + ": stage " + std::to_string(s) + " runs in region " + std::to_string(g) + "; expected one of the " +
                          std::to_string(chain.regions) + " that runs no other");
    }
    used[g] = true;
  }
  at.push_back(chain.positions.size());
  detail::region_cost_sum sum(cost, chain.microbatches);
  for (std::size_t s = 0; s < stages; ++s) {
    const detail::region_times t = detail::region_times_of(chain, split.region[s], at[s], at[s + 1]);
    sum.add_stage(t.forward_s, t.limited_work_s());
    if (s + 1 < stages) sum.add_transfer(detail::checked_transfer_s(chain, split.region[s], split.region[s + 1], at[s + 1]));
  }
  return sum.seconds();
}

namespace detail {

class region_beam {
 public:
  region_beam(const region_chain& chain, const region_beam_options& o)
      : chain_(chain), options_(o), positions_(chain.positions.size()), random_(o.seed) {}

  region_result run() {
    make_shares();
    region_result r;
    if (options_.use == region_use::all && chain_.regions > positions_) {
      r.status = {outcome::none_found, too_many_regions()};
      return r;
    }
    std::vector<candidate> beam = starts();
    keep_best(beam);
    for (int i = 0; i < options_.iterations && !spent(); ++i) {
      const std::vector<candidate> parents = beam;
      for (const candidate& p : parents) expand(p, beam);
      keep_best(beam);
      if (beam == parents) break;
    }
    r.weighed = static_cast<long long>(seen_.size());
    const candidate& best = beam.front();
    if (best.faults > 0) {
      r.status = {outcome::none_found, "none of " + std::to_string(r.weighed) + " splits fits; the nearest has " +
                                           std::to_string(best.faults) + " stages that do not fit or links that are missing"};
      return r;
    }
    for (const place& p : best.places) {
      r.split.first.push_back(chain_.positions[p.first]);
      r.split.region.push_back(p.region);
    }
    r.split.seconds = best.seconds;
    if (spent()) r.status = {outcome::stopped, std::to_string(r.weighed) + " splits were weighed; the best so far"};
    return r;
  }

 private:
  struct place {
    std::uint32_t first, region;
    auto operator<=>(const place&) const = default;
  };
  struct candidate {
    int faults = 0;  ///< stages that do not fit, and missing links
    double seconds = 0;
    std::vector<place> places;

    bool operator==(const candidate& o) const { return places == o.places; }
    bool operator<(const candidate& o) const {
      if (faults != o.faults) return faults < o.faults;
      if (seconds != o.seconds) return seconds < o.seconds;
      if (places.size() != o.places.size()) return places.size() < o.places.size();
      return places < o.places;
    }
  };

  std::string too_many_regions() const {
    return std::to_string(chain_.regions) + " regions cannot share " + std::to_string(positions_) +
           " positions; expected fewer or region_use::any";
  }
  bool spent() const { return static_cast<long long>(seen_.size()) >= options_.most_weighed; }

  std::size_t draw(std::size_t n) {  // splitmix64: standard distributions differ between libraries
    std::uint64_t z = random_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return static_cast<std::size_t>((z ^ (z >> 31)) % n);
  }

  /// Returns a 64-bit hash. A collision, which would hide a split, has a probability of 1e-8 for hundreds of thousands of splits.
  static std::uint64_t hash_of(const std::vector<place>& places) {
    std::uint64_t h = places.size();
    for (const place& p : places) {
      h = (h ^ (std::uint64_t{p.first} << 32 | p.region)) * 0x9e3779b97f4a7c15U;
      h ^= h >> 29;
    }
    return h;
  }

  const region_times& times(std::size_t region, std::size_t i, std::size_t j) {
    const auto [at, fresh] = stages_.try_emplace((region * positions_ + i) * (positions_ + 1) + j);
    if (fresh) at->second = region_times_of(chain_, region, i, j);
    return at->second;
  }

  /// Computes regions' speeds and the share of work before each position, from single blocks.
  void make_shares() {
    std::vector<double> work(positions_, 0);
    for (std::size_t g = 0; g < chain_.regions; ++g) {
      double all_s = 0;
      std::vector<double> mine(positions_);
      for (std::size_t i = 0; i < positions_; ++i) all_s += mine[i] = times(g, i, i + 1).work_s;
      const bool usable = std::isfinite(all_s) && all_s > 0;
      speed_.push_back(usable ? 1 / all_s : 0);
      for (std::size_t i = 0; usable && i < positions_; ++i) work[i] += mine[i] / all_s;
    }
    double sum = 0;
    for (const double w : work) sum += w;
    share_before_ = {0};
    for (const double w : work) share_before_.push_back(share_before_.back() + (sum > 0 ? w / sum : 1.0 / static_cast<double>(positions_)));
  }

  /// Returns the split in proportion to speeds, with at least one position per region.
  candidate in_proportion(const std::vector<std::uint32_t>& regions) {
    double total = 0;
    for (const std::uint32_t g : regions) total += speed_[g];
    candidate c;
    double before = 0;
    for (std::size_t s = 0, at = 0; s < regions.size(); ++s) {
      if (s > 0) {
        const double wanted = total > 0 ? before / total : static_cast<double>(s) / static_cast<double>(regions.size());
        const auto above = std::lower_bound(share_before_.begin(), share_before_.end() - 1, wanted);
        std::size_t nearest = static_cast<std::size_t>(above - share_before_.begin());
        if (nearest > 0 && wanted - share_before_[nearest - 1] < share_before_[nearest] - wanted) --nearest;
        at = std::clamp(nearest, at + 1, positions_ - (regions.size() - s));
      }
      c.places.push_back({static_cast<std::uint32_t>(at), regions[s]});
      before += speed_[regions[s]];
    }
    return c;
  }

  std::vector<candidate> starts() {
    std::vector<std::uint32_t> order(chain_.regions);
    for (std::size_t g = 0; g < order.size(); ++g) order[g] = static_cast<std::uint32_t>(g);
    std::vector<candidate> all;
    if (options_.use == region_use::any) {  // the fastest region alone is best on slow links
      const auto fastest = static_cast<std::uint32_t>(std::max_element(speed_.begin(), speed_.end()) - speed_.begin());
      consider(in_proportion({fastest}), all);
    }
    for (std::size_t n = 0; n < options_.width; ++n) {
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw(i)]);
      const std::size_t most = std::min(order.size(), positions_);
      const std::size_t used = options_.use == region_use::all ? order.size() : most - n % most;
      consider(in_proportion({order.begin(), order.begin() + static_cast<std::ptrdiff_t>(used)}), all);
    }
    return all;
  }

  void expand(const candidate& p, std::vector<candidate>& into) {
    const std::size_t stages = p.places.size();
    for_pairs(stages, stages, [&](std::size_t s, std::size_t t) {
      if (s < t) consider(exchanged(p, s, t), into);
      if (s != t && s != t + 1) consider(put_elsewhere(p, s, t), into);
    });
    for (std::size_t s = 1; s < stages; ++s) {
      for (const std::size_t step : {1U, 4U, 16U}) {
        const std::size_t first = p.places[s].first;
        if (first >= p.places[s - 1].first + 1 + step) consider(moved(p, s, first - step), into);
        if (first + step < end_of(p, s)) consider(moved(p, s, first + step), into);
      }
    }
    if (options_.use == region_use::any) change_use(p, into);
  }

  std::size_t end_of(const candidate& c, std::size_t s) const { return s + 1 < c.places.size() ? c.places[s + 1].first : positions_; }

  candidate exchanged(const candidate& p, std::size_t s, std::size_t t) const {
    std::vector<std::size_t> order = in_order(p);
    std::swap(order[s], order[t]);
    return reordered(p, order);
  }
  /// Moves stage s to place t.
  candidate put_elsewhere(const candidate& p, std::size_t s, std::size_t t) const {
    std::vector<std::size_t> order = in_order(p);
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(s));
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(t), s);
    return reordered(p, order);
  }
  static std::vector<std::size_t> in_order(const candidate& p) {
    std::vector<std::size_t> order(p.places.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    return order;
  }
  candidate reordered(const candidate& p, const std::vector<std::size_t>& order) const {
    candidate c;
    std::size_t first = 0;
    for (const std::size_t s : order) {
      c.places.push_back({static_cast<std::uint32_t>(first), p.places[s].region});
      first += end_of(p, s) - p.places[s].first;
    }
    return c;
  }
  static candidate moved(const candidate& p, std::size_t s, std::size_t to) {
    candidate c{.places = p.places};
    c.places[s].first = static_cast<std::uint32_t>(to);
    return c;
  }

  void change_use(const candidate& p, std::vector<candidate>& into) {
    const std::size_t stages = p.places.size();
    std::vector<bool> used(chain_.regions, false);
    for (const place& q : p.places) used[q.region] = true;
    for (std::size_t s = 0; s < stages && stages > 1; ++s) {  // its layers go to the stage before or behind
      for (const bool behind : {false, true}) {
        if (behind ? s + 1 == stages : s == 0) continue;
        candidate c{.places = p.places};
        if (behind) c.places[s + 1].first = c.places[s].first;
        c.places.erase(c.places.begin() + static_cast<std::ptrdiff_t>(s));
        consider(std::move(c), into);
      }
    }
    std::vector<std::uint32_t> idle;
    for (std::size_t g = 0; g < chain_.regions; ++g) {
      if (!used[g]) idle.push_back(static_cast<std::uint32_t>(g));
    }
    for_pairs(idle.size(), stages, [&](std::size_t i, std::size_t s) {
      candidate c{.places = p.places};
      c.places[s].region = idle[i];
      consider(std::move(c), into);
      for (const bool in_front : {true, false}) shared(p, s, idle[i], in_front, into);
    });
  }
  /// Splits a stage with an idle region in proportion to their speeds.
  void shared(const candidate& p, std::size_t s, std::uint32_t idle, bool in_front, std::vector<candidate>& into) {
    const std::size_t first = p.places[s].first, length = end_of(p, s) - first;
    if (length < 2) return;
    const double sum = speed_[idle] + speed_[p.places[s].region], share = sum > 0 ? speed_[idle] / sum : 0.5;
    const auto taken = std::clamp<std::size_t>(static_cast<std::size_t>(share * static_cast<double>(length) + 0.5), 1, length - 1);
    candidate c{.places = p.places};
    const auto at = static_cast<std::ptrdiff_t>(s);
    if (in_front) {
      c.places[s].first = static_cast<std::uint32_t>(first + taken);
      c.places.insert(c.places.begin() + at, {static_cast<std::uint32_t>(first), idle});
    } else {
      c.places.insert(c.places.begin() + at + 1, {static_cast<std::uint32_t>(first + length - taken), idle});
    }
    consider(std::move(c), into);
  }

  /// Visits all pairs, or a sample of `reorderings` pairs if there are many.
  template <class Visit>
  void for_pairs(std::size_t rows, std::size_t columns, Visit&& visit) {
    if (rows * columns > 2 * options_.reorderings) {
      for (std::size_t n = 0; n < options_.reorderings; ++n) {
        const std::size_t r = draw(rows);
        visit(r, draw(columns));
      }
      return;
    }
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) visit(r, c);
    }
  }

  /// Evaluates a split unless it has been seen.
  void consider(candidate c, std::vector<candidate>& into) {
    if (spent() || !seen_.insert(hash_of(c.places)).second) return;
    region_cost_sum sum(options_.cost, chain_.microbatches);
    for (std::size_t s = 0; s < c.places.size(); ++s) {
      const std::size_t end = end_of(c, s);
      const region_times& t = times(c.places[s].region, c.places[s].first, end);
      c.faults += t.fits ? 0 : 1;
      sum.add_stage(t.forward_s, t.work_s);
      if (s + 1 == c.places.size()) break;
      const double transfer_s = checked_transfer_s(chain_, c.places[s].region, c.places[s + 1].region, end);
      c.faults += std::isfinite(transfer_s) ? 0 : 1;
      sum.add_transfer(transfer_s);
    }
    c.seconds = sum.seconds();
    into.push_back(std::move(c));
  }

  void keep_best(std::vector<candidate>& beam) const {
    const auto end = beam.begin() + static_cast<std::ptrdiff_t>(std::min(beam.size(), options_.width));
    if (end != beam.end()) std::nth_element(beam.begin(), end, beam.end());
    beam.erase(end, beam.end());
    std::sort(beam.begin(), beam.end());
  }

  const region_chain& chain_;
  const region_beam_options& options_;
  std::size_t positions_;
  std::uint64_t random_;
  std::vector<double> speed_, share_before_;
  std::unordered_map<std::uint64_t, region_times> stages_;
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace detail

HETPLAN_INLINE region_result split_by_beam(const region_chain& chain, const region_beam_options& options) {
  detail::require_region_chain(chain, "split_by_beam");
  if (options.width < 1 || options.iterations < 1 || options.most_weighed < 1) {
    throw invalid_input("split_by_beam: width = " + std::to_string(options.width) + ", iterations = " + std::to_string(options.iterations) +
                        ", most_weighed = " + std::to_string(options.most_weighed) + "; expected integers >= 1");
  }
  return detail::region_beam(chain, options).run();
}

}  // namespace hetplan::partition
