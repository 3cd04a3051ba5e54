# SPDX-License-Identifier: BSL-1.0
"""Ticks on axes of time: what the script of a page draws is what the program drew. Skipped without Chromium."""

from browser import main, page_test

# Runs in the page after its script. Its findings are read from the dumped document.
DRIVER = """
<script>
window.addEventListener("load", () => {
  const ticks = () => [...document.querySelectorAll("svg.over-time")].map((chart) =>
    [...chart.querySelectorAll(".ticks text")].map((text) => [text.textContent, Math.round(100 * text.getAttribute("x"))]));
  const room = () => Math.min(...[...document.querySelectorAll("svg.over-time .ticks")].flatMap((all) => {
    const boxes = [...all.querySelectorAll("text")].map((text) => text.getBBox());
    return boxes.slice(1).map((box, i) => box.x - boxes[i].x - boxes[i].width);
  }));
  const found = { program: ticks(), rooms: [room()], zoomed: [] };
  for (let i = 0; i < 8; ++i) {
    document.getElementById("zoom-in").click();
    found.zoomed.push(ticks()[0].map(([label]) => label));
    found.rooms.push(room());
  }
  document.getElementById("zoom-reset").click();
  found.script = ticks();
  document.documentElement.dataset.found = JSON.stringify(found);
});
</script>
"""


class ticks_in_a_browser(page_test):
    @classmethod
    def make_page(cls):
        cls.run_cli("init", cls.path / "starter")

    def check(self, command, *files):
        """-> the labels of the whole axis, and of each zoom."""
        page = self.path / f"{command}.html"
        self.run_cli(command, *(self.path / "starter" / name for name in files), "--html", page)
        found = self.found_by(DRIVER, page)
        self.assertEqual(found["script"], found["program"])
        self.assertGreater(min(found["rooms"]), 0, "labels touch")
        for labels in found["zoomed"]:
            self.assertGreater(len(labels), 1)
        return [label for label, _ in found["program"][0]], found["zoomed"]

    def test_in_seconds(self):
        whole, _ = self.check("plan", "model.json", "cluster.json", "job.json")
        self.assertEqual(whole[0].split()[0], "0")
        self.assertEqual(len({label.split()[1] for label in whole}), 1)  # one unit

    def test_as_on_a_clock(self):
        whole, zoomed = self.check("adapt", "model.json", "cluster.json", "job.json", "timeline.json")
        self.assertEqual(whole[:3], ["0", "1 min", "2 min"])
        self.assertTrue(zoomed[-1][0].startswith("4 min 5"), zoomed[-1])

    def test_a_short_run_on_a_clock(self):
        whole, _ = self.check("serve", "cloud.json", "services.json", "requests.csv")
        self.assertEqual(whole[0], "0")


if __name__ == "__main__":
    main()
