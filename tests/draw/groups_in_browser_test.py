# SPDX-License-Identifier: BSL-1.0
"""The page of `hetplan groups` in a browser: its scripts start without an error, cells and merges explain themselves. Skipped without
Chromium."""

import os
import pathlib

from browser import main, page_test

CLUSTER = pathlib.Path(os.environ["HETPLAN_SOURCE_DIR"]) / "bench/settings/deepcee-1.json"

# Runs in the page after its scripts. Its findings are read from the dumped document.
DRIVER = """
<script>
window.addEventListener("load", () => {
  const root = document.documentElement, tip = document.getElementById("tip");
  const under = (element, row, column) => {
    const box = element.getBoundingClientRect();
    const at = { clientX: box.left + column * box.width, clientY: box.top + row * box.height, bubbles: true, cancelable: true };
    element.dispatchEvent(new PointerEvent("pointermove", at));
    return tip.hidden ? null : tip.textContent;
  };
  const grid = document.getElementById("groups-grid"), chart = document.getElementById("groups-chart");
  root.dataset.found = JSON.stringify({
    near: under(grid, 0.5 / 22, 1.5 / 22),
    far: under(grid, 21.5 / 22, 0.5 / 22),
    merge: under(document.querySelector(".merge:not(.inside)"), 0.5, 0),
    fits: chart.getBoundingClientRect().width <= document.querySelector(".chart").clientWidth + 1,
  });
});
</script>
"""


class a_page_of_groups_in_a_browser(page_test):
    @classmethod
    def make_page(cls):
        cls.run_cli("groups", CLUSTER, "--html", cls.page)

    def test_what_is_under_the_pointer(self):
        self.assertEqual(self.found_by(DRIVER), {"near": "cloud0 · cloud1\n8.2 ms", "far": "end3 · cloud0\n80.2 ms",
                                                 "merge": "between regions\n80.2 ms apart", "fits": True})


if __name__ == "__main__":
    main()
