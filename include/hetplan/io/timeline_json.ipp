// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/timeline_json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include <hetplan/io/json_node.hpp>
#include <hetplan/io/json_text.hpp>

namespace hetplan::io {

namespace detail {

/// The columns of a line, read from left to right.
class trace_line {
 public:
  trace_line(const std::string& file, std::size_t number, std::string_view text) : file_(file), number_(number), rest_(text) {
    columns_ = 0;
    for (std::string_view all = text; !next(all).empty();) ++columns_;
  }

  [[nodiscard]] std::size_t columns() const { return columns_; }

  /// Returns the next column as a finite number >= 0.
  [[nodiscard]] double number(std::string_view expected) {
    const std::string_view word = next(rest_);
    double v = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), v);
    if (code != std::errc() || end != word.data() + word.size() || !std::isfinite(v) || v < 0) fail(expected, in_quotes(word));
    return v;
  }
  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    fail_file(file_, "line " + std::to_string(number_) + ": expected " + std::string(expected) + ", got " + std::string(got));
  }

 private:
  [[nodiscard]] static std::string_view next(std::string_view& text) {
    constexpr std::string_view blank = " \t\r";
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(blank));
    text.remove_prefix(word.size());
    return word;
  }

  const std::string& file_;
  std::size_t number_;
  std::string_view rest_;
  std::size_t columns_;
};

}  // namespace detail

HETPLAN_INLINE adapt::bandwidth_trace parse_bandwidth_trace(std::string_view text, const std::string& file) {
  adapt::bandwidth_trace t;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    detail::trace_line line(file, number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.columns() == 0) continue;
    if (line.columns() != 2) line.fail("2 columns, seconds and Mbit/s", std::to_string(line.columns()));
    const double at = line.number("seconds >= 0"), rate = line.number("Mbit/s >= 0");
    if (!t.steps.empty() && at <= t.steps.back().at.value())
      line.fail("seconds > " + to_text(t.steps.back().at.value()) + ", the time of the line before", to_text(at));
    if (!std::isfinite(rate * 125'000)) line.fail("Mbit/s >= 0", to_text(rate));
    t.steps.push_back({seconds(at), bytes_per_second(rate * 125'000)});
  }
  if (t.steps.empty()) detail::fail_file(file, "expected a line with seconds and Mbit/s, got nothing");
  return t;
}

HETPLAN_INLINE adapt::bandwidth_trace read_bandwidth_trace(const std::string& path) { return parse_bandwidth_trace(read_text(path), path); }

namespace detail {

class timeline_reader {
 public:
  timeline_reader(const json_document& d, const cluster& c, std::filesystem::path folder)
      : top_(open_document(d, timeline_format, keys::timeline)), cluster_(c), folder_(std::move(folder)) {
    for (const device& x : c.devices()) devices_.emplace(x.name, x.id);
    const auto resources = c.network().resources();
    for (std::size_t r = 0; r < resources.size(); ++r) resources_.emplace(resources[r].name, resource_id(r));
  }

  adapt::timeline read() {
    adapt::timeline t{top_.required_amount<seconds>("duration", range::above_zero)};
    if (t.duration > adapt::longest_timeline) {
      top_.find("duration")->fail("seconds > 0, at most " + to_text(adapt::longest_timeline.value()) + " (30 years)");
    }
    if (const auto traces = top_.find("traces")) {
      for (const json_node n : traces->elements("an array of traces")) read_trace(n, t.duration);
    }
    if (const auto events = top_.find("events")) {
      seconds before;
      for (const json_node n : events->elements("an array of events")) before = read_event(n, before);
    }
    std::stable_sort(all_.begin(), all_.end(), [](const sourced& a, const sourced& b) { return a.event.at < b.event.at; });
    t.events.reserve(all_.size());
    for (const sourced& e : all_) t.events.push_back(e.event);
    if (const auto v = find_violation(t, cluster_)) {
      const json_node where = v->event ? json_node(top_.node().document(), all_[*v->event].node) : top_.node();
      where.fail_with(v->what);
    }
    return t;
  }

 private:
  struct sourced {
    adapt::event event;
    std::uint32_t node;
  };
  static constexpr std::string_view kinds = "one of: resource with capacity; device with speed, leaves or joins; transfer; qoe";

  template <class Id>
  [[nodiscard]] Id find(const json_node& n, const std::map<std::string_view, Id>& known, std::string_view what) const {
    const auto it = known.find(n.text("the name of a " + std::string(what)));
    if (it != known.end()) return it->second;
    std::vector<std::string_view> all;
    for (const auto& [name, id] : known) all.push_back(name);
    n.fail("the name of a " + std::string(what) + " of cluster " + in_quotes(cluster_.name()), suggestion(n.text(), all));
  }
  [[nodiscard]] device_id find_device(const json_node& n) const { return find(n, devices_, "device"); }
  [[nodiscard]] resource_id find_resource(const json_node& n) const { return find(n, resources_, "resource"); }

  void read_trace(const json_node& n, seconds duration) {
    const json_object o(n, keys::bandwidth_trace, "an object with resource, file, repeat, mean");
    const json_node name = o.at("resource", "the name of a resource"), file = o.at("file", "the name of a file");
    const resource_id r = find_resource(name);
    if (std::find(traced_.begin(), traced_.end(), r) != traced_.end()) name.fail("a resource that no other trace has");
    traced_.push_back(r);
    const std::string path = (folder_ / std::filesystem::path(file.name("the name of a file"))).string();
    const auto repeat = o.find("repeat");
    const bool again = repeat && repeat->boolean();
    const auto mean = o.amount<bytes_per_second>("mean", range::at_least_zero);
    adapt::bandwidth_trace t = at_node(file, [&] { return read_bandwidth_trace(path); });
    if (mean)
      t = at_node(
          *o.find("mean"), [&] { return scaled(std::move(t), *mean); }, "bandwidth trace: ");
    const auto then = again ? adapt::past_the_end::repeats : adapt::past_the_end::holds;
    for (adapt::event& e : at_node(
             n, [&] { return events_of(t, r, duration, then); }, "bandwidth trace: "))
      all_.push_back({std::move(e), n.index()});
    if (all_.size() > max_timeline_events)
      n.fail_with("expected traces of at most " + std::to_string(max_timeline_events) + " steps together, got more");
  }

  seconds read_event(const json_node& n, seconds before) {
    const json_object o(n, keys::event, "an event");
    const json_node at = o.at("at", "seconds >= 0");
    adapt::event e{at.amount<seconds>(range::at_least_zero), what_of(o)};
    if (e.at < before) at.fail("seconds >= " + to_text(before.value()) + ", the time of the event before");
    all_.push_back({e, n.index()});
    return e.at;
  }

  [[nodiscard]] adapt::event_payload what_of(const json_object& o) const {
    std::string_view kind;
    for (const std::string_view key : {"resource", "device", "transfer", "qoe"}) {
      if (!o.has(key)) continue;
      if (!kind.empty()) o.find(key)->fail_with("expected one change per event, got " + in_quotes(kind) + " and " + in_quotes(key));
      kind = key;
    }
    const auto only = [&](std::initializer_list<std::string_view> wanted) {
      std::string_view found;
      for (const std::string_view key : {"capacity", "speed", "leaves", "joins"}) {
        const auto n = o.find(key);
        if (!n) continue;
        if (std::find(wanted.begin(), wanted.end(), key) == wanted.end())
          n->fail_with(kind.empty()
                           ? "expected " + std::string(key == "capacity" ? "\"resource\"" : "\"device\"") + " beside it, got nothing"
                           : "expected no " + in_quotes(key) + " beside " + in_quotes(kind));
        if (!found.empty()) n->fail_with("expected one change per event, got " + in_quotes(found) + " and " + in_quotes(key));
        found = key;
      }
      return found;
    };
    if (kind == "resource") {
      only({"capacity"});
      return adapt::capacity_becomes{find_resource(*o.find(kind)), o.required_amount<bytes_per_second>("capacity", range::at_least_zero)};
    }
    if (kind == "device") {
      const std::string_view found = only({"speed", "leaves", "joins"});
      const device_id d = find_device(*o.find(kind));
      if (found.empty()) o.node().fail_with("expected speed, leaves or joins beside device, got none of them");
      if (found == "speed") return adapt::speed_becomes{d, o.find(found)->number(range::at_least_zero)};
      if (!o.find(found)->boolean()) o.find(found)->fail("true");
      if (found == "leaves") return adapt::device_leaves{d};
      return adapt::device_joins{d};
    }
    only({});
    if (kind == "transfer") return transfer_of(*o.find(kind));
    if (kind == "qoe") return target_of(*o.find(kind));
    o.node().fail_with("expected " + std::string(kinds) + "; got none of them");
  }

  [[nodiscard]] adapt::transfer_begins transfer_of(const json_node& n) const {
    const json_object o(n, keys::foreign_transfer, "an object with from, to, bytes, priority");
    adapt::transfer_begins t{find_device(o.at("from", "the name of a device")), find_device(o.at("to", "the name of a device")),
                             o.required_amount<bytes>("bytes", range::at_least_zero)};
    if (const auto p = o.find("priority")) t.priority = p->integer(std::numeric_limits<int>::min());
    return t;
  }

  [[nodiscard]] static adapt::qoe_becomes target_of(const json_node& n) {
    const json_object o(n, keys::qoe_target, "an object with latency, deadline");
    adapt::qoe_becomes q{o.amount<seconds>("latency", range::above_zero), o.amount<seconds>("deadline", range::above_zero)};
    if (!q.latency && !q.deadline) n.fail("latency or deadline");
    return q;
  }

  json_object top_;
  const cluster& cluster_;
  std::filesystem::path folder_;
  std::map<std::string_view, device_id> devices_;
  std::map<std::string_view, resource_id> resources_;
  std::vector<resource_id> traced_;
  std::vector<sourced> all_;
};

}  // namespace detail

HETPLAN_INLINE adapt::timeline read_timeline(const json_document& d, const cluster& c, const std::filesystem::path& folder) {
  return detail::timeline_reader(d, c, folder.empty() ? std::filesystem::path(d.file()).parent_path() : folder).read();
}

HETPLAN_INLINE std::vector<std::string> trace_files(const json_document& d, const std::filesystem::path& folder) {
  const json_object top = open_document(d, timeline_format, keys::timeline);
  const std::filesystem::path beside = folder.empty() ? std::filesystem::path(d.file()).parent_path() : folder;
  std::vector<std::string> files;
  if (const auto traces = top.find("traces")) {
    for (const json_node n : traces->elements("an array of traces")) {
      files.push_back((beside / json_object(n, keys::bandwidth_trace).at("file", "the name of a file").text()).string());
    }
  }
  return files;
}

namespace detail {

HETPLAN_INLINE json event_json(const adapt::event& e, const cluster& c) {
  json o;
  put(o, "at", e.at);
  if (const auto* r = std::get_if<adapt::capacity_becomes>(&e.what)) {
    o["resource"] = c.network()[r->resource].name;
    put(o, "capacity", r->capacity);
  } else if (const auto* s = std::get_if<adapt::speed_becomes>(&e.what)) {
    o["device"] = c[s->device].name;
    put(o, "speed", s->speed);
  } else if (const auto* l = std::get_if<adapt::device_leaves>(&e.what)) {
    o["device"] = c[l->device].name;
    o["leaves"] = true;
  } else if (const auto* j = std::get_if<adapt::device_joins>(&e.what)) {
    o["device"] = c[j->device].name;
    o["joins"] = true;
  } else if (const auto* b = std::get_if<adapt::transfer_begins>(&e.what)) {
    json& t = o["transfer"];
    t["from"] = c[b->from].name;
    t["to"] = c[b->to].name;
    put(t, "bytes", b->volume);
    if (b->priority != 0) t["priority"] = b->priority;
  } else if (const auto* q = std::get_if<adapt::qoe_becomes>(&e.what)) {
    if (q->latency) put(o["qoe"], "latency", *q->latency);
    if (q->deadline) put(o["qoe"], "deadline", *q->deadline);
  }
  return o;
}

}  // namespace detail

HETPLAN_INLINE std::string write_timeline(const adapt::timeline& t, const cluster& c) {
  json o;
  o["format"] = timeline_format;
  put(o, "duration", t.duration);
  if (!t.events.empty()) o["events"] = json::array();
  for (const adapt::event& e : t.events) o["events"].push_back(detail::event_json(e, c));
  return json_text(o);
}

}  // namespace hetplan::io
