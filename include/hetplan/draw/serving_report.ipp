// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_report.hpp>

#include <algorithm>

#include <hetplan/draw/clock_script.hpp>
#include <hetplan/draw/grid_script.hpp>
#include <hetplan/draw/heat_grid.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/serving_deployment.hpp>
#include <hetplan/draw/serving_flows.hpp>
#include <hetplan/draw/serving_goodput.hpp>
#include <hetplan/draw/serving_levels.hpp>
#include <hetplan/draw/serving_places.hpp>
#include <hetplan/draw/serving_queues.hpp>
#include <hetplan/draw/serving_summary.hpp>
#include <hetplan/draw/serving_view.hpp>

namespace HETPLAN_NAMESPACE::draw {

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::string goodput_section(const serving_view& view) {
  return section(
      "goodput", "Goodput", "What was served, stacked by service, when it ended; the line is what was asked for, when it arrived.",
      "<div class=\"tools\"><button id=\"zoom-in\" type=\"button\">Zoom in</button><button id=\"zoom-out\" type=\"button\">Zoom "
      "out</button><button id=\"pan-left\" type=\"button\" aria-label=\"earlier\">◀</button><button id=\"pan-right\" "
      "type=\"button\" aria-label=\"later\">▶</button><button id=\"zoom-reset\" type=\"button\">Whole run</button><span "
      "class=\"note\">Drag to zoom to a span, Ctrl + wheel to zoom, Shift + wheel to move; double-click for the whole run.</span></div>\n" +
          scrolling(goodput_chart(view)));
}

[[nodiscard]] HETPLAN_INLINE std::string places_section(const serving_view& view) {
  if (!view.is_detailed())
    return section("places", "Who served what where",
                   "Not recorded: the cloud has more than " + std::to_string(serve::most_detailed) + " servers.", {});
  return section(
      "places", "Who served what where",
      "By service and server: what was served, counted where a request was handled last. Every row has a scale of its own; the "
      "number behind it is its sum.",
      "<div class=\"legend\">" + heat_legend("load", "little", "most of the service") + "</div>\n" + scrolling(credit_matrix(view)));
}

[[nodiscard]] HETPLAN_INLINE std::string deployment_section(const serving_view& view) {
  const std::string when = view.history.changes > 0 ? " As it was at first." : "";
  if (view.cloud.size() > most_drawn_servers)
    return section("deployment", "Deployment", "GPUs that each service has on each server." + when,
                   "<div class=\"legend\">" + heat_legend("load", "few", "most GPUs") + "</div>\n" + scrolling(gpu_matrix(view)));
  const bool devices = std::ranges::any_of(view.cloud.servers, [](const serve::edge_server& s) { return !s.devices.empty(); });
  const std::string about =
      "A bar is a GPU, its slices are shares of its compute; ×8: batches of up to 8. Slices on one line are one instance.";
  return section("deployment", "Deployment", about + (devices ? " d0, d1, …: registered devices." : "") + when,
                 scrolling(deployment_picture(view)));
}

[[nodiscard]] HETPLAN_INLINE std::string queue_section(const serving_view& view) {
  const std::string map = queue_map(view);
  if (!map.empty())
    return section("queues", "Queues",
                   "Requests that waited on instances that a server leads, at the first publication of each part of the time.", map);
  if (view.is_detailed()) return section("queues", "Queues", "Nobody waited when servers published their states.", {});
  return section("queues", "Queues", "Not recorded: the cloud has more than " + std::to_string(serve::most_detailed) + " servers.", {});
}

}  // namespace detail

HETPLAN_INLINE std::string serving_report_html(const serve::service_history& h, const serve::edge_cloud& cloud,
                                               const std::vector<serve::service>& services, const serve::deployment& first,
                                               const serve::serving_options& run) {
  const detail::serving_view view(h, cloud, services, first, run);
  std::string body = detail::serving_header(view) + detail::goodput_section(view);
  body +=
      detail::section("levels", "Service levels",
                      "How many requests of a service were answered within a multiple of its SLO. A curve that is high left of the SLO has "
                      "room to spare; one that rises right of it was late.",
                      detail::scrolling(detail::levels_chart(view)) + detail::services_table(view));
  body += detail::places_section(view) + detail::deployment_section(view) + detail::queue_section(view);
  body +=
      detail::section("offloads", "Offloads",
                      "How often requests were passed on, and between which servers. A circle is a ring, its servers clockwise; a band is "
                      "wide at the sender and narrow at the receiver.",
                      detail::flows_section(view));
  body += "<script>" + std::string(detail::clock_script) + std::string(detail::grid_script) + "</script>\n";
  return detail::page(detail::serving_title(view), body);
}

}  // namespace HETPLAN_NAMESPACE::draw
