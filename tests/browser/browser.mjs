// Chromium, driven for tests: a page with everything that went wrong on it, and every request that left it.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const modules = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = modules("playwright-core");
const AXE = modules.resolve("axe-core/axe.min.js");

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
FLAGS.push("--disable-component-update", "--disable-sync");
const PATIENCE = 180_000; // milliseconds for any one thing: machines of CI are shared

/** Calls work(open) with `open(file, settings)`, which returns a watched page; the browser is closed in any case. */
export async function withBrowser(work) {
  const folder = mkdtempSync(join(tmpdir(), "saltus-browser-"));
  const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
  const context = await chromium.launchPersistentContext(folder, { executablePath, headless: true, args: FLAGS, timeout: PATIENCE });
  context.setDefaultTimeout(PATIENCE);
  try {
    return await work((file, settings) => open(context, file, settings));
  } finally {
    await context.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function open(context, file, { width = 1280, height = 900, dark = false } = {}) {
  const page = await context.newPage();
  const seen = { errors: [], requests: [] };
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && seen.errors.push(message.text()));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("dialog", (dialog) => (seen.errors.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  const served = file.startsWith("http://"); // of a site that is served, requests to its own server are its own
  const address = served ? file : pathToFileURL(file).href;
  page.on("request", (request) => {
    const url = request.url().split("#")[0];
    if (url !== address && !(served && new URL(url).origin === new URL(address).origin) && !url.startsWith("data:") && !url.startsWith("blob:")) seen.requests.push(url);
  });
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: dark ? "dark" : "light", reducedMotion: "reduce" });
  await page.goto(address);
  return Object.assign(page, { seen });
}

/** What axe-core finds wrong, as short sentences. rules: tags such as "wcag2aa"; all rules unless given. */
export async function violations(page, rules = null) {
  await page.evaluate(readFileSync(AXE, "utf8"));
  const settings = { resultTypes: ["violations"], ...(rules && { runOnly: rules }) };
  const found = await page.evaluate((settings) => globalThis.axe.run(document, settings), settings);
  return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.join(" ")}: ${n.failureSummary}`));
}

/** Elements that reach beyond the page to the right, other than inside something that scrolls by itself. */
export function overflowing(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("body *")]
      .filter((e) => e.parentElement.closest(".scroll, pre, svg") === null && !e.matches(".skip") && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
      .map((e) => `${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`),
  );
}
