// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_summary.hpp>

#include <array>
#include <cstdint>

#include <hetplan/draw/clock_scale.hpp>
#include <hetplan/draw/markup.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/report_tables.hpp>

namespace hetplan::draw::detail {

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
