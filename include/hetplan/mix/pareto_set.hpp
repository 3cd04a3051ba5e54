// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The alternatives worth keeping: those that no other one beats in every criterion.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::mix {

/// `a` is nowhere worse than `b` (equal points cover each other); smaller is better, one length.
[[nodiscard]] inline bool covers(std::span<const double> a, std::span<const double> b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x <= y; });
}
/// `a` is nowhere worse than `b` and somewhere better.
[[nodiscard]] inline bool dominates(std::span<const double> a, std::span<const double> b) { return covers(a, b) && !covers(b, a); }

/// Points without a dominated one among them, each with what it stands for; smaller is better in every coordinate.
///
/// Entries stand in lexicographic order of their points. Of equal points the first inserted stays. So the entries do not
/// depend on the order of insertion, except for which of equal points is there.
template <class Item>
class pareto_set {
 public:
  struct entry {
    std::vector<double> point;
    Item item;

    friend bool operator==(const entry&, const entry&) = default;
  };

  /// Throws  invalid_input for a set without criteria.
  explicit pareto_set(std::size_t criteria) : criteria_(criteria) {
    if (criteria == 0) throw invalid_input("pareto_set: 0 criteria; expected at least one");
  }

  /// Keeps the item unless an entry covers its point; entries that it dominates go. True: it was kept.
  ///
  /// Complexity  O(log n) to refuse and O(n) to keep with two criteria, else O(n * criteria), for n entries.
  /// Throws      invalid_input for another number of coordinates or NaN; infinite coordinates are allowed.
  bool insert(std::span<const double> point, Item item) {
    check(point);
    const auto place = std::ranges::lower_bound(entries_, point, std::ranges::lexicographical_compare, &entry::point);
    // Whoever covers the point is equal or lexicographically smaller, whoever it dominates is larger. With two criteria
    // the second falls along the entries, so neighbours tell it all.
    const auto first = criteria_ == 2 && place != entries_.begin() ? std::prev(place) : entries_.begin();
    if (std::any_of(first, place, [&](const entry& e) { return covers(e.point, point); })) return false;
    if (place != entries_.end() && std::ranges::equal(place->point, point)) return false;
    const auto dominated = [&](const entry& e) { return covers(point, e.point); };
    const auto at = place - entries_.begin();
    if (criteria_ == 2) entries_.erase(place, std::find_if_not(place, entries_.end(), dominated));
    else entries_.erase(std::remove_if(place, entries_.end(), dominated), entries_.end());
    entries_.insert(entries_.begin() + at, entry{{point.begin(), point.end()}, std::move(item)});
    return true;
  }
  bool insert(std::initializer_list<double> point, Item item) {
    return insert(std::span<const double>(point.begin(), point.size()), std::move(item));
  }

  [[nodiscard]] std::size_t criteria() const { return criteria_; }
  [[nodiscard]] const std::vector<entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

  friend bool operator==(const pareto_set&, const pareto_set&) = default;

 private:
  void check(std::span<const double> point) const {
    if (point.size() != criteria_) {
      throw invalid_input("pareto_set: a point of " + std::to_string(point.size()) + " coordinates; expected " + std::to_string(criteria_));
    }
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (std::isnan(point[i])) throw invalid_input("pareto_set: coordinate " + std::to_string(i) + " is nan; expected a number");
    }
  }

  std::size_t criteria_;
  std::vector<entry> entries_ = {};
};

/// The plans that no other one beats in every criterion; an item is the plan's position in `plans`. Of plans with equal
/// values the first stays.
///
/// Complexity       O(n k * criteria) for n plans of which up to k are kept at a time.
/// Throws           invalid_input for a criterion that answers NaN.
/// Source           Dora, section 4.3 and figure 7 (latency and energy); here any criteria.
template <criterion... Criteria>
  requires(sizeof...(Criteria) > 0)
[[nodiscard]] pareto_set<std::size_t> pareto_plans(std::span<const ranked_plan> plans, const Criteria&... criteria) {
  static_assert((check_criterion<Criteria>() && ...));
  pareto_set<std::size_t> kept(sizeof...(Criteria));
  for (std::size_t i = 0; i < plans.size(); ++i) kept.insert({criteria.value(plans[i].evaluation)...}, i);
  return kept;
}

// How good a set of alternatives is, in one number: the volume that it dominates.

/// The volume of all points that some given point covers and that cover the reference. Larger is better: it grows with
/// every point that no other one covers. Points that are not better than the reference everywhere contribute nothing.
///
/// @param points     any order, dominated ones and repetitions allowed; 2 or 3 coordinates, smaller is better.
/// @param reference  finite, as many coordinates.
/// Units             the product of the coordinates'.
/// Complexity        O(n log n): a sweep along the last coordinate over a staircase of the others.
/// Throws            invalid_input for another number of coordinates, a point with NaN or -infinity, a reference that is
///                   not finite.
/// Determinism       points are sorted first, so their order does not matter, not even to the last digit.
/// Source            the measure of Zitzler and Thiele (1998); the sweep is the usual one for three dimensions.
[[nodiscard]] double hypervolume(std::span<const std::vector<double>> points, std::span<const double> reference);
template <class Item>
[[nodiscard]] double hypervolume(const pareto_set<Item>& set, std::span<const double> reference) {
  std::vector<std::vector<double>> points;
  for (const auto& e : set.entries()) points.push_back(e.point);
  return hypervolume(points, reference);
}

}  // namespace hetplan::mix

#ifndef HETPLAN_SEPARATE
#include <hetplan/mix/pareto_set.ipp>
#endif
