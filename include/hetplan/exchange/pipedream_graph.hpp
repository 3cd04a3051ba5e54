// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Profiled graphs of PipeDream as planning graphs.

#include <string>
#include <string_view>

#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::exchange {

/// Treatment of the time of sources whose description begins with "Input": the wait for the data loader, which no planner can place.
/// PipeDream's optimizer sets it to 0.
enum class input_time { zero, as_measured };

struct pipedream_options {
  std::string device_kind = "pipedream";  ///< kind of the measured device, under which profiles are found
  std::string name = "";                  ///< of the model; "": the file's name without folder and extension
  input_time inputs = input_time::zero;
};

/// Reads a graph that PipeDream's profiler wrote; `file` is its name in messages.
///
/// A layer's name is the node's id (unique in a file, descriptions are not), its kind the description up to the first bracket.
/// Units       times are ms per minibatch. The file does not tell the samples of a minibatch: here it is one sample, and k of them take k
///             times as long. Sizes are bytes per minibatch, weights bytes.
/// Sizes       `[a; b]` are the sizes of a node's several outputs. The file does not tell which of them an edge carries: every out-edge
///             carries their sum, as in PipeDream. The layer keeps the same bytes until its backward.
/// Throws      invalid_input `FILE: line N: expected X, got Y`: a line that is neither node nor edge, a number that is not finite or
///             < 0, a duplicate id, an edge that is a duplicate, on a cycle, or to an unknown node; `FILE: ...` if there is no node.
/// Complexity  O(V + E log E).
/// Source      PipeDream (SOSP 2019), graph/graph.py of its repository (the text form) and its optimizer (inputs).
///             Deviations: an input keeps its bytes, so that it stays with its reader if transfers are expensive; a stage that the file
///             proposes is ignored.
[[nodiscard]] planning_graph parse_pipedream_graph(std::string_view text, const std::string& file, const pipedream_options& options = {});

/// Reads the file of a graph. Throws what io::read_text and parse_pipedream_graph throw.
[[nodiscard]] planning_graph read_pipedream_graph(const std::string& path, const pipedream_options& options = {});

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/pipedream_graph.ipp>
#endif
