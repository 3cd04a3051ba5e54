// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pareto sets: the alternatives that no other one dominates, and the hypervolume as a measure of their quality.

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

/// True if `a` is nowhere worse than `b`; smaller is better. Equal points cover each other. Both have the same length.
[[nodiscard]] inline bool covers(std::span<const double> a, std::span<const double> b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x <= y; });
}
/// True if `a` is nowhere worse than `b` and somewhere better.
[[nodiscard]] inline bool dominates(std::span<const double> a, std::span<const double> b) { return covers(a, b) && !covers(b, a); }

/// A set of points that do not dominate each other, each with an item; smaller is better in every coordinate.
///
/// Entries are in lexicographic order of their points. Of equal points the first inserted stays; so order affects only their items.
template <class Item>
class pareto_set {
 public:
  struct entry {
    std::vector<double> point;
    Item item;

    friend bool operator==(const entry&, const entry&) = default;
  };

  /// Throws  invalid_input for 0 criteria.
  explicit pareto_set(std::size_t criteria) : criteria_(criteria) {
    if (criteria == 0) throw invalid_input("pareto_set: 0 criteria; expected at least one");
  }

  /// Inserts the item unless an entry covers its point, and erases the entries that the point dominates. Returns true if inserted.
  /// Complexity  for n entries and two criteria O(log n) to refuse and O(n) to insert, otherwise O(n * criteria).
  /// Throws      invalid_input for a wrong number of coordinates or NaN; infinite coordinates are allowed.
  bool insert(std::span<const double> point, Item item) {
    check(point);
    const auto place = std::ranges::lower_bound(entries_, point, std::ranges::lexicographical_compare, &entry::point);
    // Points that cover the new one are equal or lexicographically smaller, dominated ones are larger. With two criteria the second
    // one decreases along the entries, so the neighbours suffice.
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

/// Returns the plans that no other plan dominates. An item is a position in `plans`. Of equal plans the first stays.
///
/// Complexity       O(n k * criteria) for n plans, of which at most k are kept at a time.
/// Throws           invalid_input for a criterion that returns NaN.
/// Source           Dora, section 4.3 and figure 7 (latency and energy); here any criteria.
template <criterion... Criteria>
  requires(sizeof...(Criteria) > 0)
[[nodiscard]] pareto_set<std::size_t> pareto_plans(std::span<const ranked_plan> plans, const Criteria&... criteria) {
  static_assert((check_criterion<Criteria>() && ...));
  pareto_set<std::size_t> kept(sizeof...(Criteria));
  for (std::size_t i = 0; i < plans.size(); ++i) kept.insert({criteria.value(plans[i].evaluation)...}, i);
  return kept;
}

/// Returns the volume of all points that a given point covers and that cover the reference. Larger is better: every point that no
/// other one covers adds volume. Only points better than the reference in every coordinate contribute.
///
/// @param points     in any order, dominated and repeated ones allowed; 2 or 3 coordinates, smaller is better.
/// @param reference  finite, with as many coordinates.
/// Units             the product of the units of the coordinates.
/// Complexity        O(n log n): a sweep along the last coordinate over a staircase of the others.
/// Throws            invalid_input for a wrong number of coordinates, a point with NaN or -infinity, or a non-finite reference.
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
