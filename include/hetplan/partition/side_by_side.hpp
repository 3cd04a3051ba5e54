// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Several searches over one sequence on threads: other microbatch sizes, device orders and warm-up rules.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/partition/two_substate_dp.hpp>

namespace hetplan::partition {

/// One of several searches that share their tables.
struct search_variant {
  plan blank;  ///< microbatch size and count, schedule
  std::shared_ptr<const device_space> space;
  warmup_rule warmup = warmup_rule::hide_communication;
};

/// Who takes the answers of searches, one after the other, from the thread that asked for them.
struct search_taker {
  /// Extensions that the search whose turn comes may weigh; none: it is not wanted any more, nor are those behind it.
  std::function<std::optional<long long>()> allowance;
  std::function<control(const search_result&)> take;
};

/// Runs the variants on threads and hands their answers over in order, each what it is when the searches run one by one: a search
/// that began with more than it may weigh when its turn comes, and needed it, runs again with what it may.
///
/// @param options  of every search; warm-up and most_extensions are the variant's and the taker's.
/// @param threads  0: as many as the machine runs at once.
/// @return         stop if the taker said so.
/// Complexity      the sum of the searches', divided by the threads; one of them at most runs twice for each that ran into its limit.
/// Throws          as two_substate_dp.
/// Determinism     yes, whatever the threads.
/// Source          our own; Dora, section 4.1, searches one order with one warm-up rule.
control search_side_by_side(const search_tables& tables, const std::vector<search_variant>& variants, const any_objective& objective,
                            const top_k& policy, const search_options& options, int threads, const search_taker& taker);

}  // namespace hetplan::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/side_by_side.ipp>
#endif
