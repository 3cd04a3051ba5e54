// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/services_json.hpp>

#include <array>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include <hetplan/io/json_object.hpp>

namespace hetplan::io {

namespace detail {

inline constexpr std::array<std::pair<std::string_view, serve::batching>, 2> batching_names{
    {{"fixed", serve::batching::fixed}, {"continuous", serve::batching::continuous}}};

HETPLAN_INLINE serve::batch_curve read_curve(const json_object& o) {
  serve::batch_curve c;
  for (const json_node n : o.at("batch", "sizes of batch, ascending from 1").elements("an array of sizes of batch", 1)) {
    const int b = n.integer<int>(1, 1 << 20);
    if (c.batch.empty() ? b != 1 : b <= c.batch.back())
      n.fail(c.batch.empty() ? "1, the smallest batch" : "more than " + std::to_string(c.batch.back()) + ", the size before");
    c.batch.push_back(b);
  }
  const json_node times = o.at("seconds", "a time for each size of batch");
  for (const json_node n : times.elements("an array of seconds", 1)) {
    const auto t = n.amount<seconds>(range::above_zero);
    if (!c.seconds_at.empty() && t.value() < c.seconds_at.back())
      n.fail("at least " + to_text(c.seconds_at.back()) + ", the time of the smaller batch");
    c.seconds_at.push_back(t.value());
  }
  if (c.seconds_at.size() != c.batch.size())
    times.fail_with("expected " + std::to_string(c.batch.size()) + " times, one for each size of batch; got " +
                    std::to_string(c.seconds_at.size()));
  return c;
}

HETPLAN_INLINE std::pair<serve::service_variant, serve::variant_times> read_variant(const json_node& n, bool generates) {
  const json_object o(n, keys::variant, "a variant");
  serve::service_variant v;
  v.name = o.at("name", "a name").name();
  v.gpu_kind = o.at("gpu", "a kind of GPU").name("a kind of GPU");
  if (const auto x = o.find("tensor_parallel")) v.tensor_parallel = x->integer<int>(1, 1024);
  if (const auto x = o.find("pipeline_parallel")) v.pipeline_parallel = x->integer<int>(1, 1024);
  if (const auto x = o.find("compute")) {
    v.compute_share = x->number(range::above_zero);
    if (v.compute_share > 1) x->fail("a share > 0, at most 1");
  }
  v.memory = o.required_amount<bytes>("memory", range::above_zero);
  if (const auto x = o.find("across_servers")) v.across_servers = x->boolean();
  serve::variant_times t;
  const json_object pass(o.at("pass", "an object with batch, seconds, per_token"), keys::pass, "an object with batch, seconds, per_token");
  t.pass = read_curve(pass);
  t.per_token_s = pass.amount<seconds>("per_token", range::at_least_zero).value_or(seconds()).value();
  const auto step = o.find("step");
  if (step) t.step = read_curve(json_object(*step, keys::step, "an object with batch, seconds"));
  if (generates && !step) n.fail_missing("step", "an object with batch, seconds: the service generates tokens");
  if (!generates && step) step->fail_with("only services with tokens take steps");
  if (!generates && t.per_token_s > 0) pass.find("per_token")->fail_with("only services with tokens have times for them");
  return {std::move(v), std::move(t)};
}

}  // namespace detail

HETPLAN_INLINE services_file read_services(const json_document& d) {
  const json_object top = open_document(d, services_format, keys::services);
  std::vector<serve::service> services;
  std::vector<std::vector<serve::variant_times>> times;
  std::set<std::string, std::less<>> names;
  for (const json_node n : top.at("services", "an array of services").elements("an array of services", 1)) {
    const json_object o(n, keys::service, "a service");
    serve::service s;
    const auto name = o.at("name", "a name");
    s.name = name.name();
    if (!names.insert(s.name).second) name.fail("a name that no other service has");
    s.latency = o.required_amount<seconds>("latency", range::above_zero);
    s.rate = o.number("rate", range::above_zero).value_or(0);
    if (const auto within = o.find("frame_latency")) {
      s.frame_latency = within->amount<seconds>(range::above_zero);
      if (!s.is_stream()) within->fail_with("frame_latency is for streams, which have a rate");
    }
    s.request_size = o.amount<bytes>("request_bytes", range::at_least_zero).value_or(bytes());
    s.response_size = o.amount<bytes>("response_bytes", range::at_least_zero).value_or(bytes());
    s.bytes_per_token = o.amount<bytes>("bytes_per_token", range::at_least_zero).value_or(bytes());
    if (s.bytes_per_token.value() > 0 && !o.has("tokens"))
      o.find("bytes_per_token")->fail_with("only services with tokens have bytes for them");
    s.weights = o.amount<bytes>("weights", range::at_least_zero).value_or(bytes());
    if (const auto t = o.find("tokens")) {
      const json_object counts(*t, keys::token_counts, "an object with in, out");
      s.generates = true;
      const auto count = [&](std::string_view key, double least) {
        const std::string expected = "a number from " + to_text(least) + " to " + to_text(serve::most_typical);
        const auto node = counts.at(key, expected);
        const double v = node.number(range::at_least_zero);
        if (v < least || v > serve::most_typical) node.fail(expected);
        return v;
      };
      s.tokens.in = count("in", 0);
      s.tokens.out = count("out", 1);
    }
    if (const auto frames = o.find("frames")) {
      s.frames = frames->integer<int>(1);
      if (s.frames > 1 && !s.is_stream()) frames->fail_with("frames are for streams, which have a rate");
    }
    s.batches = o.one_of("batching", detail::batching_names, std::optional(serve::batching::fixed));
    if (s.batches == serve::batching::continuous && (!s.generates || s.is_stream()))
      o.find("batching")->fail_with("continuous batches are for services that have tokens and no rate");
    times.emplace_back();
    std::set<std::string, std::less<>> variants;
    for (const json_node v : o.at("variants", "an array of variants").elements("an array of variants", 1)) {
      auto [variant, table] = detail::read_variant(v, s.generates);
      if (!variants.insert(variant.name).second) v.fail_with("expected a name that no other variant has, got " + in_quotes(variant.name));
      s.variants.push_back(std::move(variant));
      times.back().push_back(std::move(table));
    }
    services.push_back(std::move(s));
  }
  return {std::move(services), serve::service_time_table(std::move(times))};
}

}  // namespace hetplan::io
