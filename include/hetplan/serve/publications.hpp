// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What servers have published: one history for each, not a copy for everybody who reads it.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hetplan/core/large_pages.hpp>
#include <hetplan/core/linkage.hpp>
#include <hetplan/core/prefetch.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// What a server says of a service whose instances it leads.
struct publication {
  double done;      ///< S: requests, or frames, until then
  double wait_s;    ///< Q: what a newcomer would wait; infinite: nobody is left to serve it
  double capacity;  ///< p^: requests, or frames, a second at most
};

/// What another server knows of it.
struct known_state {
  double capacity = 0;
  double idle = 0;  ///< p^ - p: what it could do beside what it did; below 0 is possible
  double wait_s = 0;
  double age_s = 0;
};

/// The last publications of all holders of a deployment, by holder and then by period: the two that a question is about lie close.
///
/// Complexity  O(holders x periods kept) memory; two reads a question.
/// Source  EPARA, eq. 1 and section 3.4; semantics, section 11.
class publications {
 public:
  /// Of holders with these capacities, in a deployment whose first published period is `first`.
  publications(std::vector<double> capacities, std::int64_t first, std::int64_t periods_kept, double period_s)
      : nominal_(std::move(capacities)), first_(first), kept_(periods_kept), period_s_(period_s), last_(first),
        all_(nominal_.size() * static_cast<std::size_t>(kept_)) {}

  /// Makes room for a later period, in place of the oldest ones.
  void open(std::int64_t period) {
    last_slot_ = (last_slot_ + period - last_) % kept_;
    last_ = period;
  }

  void publish(std::int64_t period, std::size_t holder, publication p) { all_[index(period, holder)] = p; }
  /// By a silent error: an idle holder that has done nothing since last time.
  void publish_wrongly(std::int64_t period, std::size_t holder, publication truth) {
    const double done = period > first_ ? at(period - 1, holder).done : truth.done;
    publish(period, holder, {done, 0, nominal_[holder]});
  }
  [[nodiscard]] const publication& at(std::int64_t period, std::size_t holder) const { return all_[index(period, holder)]; }

  /// Fetches where a holder publishes next.
  void fetch(std::size_t holder) const { prefetch(&at(last_, holder)); }
  /// Fetches what `known` will read.
  void fetch(std::size_t holder, std::int64_t j, std::int64_t k) const {
    if (j < first_) return;
    prefetch(&at(j, holder));
    prefetch(&at(2 * j - k > first_ ? 2 * j - k : first_, holder));
  }
  /// What is known in period k by who knows the publication of period j. Requires k - j no more than half the periods kept.
  [[nodiscard]] known_state known(std::size_t holder, std::int64_t j, std::int64_t k) const {
    const double age_s = static_cast<double>(k - j) * period_s_;
    if (j < first_) return {nominal_[holder], nominal_[holder], 0, age_s};
    const auto& then = at(j, holder);
    const auto since = 2 * j - k > first_ ? 2 * j - k : first_;
    const double did = since == j ? 0 : (then.done - at(since, holder).done) / (static_cast<double>(j - since) * period_s_);
    return {then.capacity, then.capacity - did, then.wait_s, age_s};
  }

 private:
  [[nodiscard]] std::size_t index(std::int64_t period, std::size_t holder) const {
    const auto slot = last_slot_ - (last_ - period);
    return holder * static_cast<std::size_t>(kept_) + static_cast<std::size_t>(slot < 0 ? slot + kept_ : slot);
  }
  std::vector<double> nominal_;
  std::int64_t first_;
  std::int64_t kept_;
  double period_s_;
  std::int64_t last_;           ///< the period that is open
  std::int64_t last_slot_ = 0;  ///< where it is written; those before it stand before it, around the end
  std::vector<publication, large_pages<publication>> all_;
};

}  // namespace HETPLAN_NAMESPACE::serve
