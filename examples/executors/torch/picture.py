# SPDX-License-Identifier: BSL-1.0
"""A picture of an iteration: for each device, its tasks as they were predicted above the same tasks as they were measured."""

from html import escape
from typing import Any, Dict, List

WIDTH, NAMES, MARGIN = 1200, 150, 16         # pixels
BAR, BETWEEN, TOP = 18, 12, 56               # of a row, between devices, above the first
COLOURS = {"F": "#1f5fa8", "B": "#d66a12", "W": "#2e7d4f"}  # blue goes forward, orange back, green to the weights, as in the library's pictures


def svg(title: str, trace: List[Dict[str, Any]]) -> str:
    """`trace` has tasks with device, phase, stage, microbatch, and [start, end, ...] of "predicted" and "measured" in seconds."""
    tasks = [t for t in trace if t["phase"] in COLOURS and t["measured"]]
    devices = list(dict.fromkeys(t["device"] for t in tasks))
    last = max((t[which][1] for t in tasks for which in ("predicted", "measured")), default=0) or 1.0
    pixels = (WIDTH - NAMES - MARGIN) / last  # per second
    bottom = TOP + len(devices) * (2 * BAR + BETWEEN)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + 32}" font-family="sans-serif" font-size="11" fill="#1f2933">',
           f'<rect width="{WIDTH}" height="{bottom + 32}" fill="white"/>', f'<text x="{MARGIN}" y="24" font-size="15">{escape(title)}</text>']
    step = next(s for e in range(-6, 6) for s in (10.0 ** e, 2 * 10.0 ** e, 5 * 10.0 ** e) if last / s <= 10)
    for i in range(int(last / step) + 1):
        x = NAMES + i * step * pixels
        out.append(f'<path d="M{x:.1f} {TOP - 6}V{bottom}" stroke="#e4e8ed"/>'
                   f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{i * step:g} s</text>')
    for d, device in enumerate(devices):
        for row, which in enumerate(("predicted", "measured")):
            y = TOP + d * (2 * BAR + BETWEEN) + row * BAR
            name = f'<tspan font-weight="bold">{escape(device)}</tspan> ' if row == 0 else ""
            out.append(f'<text x="{NAMES - 8}" y="{y + 13}" text-anchor="end">{name}{which}</text>')
            for t in (t for t in tasks if t["device"] == device):
                start, end = t[which][:2]
                x, width = NAMES + start * pixels, max(0.5, (end - start) * pixels)
                what = f'{t["phase"]}{t["stage"]} of microbatch {t["microbatch"]}, {which}: {start:.4f} s to {end:.4f} s'
                out.append(f'<rect x="{x:.1f}" y="{y + 1}" width="{width:.1f}" height="{BAR - 2}" fill="{COLOURS[t["phase"]]}" stroke="white" '
                           f'stroke-width="0.5"><title>{what}</title></rect>')
                if width > 16:
                    out.append(f'<text x="{x + width / 2:.1f}" y="{y + 13}" text-anchor="middle" fill="white">{t["microbatch"]}</text>')
    shown = {t["phase"] for t in tasks}
    names = (("F", "forward"), ("B", "gradients of inputs" if "W" in shown else "backward"), ("W", "gradients of weights"))
    for x, (phase, what) in zip((NAMES, NAMES + 90, NAMES + 230), names[:3 if "W" in shown else 2]):
        out.append(f'<rect x="{x}" y="33" width="12" height="12" fill="{COLOURS[phase]}"/><text x="{x + 17}" y="43">{what}</text>')
    return "\n".join([*out, "</svg>\n"])
