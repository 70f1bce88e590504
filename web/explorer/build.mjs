// Bundles the page into one file without any reference to another: node explorer/build.mjs [where]
import { readFileSync, writeFileSync } from "node:fs";
import { buildSync } from "esbuild";

const here = (name) => new URL(name, import.meta.url);
const bundle = buildSync({ absWorkingDir: here(".").pathname, entryPoints: [here("main.ts").pathname], bundle: true, format: "iife", target: "es2022", write: false, legalComments: "none", charset: "utf8" });
const script = bundle.outputFiles[0].text;
if (/<\/script/i.test(script)) throw new Error("the script would end its own element");
const page = readFileSync(here("page.html"), "utf8")
  .replace("/*STYLE*/", () => `\n${readFileSync(here("style.css"), "utf8")}`)
  .replace("/*SCRIPT*/", () => `\n${script}`);
writeFileSync(process.argv[2] ?? here("../../src/saltus/explorer/explorer.html"), page);
