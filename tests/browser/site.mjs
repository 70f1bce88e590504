// The documentation as a reader sees it: node site.mjs build/site [FOLDER for screenshots]. Exits 1 where something is wrong.
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { violations, withBrowser } from "./browser.mjs";

const [folder, shots] = process.argv.slice(2);
const PAGES = ["index.html", "gallery.html", "tutorial.html", "method.html", "reference/index.html", "explore.html", "explorer/explorer.html"];
const SIZES = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 800, dark: true } };
const WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]; // what the theme itself does against mere advice stays
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".json": "application/json", ".png": "image/png" };

/** Whether the page scrolls sideways: wide tables and code scroll inside themselves. */
const tooWide = (page) => page.evaluate(() => (document.documentElement.scrollWidth > document.documentElement.clientWidth + 1 ? [`${document.documentElement.scrollWidth} pixels wide`] : []));

const server = createServer((request, answer) => {
  const file = join(folder, decodeURIComponent(request.url.split("?")[0]));
  if (!existsSync(file) || statSync(file).isDirectory()) return answer.writeHead(404).end();
  answer.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
  createReadStream(file).pipe(answer);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const home = `http://127.0.0.1:${server.address().port}/`;

const wrong = await withBrowser(async (open) => {
  const found = [];
  for (const name of PAGES)
    for (const [size, settings] of Object.entries(SIZES)) {
      const page = await open(home + name, settings);
      if (shots) await page.screenshot({ path: join(shots, `${name.replace(/[/.]/g, "-")}-${size}.png`) });
      const broken = await page.$$eval("img", (images) => images.filter((i) => i.complete && !i.naturalWidth).map((i) => `no picture: ${i.src}`));
      const seen = [...page.seen.errors, ...page.seen.requests.map((r) => `request to ${r}`), ...broken, ...(await violations(page, WCAG)), ...(await tooWide(page))];
      found.push(...seen.map((s) => `${name}, ${size}: ${s}`));
      await page.evaluate(() => localStorage.clear()); // the theme keeps light or dark there: the next page follows its own setting
      await page.close();
    }
  const page = await open(home + "index.html", SIZES.desktop);
  await page.fill(".md-search__input", "tempering");
  await page.waitForSelector(".md-search-result__item", { timeout: 20_000 }).catch(() => found.push("search finds nothing for 'tempering'"));
  return found;
});
server.close();
console.log(wrong.length ? wrong.slice(0, 60).join("\n") : `${PAGES.length} pages at two widths: nothing wrong`);
process.exit(wrong.length ? 1 : 0);
