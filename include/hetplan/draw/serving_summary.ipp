// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_summary.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <variant>

#include <hetplan/draw/clock_scale.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/report_candidates.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/draw/ticks.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE server_slots::server_slots(const serve::edge_cloud& cloud, std::size_t most) : cloud_(&cloud) {
  const auto ring_size = static_cast<std::size_t>(cloud.ring.group);
  const std::size_t each = (cloud.size() + most - 1) / most;
  for (std::size_t first = 0; first < cloud.size(); first += ring_size) {
    const std::size_t end = std::min(cloud.size(), first + ring_size);
    for (std::size_t s = first; s < end; s += each) slots_.push_back({s, std::min(each, end - s), first / ring_size});
  }
}

HETPLAN_INLINE std::size_t server_slots::most_servers() const {
  return std::ranges::max_element(slots_, {}, [](const slot& s) { return s.count; })->count;
}

HETPLAN_INLINE std::string server_slots::name(const slot& s) const {
  const auto& first = cloud_->servers[s.first].name;
  return s.count == 1 ? first : first + " to " + cloud_->servers[s.first + s.count - 1].name;
}

HETPLAN_INLINE std::vector<std::size_t> server_slots::ring_edges() const {
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i < slots_.size(); ++i) {
    if (slots_[i].ring != slots_[i - 1].ring) all.push_back(i);
  }
  return all;
}

HETPLAN_INLINE std::vector<server_slots::label> server_slots::labels(double room) const {
  const auto step = static_cast<std::size_t>(round_step(std::max(1.0, room), 1));
  std::vector<std::size_t> edges = ring_edges();
  edges.push_back(slots_.size());
  std::vector<label> all;
  double free_from = 0;
  std::size_t begin = 0;
  for (const std::size_t end : edges) {
    for (std::size_t i = begin; i < end; i += step) {
      const double until = static_cast<double>(i) + room;
      const bool in_the_way = i > begin && until > static_cast<double>(end) && end < slots_.size();
      if (static_cast<double>(i) < free_from || in_the_way) continue;
      all.push_back({i, cloud_->servers[slots_[i].first].name});
      free_from = until;
    }
    begin = end;
  }
  return all;
}

/// What a fault is to be called.
[[nodiscard]] HETPLAN_INLINE std::string fault_words(const serve::serving_fault& f, const serve::edge_cloud& cloud) {
  const auto& server = cloud[f.server];
  if (std::holds_alternative<serve::server_fails>(f.what)) return server.name + " fails";
  if (const auto* g = std::get_if<serve::gpu_fails>(&f.what)) return "GPU " + std::to_string(g->gpu) + " of " + server.name + " fails";
  if (const auto* d = std::get_if<serve::device_leaves>(&f.what))
    return server.devices[static_cast<std::size_t>(d->device)].name + " of " + server.name + " leaves";
  if (const auto* d = std::get_if<serve::device_registers>(&f.what))
    return server.devices[static_cast<std::size_t>(d->device)].name + " registers at " + server.name;
  if (std::holds_alternative<serve::ring_cut>(f.what)) return "ring cut behind " + server.name;
  if (const auto* l = std::get_if<serve::slow_link>(&f.what)) return "link of " + server.name + " at " + fixed(100 * l->factor, 1) + " %";
  if (std::holds_alternative<serve::wrong_state>(f.what)) return server.name + " tells wrong states";
  return server.name + (std::holds_alternative<serve::server_joins>(f.what) ? " is to join" : " is to leave");
}

HETPLAN_INLINE serving_view::serving_view(const serve::service_history& h, const serve::edge_cloud& c, const std::vector<serve::service>& s,
                                          const serve::deployment& f, const serve::serving_options& run)
    : history(h), cloud(c), services(s), first(f), duration_s(h.duration.value() > 0 ? h.duration.value() : 1) {
  const double begin_s = h.begin.value();
  for (const auto& t : serve::turns(run.faults)) {
    const double at_s = std::max(0.0, t.at_s - begin_s);
    if (t.ends || at_s > duration_s) continue;
    const auto& fault = run.faults[t.fault];
    const double until_s = std::visit(
        [&](const auto& what) {
          if constexpr (requires { what.until; }) return std::max(0.0, what.until.value() - begin_s);
          else return at_s;
        },
        fault.what);
    marks.push_back({at_s, until_s, fault_words(fault, c), true, {}});
    if (std::holds_alternative<serve::server_fails>(fault.what)) marks.back().lost = fault.server;
  }
  for (std::uint64_t k = 0; k < h.changes; ++k) {
    const double at_s =
        k < run.changes.at.size() ? run.changes.at[k].value() - begin_s : static_cast<double>(k + 1) * run.changes.cycle.value();
    if (at_s > 0 && at_s <= duration_s) marks.push_back({at_s, at_s, "deployment changes", false, {}});
  }
  std::ranges::stable_sort(marks, {}, [](const serving_mark& m) { return m.from_s; });
}

HETPLAN_INLINE std::string swatch(color c) { return "<i class=\"swatch\" style=\"background-color:" + c.hex() + "\"></i>"; }

HETPLAN_INLINE color outcome_color(serve::request_outcome o) {
  constexpr std::array<color, serve::request_outcomes> colors{
      {{26, 138, 107}, {243, 178, 100}, {104, 188, 170}, {214, 106, 18}, {143, 100, 190}, {50, 118, 196}, {134, 146, 160}, {206, 50, 88}}};
  return colors[static_cast<std::size_t>(o)];
}

HETPLAN_INLINE std::string outcome_words(serve::request_outcome o) {
  std::string text(to_string(o));
  for (char& c : text) c = c == '_' ? ' ' : c;
  return text;
}

[[nodiscard]] HETPLAN_INLINE std::string_view outcome_meaning(serve::request_outcome o) {
  using enum serve::request_outcome;
  switch (o) {
    case served: return "within the SLO, or at the whole rate";
    case late: return "answered after the SLO";
    case in_part: return "a stream at less than it wanted";
    case timed_out: return "the SLO was over before it began";
    case too_many_offloads: return "might be passed on no more";
    case no_resources: return "nobody known could";
    case lost: return "its server was not there";
    case failed: return "a fault took it along";
  }
  return {};
}

HETPLAN_INLINE std::string serving_title(const serving_view& view) {
  const auto n = view.history.requests();
  return view.cloud.name + ": " + grouped(static_cast<long long>(n)) + (n == 1 ? " request over " : " requests over ") +
         clock_text(view.history.duration.value());
}

/// A bar of the outcomes from one on, and the words before it.
template <class Count>
[[nodiscard]] std::string outcome_bar(std::string_view words, serve::request_outcome first, Count&& count) {
  double sum = 0;
  for (auto k = static_cast<std::size_t>(first); k < serve::request_outcomes; ++k)
    sum += static_cast<double>(count(static_cast<serve::request_outcome>(k)));
  std::string text = "<div class=\"named\"><span>" + std::string(words) + "</span><div class=\"share\">";
  for (auto k = static_cast<std::size_t>(first); k < serve::request_outcomes && sum > 0; ++k) {
    const auto o = static_cast<serve::request_outcome>(k);
    const auto n = static_cast<double>(count(o));
    if (n == 0) continue;
    text += "<i style=\"width:" + fixed(100 * n / sum, 3) + "%;background-color:" + outcome_color(o).hex() + "\" title=\"" +
            xml_text(outcome_words(o) + ": " + grouped(static_cast<long long>(n))) + "\"></i>";
  }
  return text + "</div></div>\n";
}

[[nodiscard]] HETPLAN_INLINE std::string outcome_section(const serving_view& view) {
  const auto& h = view.history;
  const auto all = h.requests(), served = h.count(serve::request_outcome::served);
  if (all == 0) return {};
  const auto count = [&](serve::request_outcome o) { return h.count(o); };
  std::string text = "<div id=\"outcomes\">\n" + outcome_bar("all requests", serve::request_outcome::served, count);
  if (served < all && served > 0) text += outcome_bar("not served", serve::request_outcome::late, count);
  text += "<div class=\"legend\">";
  for (std::size_t k = 0; k < serve::request_outcomes; ++k) {
    const auto o = static_cast<serve::request_outcome>(k);
    if (h.count(o) == 0) continue;
    text += "<span title=\"" + std::string(outcome_meaning(o)) + "\">" + swatch(outcome_color(o)) + outcome_words(o) + " <b>" +
            grouped(static_cast<long long>(h.count(o))) + "</b> (" +
            xml_text(percent(static_cast<double>(h.count(o)) / static_cast<double>(all))) + ")</span>";
  }
  return text + "</div>\n</div>\n";
}

HETPLAN_INLINE std::string serving_header(const serving_view& view) {
  const auto& h = view.history;
  const auto counted = [](std::size_t n, const char* one, const char* several) {
    return grouped(static_cast<long long>(n)) + (n == 1 ? one : several);
  };
  std::string text = "<header id=\"summary\">\n<h1>" + xml_text(serving_title(view)) + "</h1>\n<p class=\"quiet\">" +
                     counted(view.cloud.size(), " server", " servers") + " in " + counted(view.rings(), " ring", " rings") + " · " +
                     counted(view.services.size(), " service", " services") + " · " +
                     counted(view.first.instances.size(), " instance", " instances");
  if (h.changes > 0) text += " at first · " + counted(h.changes, " change of the deployment", " changes of the deployment");
  std::size_t faults = 0;
  for (const auto& m : view.marks) faults += m.is_fault ? 1U : 0U;
  if (faults > 0) text += " · " + counted(faults, " fault", " faults");
  text += "</p>\n";
  if (!h.result.ok())
    text += "<p id=\"status\" class=\"alarm\"><strong>" + std::string(to_string(h.result.result)) +
            "</strong>: " + xml_text(h.result.reason) + "</p>\n";
  text += "<div class=\"facts\">\n" + fact(grouped(static_cast<long long>(h.requests())), "requests", "fact-requests");
  for (const bool streams : {false, true}) {
    const auto part = h.attained_by(view.services, streams);
    if (!(part.asked > 0)) continue;
    const std::string what = streams ? "frames of streams" : "requests with a latency", of = streams ? "-frames" : "";
    text += fact(percent(part.share()), "of the " + what + (h.result.ok() ? " were served" : " that have ended"), "fact-attainment" + of) +
            fact(short_number(part.credit / view.duration_s) + "/s", "goodput: " + what, "fact-goodput" + of);
  }
  text += fact(fixed(h.mean_offloads(), 3), "offloads a request, on average", "fact-offloads") + "</div>\n" + outcome_section(view) +
          "<nav><a href=\"#goodput\">goodput</a><a href=\"#levels\">service levels</a><a href=\"#places\">who served what</a>"
          "<a href=\"#deployment\">deployment</a><a href=\"#queues\">queues</a><a href=\"#offloads\">offloads</a></nav>\n";
  return text + "</header>\n";
}

HETPLAN_INLINE std::string services_table(const serving_view& view) {
  std::string text =
      "<table id=\"services\">\n<thead><tr><th>Service</th><th>Wanted</th><th class=\"n\">Requests</th><th>Served</th><th "
      "class=\"n\">Goodput</th><th class=\"n\">Late</th><th class=\"n\">In part</th><th class=\"n\">Turned down</th><th "
      "class=\"n\">Lost, failed</th><th class=\"n\">Half within</th><th class=\"n\">99 % within</th></tr></thead>\n<tbody>\n";
  for (std::size_t l = 0; l < view.services.size(); ++l) {
    using enum serve::request_outcome;
    const auto& s = view.services[l];
    const auto& t = view.history.services[l];
    const auto number = [](std::uint64_t n) { return cell(n == 0 ? "–" : grouped(static_cast<long long>(n)), " class=\"n\""); };
    const auto quantile = [&](double q) {
      return cell(t.latency.count() == 0 ? "–" : engineering(t.latency.quantile(q).value(), "s"), " class=\"n\"");
    };
    const std::string wanted = s.is_stream() ? fixed(s.rate, 2) + " frames/s" : "within " + engineering(s.latency.value(), "s");
    text += "<tr><td>" + swatch(view.line(l)) + xml_text(s.name) + "</td>" + cell(wanted) + number(t.requests()) +
            meter(t.attainment(), false, t.asked > 0 ? percent(t.attainment()) : "–") +
            cell(short_number(t.credit / view.duration_s) + "/s", " class=\"n\"") + number(t[late]) + number(t[in_part]) +
            number(t[timed_out] + t[too_many_offloads] + t[no_resources]) + number(t[lost] + t[failed]) + quantile(0.5) + quantile(0.99) +
            "</tr>\n";
  }
  return text +
         "</tbody></table>\n<p class=\"note\">Served: share of requests, of a stream's frames. Turned down: timed out, too many offloads "
         "or no "
         "resources. Times are those of answers that came, late ones too; the exact ones, or at most 1.6 % above.</p>\n";
}

}  // namespace hetplan::draw::detail
