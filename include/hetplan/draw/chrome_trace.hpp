// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A judged plan in Chrome's trace-event format, which opens in Perfetto (ui.perfetto.dev) and chrome://tracing.

#include <string>

#include <hetplan/plan/plan.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::draw {

/// The trace as JSON: process "devices" with a thread per used device and a counter of its memory, process
/// "network" with lanes per used resource (transfers that overlap lie on different lanes) and counters of its load.
/// Slices say what they waited for, bytes, latency and the share of the route's peak rate they got.
///
/// @param j      from evaluate or judge of this plan on this cluster; counters need simulator_options{.record = true}.
/// Units         ts and dur in microseconds with nanoseconds behind the point (the format's rule), args in SI.
/// Determinism   same input, same bytes.
/// Source        "Trace Event Format", Google, 2016.
[[nodiscard]] std::string chrome_trace(const plan& p, const cluster& c, const judgement& j);

}  // namespace hetplan::draw

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/chrome_trace.ipp>
#endif
