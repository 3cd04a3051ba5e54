# SPDX-License-Identifier: BSL-1.0
"""The report in a browser: its script starts without an error, charts zoom, bars explain themselves. Skipped without Chromium."""

import os
import subprocess

from browser import browse, document, main, page_test

CLI = os.environ["HETPLAN_CLI"]

# Runs in the page after its script. Its findings are read from the dumped document.
DRIVER = """
<script>
window.addEventListener("load", () => {
  const root = document.documentElement, found = {};
  const view = () => [Number(root.dataset.from), Number(root.dataset.to)];
  const press = (id) => document.getElementById(id).click();
  const middle = (element) => {
    const box = element.getBoundingClientRect();
    return { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true, cancelable: true };
  };
  const gantt = document.getElementById("gantt");
  const box = gantt.getBoundingClientRect();
  const scale = box.width / gantt.viewBox.baseVal.width;
  const at = (share, more) => ({ clientX: box.left + scale * (Number(gantt.dataset.left) + share * Number(gantt.dataset.width)), clientY: box.top + 60, button: 0, bubbles: true, cancelable: true, ...more });
  found.start = view();

  gantt.dispatchEvent(new WheelEvent("wheel", at(0.5, { deltaY: -100 })));
  found.bare_wheel = view();
  gantt.dispatchEvent(new WheelEvent("wheel", at(0.5, { deltaY: -100, ctrlKey: true })));
  found.wheel = view();
  found.transforms = [...document.querySelectorAll(".over-time .plot")].map((plot) => plot.getAttribute("transform"));
  found.ticks = [...gantt.querySelectorAll(".ticks text")].map((text) => text.textContent);
  press("zoom-reset");
  found.reset = view();
  press("zoom-in");
  found.zoom_in = view();
  press("pan-right");
  found.pan_right = view();
  press("zoom-out");
  found.zoom_out = view();
  gantt.dispatchEvent(new PointerEvent("pointerdown", at(0.25)));
  window.dispatchEvent(new PointerEvent("pointermove", at(0.75)));
  found.span_shown = gantt.querySelector(".span").getAttribute("visibility");
  window.dispatchEvent(new PointerEvent("pointerup", at(0.75)));
  found.drag = view();
  found.span_hidden = gantt.querySelector(".span").getAttribute("visibility");
  gantt.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true }));
  found.key = view();
  for (let i = 0; i < 30; ++i) press("zoom-in");
  found.most = view();
  gantt.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
  found.double_click = view();
  document.querySelector("#critical-links tbody tr:last-child").click();
  found.row = view();
  press("zoom-reset");

  const bar = gantt.querySelector(".bars rect.c");
  bar.dispatchEvent(new PointerEvent("pointermove", middle(bar)));
  const tip = document.getElementById("tip");
  found.tip = { hidden: tip.hidden, text: tip.textContent };
  gantt.dispatchEvent(new PointerEvent("pointermove", at(0.5)));
  found.tip_gone = tip.hidden;
  const opacity = () => [...gantt.querySelectorAll(".bars > rect:not(.c)")].filter((r) => getComputedStyle(r).opacity < 1).length;
  found.before_mark = opacity();
  press("mark-critical");
  found.marked = { pressed: document.getElementById("mark-critical").getAttribute("aria-pressed"), faded: opacity() };
  found.titles = document.querySelectorAll("svg title").length;
  root.dataset.found = JSON.stringify(found);
});
</script>
"""


class a_report_in_a_browser(page_test):
    @classmethod
    def make_page(cls):
        cls.run_cli("plan", "qwen3-1.7b", "smart-home-2", "--html", cls.page, "--quiet")

    def opened(self, page, *, ready="1"):
        shown = document(browse(page, "--dump-dom"))
        self.assertEqual(shown.root.get("data-ready"), ready)
        return shown

    def test_every_part_is_there_and_the_script_starts(self):
        shown = self.opened(self.page)
        self.assertNotIn("data-error", shown.root)
        for name in ("summary", "plan", "gantt", "critical-strip", "critical-links", "bandwidth-chart", "memory-chart", "energy-chart", "pareto-chart", "tip"):
            self.assertIn(name, shown.ids)

    def test_an_error_of_a_script_is_seen(self):
        shown = self.opened(self.with_script("<script>throw new Error('on purpose')</script>"))
        self.assertIn("on purpose", shown.root["data-error"])

    def test_nothing_can_be_fetched(self):
        page = self.with_script("<script>document.addEventListener('securitypolicyviolation', (e) => { document.documentElement.dataset['refused' + e.effectiveDirective.slice(0, 3)] = e.blockedURI; });"
                                "fetch('http://localhost:1/').catch(() => 0); document.body.append(Object.assign(new Image(), { src: 'http://localhost:1/x.png' }));</script>")
        shown = document(browse(page, "--virtual-time-budget=2000", "--dump-dom"))
        self.assertIn("localhost", shown.root.get("data-refusedcon", ""))  # connect-src
        self.assertIn("localhost", shown.root.get("data-refusedimg", ""))

    def test_it_zooms_moves_and_explains(self):
        found = self.found_by(DRIVER)

        def near(name, start, end):
            self.assertAlmostEqual(found[name][0], start, delta=0.01, msg=name)
            self.assertAlmostEqual(found[name][1], end, delta=0.01, msg=name)

        near("start", 0, 1)
        near("bare_wheel", 0, 1)  # scrolls the page
        start, end = found["wheel"]
        self.assertLess(end - start, 0.9)
        self.assertAlmostEqual((start + end) / 2, 0.5, delta=0.01)  # zooms around the pointer
        self.assertEqual(len(found["transforms"]), 3)
        self.assertEqual(len(set(found["transforms"])), 1)  # all charts together
        self.assertGreater(len(found["ticks"]), 3)
        near("reset", 0, 1)
        near("zoom_in", 0.25, 0.75)
        near("pan_right", 0.45, 0.95)
        near("zoom_out", 0, 1)
        self.assertEqual(found["span_shown"], "visible")
        near("drag", 0.25, 0.75)
        self.assertEqual(found["span_hidden"], "hidden")
        near("key", 0, 1)
        self.assertAlmostEqual(found["most"][1] - found["most"][0], 0.01, delta=1e-4)
        near("double_click", 0, 1)
        self.assertAlmostEqual(found["row"][1], 1, delta=1e-6)
        self.assertGreater(found["row"][0], 0)

        self.assertFalse(found["tip"]["hidden"])
        self.assertIn("on the critical path", found["tip"]["text"])
        self.assertTrue(found["tip_gone"])
        self.assertEqual(found["before_mark"], 0)
        self.assertEqual(found["marked"]["pressed"], "true")
        self.assertGreater(found["marked"]["faded"], 0)
        self.assertEqual(found["titles"], 0)  # else the browser would show a second tooltip

    def test_the_page_is_drawn(self):
        self.check_drawn()

    def test_without_a_plan_the_page_still_opens(self):
        page = self.path / "none.html"
        result = subprocess.run([CLI, "plan", "qwen-omni", "smart-home-2", "--html", page, "--quiet"], capture_output=True, timeout=120)
        self.assertEqual(result.returncode, 1)
        shown = self.opened(page)
        self.assertNotIn("data-error", shown.root)
        self.assertIn("no-plan", shown.ids)
        self.assertNotIn("gantt", shown.ids)


if __name__ == "__main__":
    main()
