// A report as a person uses it: node report.mjs REPORT.html [FOLDER for screenshots]
import { join } from "node:path";
import { overflowing, violations, withBrowser } from "./browser.mjs";

const [file, folder] = process.argv.slice(2);
const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 800, dark: true } };

const told = await withBrowser(async (open) => {
  const found = {};
  for (const [name, settings] of Object.entries(sizes)) {
    const page = await open(file, settings);
    const rows = () => page.$$eval("table[data-sortable] tbody tr:not([hidden]) td:first-child", (cells) => cells.map((c) => c.textContent));
    const all = await rows();
    if (folder) await page.screenshot({ path: join(folder, `report-${name}.png`), fullPage: true });
    const wrong = await violations(page);
    const wide = await overflowing(page);
    await page.fill("#wanted", all[0].slice(0, 6));
    const filtered = await rows();
    const count = await page.textContent("#wanted-count");
    await page.fill("#wanted", "");
    const heading = page.locator("table[data-sortable] th button", { hasText: "ESS" });
    await heading.focus();
    await page.keyboard.press("Enter");
    const up = await rows();
    await page.keyboard.press("Enter");
    const down = await rows();
    await page.click('nav a[href="#again"]');
    const scrolled = await page.evaluate(() => window.scrollY);
    await page.emulateMedia({ media: "print" });
    const printed = await page.evaluate(() => getComputedStyle(document.querySelector("nav")).display);
    const executed = await page.evaluate(() => document.querySelectorAll("b, img[src=x], [onerror]").length);
    Object.assign(found, { [name]: { all, filtered, count, up, down, scrolled, printed, executed, wrong, wide, ...page.seen } });
    await page.close();
  }
  return found;
});
console.log(JSON.stringify(told));
