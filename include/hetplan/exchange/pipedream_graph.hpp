// SPDX-License-Identifier: BSL-1.0
#pragma once
/// PipeDream's profiled graphs as planning graphs.

#include <string>
#include <string_view>

#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::exchange {

/// What becomes of the time of a source whose description begins with "Input": the wait for the data loader, which no planner
/// can place. PipeDream's optimizer sets it to 0.
enum class input_time { zero, as_measured };

struct pipedream_options {
  std::string device_kind = "pipedream";  ///< what the profiles are looked up by: the kind of device that was measured
  std::string name = "";                  ///< of the model; "" = the file's name without folder and ending
  input_time inputs = input_time::zero;
};

/// Reads a graph that PipeDream's profiler wrote; `file` is what messages call it.
///
/// A layer's name is the node's id (unique in a file, descriptions are not), its kind the description up to the first bracket.
/// Units       times are ms of one minibatch. The file does not say how many samples a minibatch has: here it is one sample, and k of
///             them take k times as long. Sizes are bytes of one minibatch, weights bytes.
/// Sizes       `[a; b]` are the sizes of a node's several outputs. Which of them an edge takes is not written: every out-edge carries
///             their sum, as in PipeDream. The same bytes are what the layer keeps until its backward.
/// Throws      invalid_input `FILE: line N: expected X, got Y`: a line that is neither node nor edge, a number that is not finite or
///             < 0, an id twice, an edge to an unknown node, twice, or on a cycle; `FILE: ...` where there is no node.
/// Complexity  O(V + E log E).
/// Source      PipeDream (SOSP 2019), graph/graph.py of its repository (the text form) and its optimizer (inputs).
///             Deviations: an input keeps its bytes, so that it stays with its reader where bytes are dear; a stage that the file
///             proposes is not read.
[[nodiscard]] planning_graph parse_pipedream_graph(std::string_view text, const std::string& file, const pipedream_options& options = {});

/// Reads a graph's file. Throws what io::read_text and parse_pipedream_graph throw.
[[nodiscard]] planning_graph read_pipedream_graph(const std::string& path, const pipedream_options& options = {});

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/pipedream_graph.ipp>
#endif
