// The explorer as a person uses it: node explorer.mjs EXPLORER.html [FOLDER for screenshots]
import { join } from "node:path";
import { overflowing, violations, withBrowser } from "./browser.mjs";

const [file, folder] = process.argv.slice(2);
const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 800, dark: true } };

const told = await withBrowser(async (open) => {
  const found = {};
  for (const [name, settings] of Object.entries(sizes)) {
    const page = await open(file, settings);
    const says = async (id) => (await page.textContent(`#out-${id}`)).trim();
    const picture = (id) => page.$eval(`#picture-${id}`, (canvas) => canvas.toDataURL());
    const look = async () => ({ state: await says("state"), proposal: await picture("proposal"), accepted: await says("accepted") });
    const steps = [];
    const changes = async (what, act) => {
      const before = await look();
      await act();
      const after = await look();
      steps.push([what, ...Object.keys(before).filter((key) => before[key] !== after[key])]);
    };
    const slide = (id, value) => page.$eval(`#${id}`, (input, v) => ((input.value = v), input.dispatchEvent(new Event("input"))), String(value));
    await changes("drag", async () => {
      const canvas = page.locator("#picture-target");
      await canvas.scrollIntoViewIfNeeded();
      const box = await canvas.boundingBox();
      await page.mouse.move(box.x + 0.3 * box.width, box.y + 0.3 * box.height);
      await page.mouse.down();
      await page.mouse.move(box.x + 0.5 * box.width, box.y + 0.55 * box.height, { steps: 3 });
      await page.mouse.up();
    });
    await changes("step size", () => slide("stepSize", 0.5));
    await changes("keyboard", async () => {
      await page.focus("#site1");
      await page.keyboard.press("ArrowRight");
    });
    for (const sampler of ["gwg", "ordinal-gwg", "uniform", "avg", "pavg"]) {
      await changes(sampler, () => page.selectOption("#sampler", sampler));
      if (folder && name === "desktop") await page.screenshot({ path: join(folder, `explorer-${sampler}.png`), fullPage: true });
    }
    await changes("noise", () => page.click("#noise"));
    await changes("average", () => page.check("#average"));
    await changes("target", () => page.selectOption("#target", "gaussian"));
    await slide("scale", -5.3);
    await slide("correlation", -0.9);
    const hessian = await says("accepted");
    await page.selectOption("#sampler", "ncg");
    await slide("stepSize", -0.3);
    await page.click("#step");
    const once = await says("steps");
    await page.click("#run");
    for (let n = 0; n < 1800 && Number(await says("steps")) <= 60; n++) await page.waitForTimeout(100);
    await page.click("#run");
    const ran = Number(await says("steps"));
    const distance = await says("distance");
    const wrong = await violations(page);
    const wide = await overflowing(page);
    if (folder) await page.screenshot({ path: join(folder, `explorer-${name}.png`), fullPage: true });
    await page.click("#reset");
    const reset = await says("steps");
    Object.assign(found, { [name]: { steps, hessian, once, ran, distance, reset, wrong, wide, ...page.seen } });
    await page.close();
  }
  return found;
});
console.log(JSON.stringify(told));
