// The mathematics of the shipped page, taken out of it, against numbers of the Python kernels. Prints the largest difference of each.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const [page, file, only] = process.argv.slice(2); // only: "formulas", and no chains
const script = readFileSync(page, "utf8").match(/<script>([\s\S]*)<\/script>/)[1];
runInThisContext(script); // there is no document here: it only defines
const { TARGETS, SAMPLERS, Lattice, Chain, normalised } = globalThis.saltusExplorer;

const lattices = Object.fromEntries(TARGETS.map((t) => [t.name, new Lattice(t)]));
const worst = {};
const note = (name, difference) => (worst[name] = Math.max(worst[name] ?? 0, Number.isNaN(difference) ? Infinity : difference));
for (const each of JSON.parse(readFileSync(file, "utf8"))) {
  const lattice = lattices[each.target];
  const sampler = SAMPLERS.find((s) => s.name === each.sampler);
  const u = sampler.noise(each, each.normals);
  u.forEach((x, n) => note("noise", Math.abs(x - each.noise[n])));
  const q = normalised(sampler.scores(lattice, each.from, each, u));
  each.moves.forEach((to, n) => {
    note(`${each.sampler} log q`, difference(Math.log(q[lattice.at(to)]), each.log_q[n]));
    note(`${each.sampler} log ratio`, difference(sampler.logRatio(lattice, each.from, to, each, u), each.log_ratio[n]));
  });
}

/** Relative where numbers are large; probabilities below 1e-300 only have to be so. */
function difference(found, expected) {
  if (expected < -690) return found < -600 ? 0 : Infinity;
  return Math.abs(found - expected) / Math.max(1, Math.abs(expected));
}

// A chain of each sampler comes to the target: total variation from the target after many steps.
const chains = {};
for (const sampler of only === "formulas" ? [] : SAMPLERS) {
  const settings = { stepSize: 0.6, radius: 6, scale: -3, correlation: -0.9 };
  const chain = new Chain(lattices.gaussian, [20, 20], 7);
  for (let n = 0; n < 3000; n++) chain.step(sampler, settings);
  chains[sampler.name] = { distance: chain.distance(), accepted: chain.accepted / chain.steps };
}
console.log(JSON.stringify({ worst, chains, targets: TARGETS.map((t) => t.name), samplers: SAMPLERS.map((s) => s.name) }));
