// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A model whose layers are the blocks of another one.

#include <span>

#include <hetplan/cluster/device.hpp>
#include <hetplan/coarsen/fusion_rules.hpp>
#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::coarsen {

/// One layer per block, with the block's number as its id. A block of one layer stays that layer; in any other
///
///  * the name is the members' names with "+" between them, the first and how many more where that exceeds 200 bytes; the kind is the
///    operator types of the members with "+" between them, so a cost model can tell a fused operator from a single one;
///  * FLOP, activations that training keeps, cache and what a call reads of weights add up; so do weights, a tensor of a weight group
///    once;
///  * traffic adds up without what the block keeps to itself: an edge inside is not read, and a tensor that nobody outside reads is not
///    written (the largest of its edges); a member gives up at most its own traffic;
///  * an edge to another block carries, of each tensor, the largest edge into that block;
///  * a kind of device for which all members have a profile gets one, with the members' batch sizes together: the sum of their seconds,
///    forward less the saved traffic over the kind's memory bandwidth where a device says it, and never below the longest member, at
///    any batch size where measured times do not fall.
///
/// So a cost model is asked about the fused kind, a profile answers with the sum less what was saved, and a roofline with one launch and
/// the traffic that is left.
///
/// @param b        of this model; e.g. from fuse_operators.
/// @param rules    whose aliases say what kinds mean.
/// @param devices  for the bandwidth of each kind; of several devices of a kind the fastest memory counts, which saves least.
/// Complexity      O((V + E) log E), and the profiles' sizes times the members of a block.
/// Throws          invalid_input: the blocks are not this model's, or not numbered along its edges; one layer cannot stand for a block
///                 (frozen and trainable weights, a tensor of a weight group and another weight, measured and computed times).
/// Source          Moirai, section III-B: intermediate results of fused operators are not stored. How much that saves is ours.
/// Deviations      what training keeps is not less, and a measured backward saves nothing: it needs what inference need not store.
[[nodiscard]] planning_graph fused_graph(const planning_graph& model, const blocks& b, const fusion_rules& rules,
                                         std::span<const device> devices = {});

}  // namespace hetplan::coarsen

#ifndef HETPLAN_COMPILED
#include <hetplan/coarsen/fused_graph.ipp>
#endif
