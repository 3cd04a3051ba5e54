#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Draws what `bench_partition --growth` prints: time and kept partial plans over each size, log-log.

usage: bench_partition --growth | python3 plot_growth.py > search_growth.svg
"""
import json
import math
import sys

TITLES = {"L": ("layers L", 213), "N": ("devices N", 16), "K": ("plans per cell K", 10),
          "B_m": ("microbatch size B_m", 8), "M": ("microbatches M", 16)}
WIDTH, HEIGHT, LEFT, TOP, GAP_X, GAP_Y = 150, 120, 74, 46, 26, 26
TIME, KEPT = "#1f6fb4", "#c2571a"


def decades(low, high):
    """The exponents that enclose a range, at least one decade."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return first, max(last, first + 1)


def label(exponent):
    return {0: "1", 1: "10"}.get(exponent) or f'10<tspan dy="-4" font-size="8">{exponent}</tspan>'.replace(">-", ">−")


def text(x, y, words, anchor="middle", size=11, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {more}>{words}</text>'


def panel(x, y, rows, key, factor, axis, colour, first_column, last_row, title):
    """One curve; rows of a figure share the vertical axis."""
    first, last = axis
    values = [r["value"] for r in rows]
    low, high = math.log(values[0]), math.log(values[-1])
    at_x = lambda v: x + 8 + (WIDTH - 16) * (math.log(v) - low) / (high - low)
    at_y = lambda v: y + HEIGHT - HEIGHT * (math.log10(v) - first) / (last - first)
    out = [f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>']
    for e in range(first, last + 1):
        level = at_y(10.0 ** e)
        out.append(f'<line x1="{x}" x2="{x + WIDTH}" y1="{level:.1f}" y2="{level:.1f}" stroke="#e2e2e2"/>')
        if first_column:
            out.append(text(x - 6, level + 4, label(e), "end", 10))
    for v in values:
        out.append(f'<line x1="{at_x(v):.1f}" x2="{at_x(v):.1f}" y1="{y + HEIGHT}" y2="{y + HEIGHT + 4}" stroke="#888"/>')
        if last_row:
            out.append(text(at_x(v), y + HEIGHT + 15, v, size=9))
    points = [(at_x(r["value"]), at_y(factor * r[key])) for r in rows]
    out.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6" fill="{colour}"/>' for a, b in points]
    if last_row:
        out.append(text(x + WIDTH / 2, y + HEIGHT + 31, title))
    return out


def main():
    rows = [json.loads(line) for line in sys.stdin if line.strip()]
    sweeps = [k for k in TITLES if any(r["varied"] == k for r in rows)]
    width = LEFT + len(sweeps) * (WIDTH + GAP_X)
    height = TOP + 2 * (HEIGHT + GAP_Y) + 26
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" fill="#222">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           text(LEFT, 24, "Two-substate search around " + ", ".join(f"{k} = {TITLES[k][1]}" for k in sweeps) + "; one size varied per column", "start", 13)]
    for line, (key, factor, name, colour) in enumerate((("median_s", 1e3, "time [ms]", TIME), ("kept", 1, "partial plans kept", KEPT))):
        values = [factor * r[key] for r in rows]
        axis, y = decades(min(values), max(values)), TOP + line * (HEIGHT + GAP_Y)
        out.append(text(20, y + HEIGHT / 2, name, more=f'transform="rotate(-90 20 {y + HEIGHT / 2})"'))
        for column, k in enumerate(sweeps):
            mine = [r for r in rows if r["varied"] == k]
            out += panel(LEFT + column * (WIDTH + GAP_X), y, mine, key, factor, axis, colour, column == 0, line == 1, TITLES[k][0])
    print("\n".join(out + ["</svg>"]))


if __name__ == "__main__":
    main()
