// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/page.hpp>

#include <hetplan/draw/markup.hpp>
#include <hetplan/draw/report_script.hpp>
#include <hetplan/draw/report_style.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

HETPLAN_INLINE std::string fact(std::string_view value, std::string_view about, std::string_view id, bool alarm) {
  return "<div id=\"" + std::string(id) + "\"" + (alarm ? " class=\"alarm\"" : "") + "><b>" + xml_text(value) + "</b><span>" +
         xml_text(about) + "</span></div>\n";
}

HETPLAN_INLINE std::string percent(double share) {
  if (share > 0 && share < 5e-5) return "<0.01 %";
  return fixed(100 * share, share < 0.1 ? 2 : share < 1 ? 1 : 0) + " %";
}

HETPLAN_INLINE std::string page(std::string_view title, std::string_view body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
         "'unsafe-inline'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
         "dark\">\n<title>" +
         xml_text(title) + "</title>\n<style>" + std::string(report_style) + "</style>\n</head>\n<body>\n<main>\n" + std::string(body) +
         "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n<script>" + std::string(report_script) + "</script>\n</body>\n</html>\n";
}

HETPLAN_INLINE std::string section(std::string_view id, std::string_view title, std::string_view about, std::string_view content) {
  return "<section id=\"" + std::string(id) + "\">\n<h2>" + std::string(title) + "</h2>\n<p>" + std::string(about) + "</p>\n" +
         std::string(content) + "</section>\n";
}

}  // namespace HETPLAN_NAMESPACE::draw::detail
