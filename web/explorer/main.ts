// The page: controls in, pictures and numbers out. The mathematics is in samplers.ts, and tested without a page.

import { Chain, choose, normals, totalVariation, uniforms } from "./chain";
import { marker, paint, trail } from "./drawing";
import { acceptance, Lattice, normalised, SAMPLERS, shift, sigma, type Codes, type Sampler, type Settings } from "./samplers";
import { TARGETS, type Pair } from "./targets";

const NOISES = 100; // averaged over
const STEPS_AT_ONCE = 10;

function start(page: Document): void {
  const find = <T extends HTMLElement>(id: string): T => page.getElementById(id) as T;
  const input = (id: string): HTMLInputElement => find<HTMLInputElement>(id);
  const lattices = new Map<string, Lattice>();
  const fixed = uniforms(1);
  const average: Pair[] = Array.from({ length: NOISES }, () => normals(fixed));
  const random = uniforms(2);
  let shown: Pair = [0.6, -0.3]; // the standard normals behind the noise on the page
  let lattice!: Lattice;
  let chain!: Chain;
  let running = 0;
  let seed = 1;

  const sampler = (): Sampler => SAMPLERS.find((s) => s.name === find<HTMLSelectElement>("sampler").value)!;
  const settings = (): Settings => ({
    stepSize: 10 ** Number(input("stepSize").value),
    radius: Number(input("radius").value),
    scale: Number(input("scale").value),
    correlation: Number(input("correlation").value),
  });

  function chooseTarget(): void {
    const target = TARGETS.find((t) => t.name === find<HTMLSelectElement>("target").value)!;
    if (!lattices.has(target.name)) lattices.set(target.name, new Lattice(target));
    lattice = lattices.get(target.name)!;
    find("about").textContent = target.about;
    for (const id of ["site1", "site2"]) input(id).max = String(lattice.k - 1);
    restart([Math.round(lattice.k * 0.35), Math.round(lattice.k * 0.45)]);
  }

  function restart(at: Codes): void {
    chain = new Chain(lattice, at, seed++);
    draw();
  }

  /** Move the state; the chain begins anew there. */
  function put(at: Codes): void {
    const inside = at.map((c) => Math.min(Math.max(Math.round(c), 0), lattice.k - 1)) as Codes;
    if (inside[0] !== chain.at[0] || inside[1] !== chain.at[1] || chain.steps) restart(inside);
  }

  function draw(): void {
    const [s, set, at, k] = [sampler(), settings(), chain.at, lattice.k];
    const u = s.noise(set, shown);
    const averaged = s.noisy && input("average").checked;
    const noises = averaged ? average.map((z) => s.noise(set, z)) : [u];
    const mean = (make: (u: Pair) => Float64Array): Float64Array => {
      const sum = new Float64Array(k * k);
      for (const each of noises) make(each).forEach((p, n) => (sum[n] += p / noises.length));
      return sum;
    };
    const proposal = mean((u) => normalised(s.scores(lattice, at, set, u)));
    const truth = mean((u) => normalised(s.truth(lattice, at, set, u)));
    const own = averaged ? normalised(s.scores(lattice, at, set, u)) : proposal;
    const rates = acceptance(s, lattice, at, set, u, own);
    const most = (x: Float64Array): number => x.reduce((a, b) => Math.max(a, b), 0);
    paint(find("picture-target"), lattice.probability, k, most(lattice.probability));
    trail(find("picture-target"), chain.path, k);
    paint(find("picture-proposal"), proposal, k, most(proposal));
    paint(find("picture-truth"), truth, k, most(truth));
    paint(find("picture-acceptance"), rates, k, 1);
    for (const name of ["target", "proposal", "truth", "acceptance"]) marker(find(`picture-${name}`), at, k);
    tell(s, set, u, own, rates, totalVariation(proposal, truth));
  }

  function tell(s: Sampler, set: Settings, u: Pair, own: Float64Array, rates: Float64Array, apart: number): void {
    const [at, k, grid] = [chain.at, lattice.k, lattice.target.grid];
    const n = lattice.at(at);
    const figures = (x: number): string => (Math.abs(x) >= 1000 || (x !== 0 && Math.abs(x) < 0.001) ? x.toExponential(2) : x.toPrecision(3));
    let accepted = 0;
    let jump = 0;
    own.forEach((q, m) => {
      const length = Math.abs(grid[Math.floor(m / k)] - grid[at[0]]) + Math.abs(grid[m % k] - grid[at[1]]);
      accepted += q * rates[m];
      jump += q * rates[m] * length;
    });
    if (s.noisy) [accepted, jump] = overNoise(s, set);
    const told: Record<string, string> = {
      state: `(${figures(grid[at[0]])}, ${figures(grid[at[1]])})`,
      value: figures(lattice.f[n]),
      gradient: `(${figures(lattice.slopes[0][n])}, ${figures(lattice.slopes[1][n])})`,
      accepted: `${(100 * accepted).toFixed(1)} %`,
      jump: figures(jump),
      apart: apart.toFixed(3),
      noise: s.noisy ? `(${figures(u[0])}, ${figures(u[1])})` : "none",
      steps: String(chain.steps),
      taken: chain.steps ? `${((100 * chain.accepted) / chain.steps).toFixed(1)} %` : "–",
      distance: chain.steps ? chain.distance().toFixed(3) : "–",
    };
    for (const [id, text] of Object.entries(told)) find(`out-${id}`).textContent = text;
    find("formula").textContent = s.formula;
    find("stepSize-out").textContent = figures(set.stepSize);
    find("radius-out").textContent = String(set.radius);
    find("scale-out").textContent = figures(set.scale);
    find("correlation-out").textContent = set.correlation.toFixed(2);
    const S = sigma(set);
    find("sigma-out").textContent = `Σ = [${figures(S[0][0])}, ${figures(S[0][1])}; ${figures(S[1][0])}, ${figures(S[1][1])}], d = ${figures(shift(set))}`;
    for (const name of ["stepSize", "radius", "scale", "correlation"] as const) find(`row-${name}`).hidden = !s.uses.includes(name);
    find("row-noise").hidden = !s.noisy;
    find("sigma-out").hidden = !s.uses.includes("scale");
    input("site1").value = String(at[0]);
    input("site2").value = String(at[1]);
    find("site1-out").textContent = figures(grid[at[0]]);
    find("site2-out").textContent = figures(grid[at[1]]);
  }

  /** Mean acceptance and jump of an auxiliary sampler: one proposal for each of the fixed noises. */
  function overNoise(s: Sampler, set: Settings): [number, number] {
    const again = uniforms(3);
    const [at, grid] = [chain.at, lattice.target.grid];
    let accepted = 0;
    let jump = 0;
    for (const z of average) {
      const u = s.noise(set, z);
      const index = choose(normalised(s.scores(lattice, at, set, u)), again());
      const to: Codes = [Math.floor(index / lattice.k), index % lattice.k];
      const rate = Math.exp(Math.min(0, s.logRatio(lattice, at, to, set, u)));
      accepted += rate / average.length;
      jump += (rate * (Math.abs(grid[to[0]] - grid[at[0]]) + Math.abs(grid[to[1]] - grid[at[1]]))) / average.length;
    }
    return [accepted, jump];
  }

  function advance(steps: number): void {
    for (let n = 0; n < steps; n++) chain.step(sampler(), settings());
    draw();
  }

  function run(on: boolean): void {
    window.clearInterval(running);
    running = on ? window.setInterval(() => advance(STEPS_AT_ONCE), 120) : 0;
    find("run").textContent = on ? "Pause" : "Run";
    find("run").setAttribute("aria-pressed", String(on));
  }

  function listen(): void {
    for (const each of TARGETS) find("target").append(new Option(each.name, each.name));
    for (const each of SAMPLERS) find("sampler").append(new Option(each.title, each.name));
    find<HTMLSelectElement>("sampler").value = "ncg";
    find("target").addEventListener("change", chooseTarget);
    for (const id of ["sampler", "average"]) find(id).addEventListener("change", draw);
    for (const id of ["stepSize", "radius", "scale", "correlation"]) find(id).addEventListener("input", draw);
    for (const id of ["site1", "site2"])
      find(id).addEventListener("input", () => put([Number(input("site1").value), Number(input("site2").value)]));
    find("noise").addEventListener("click", () => {
      shown = normals(random);
      draw();
    });
    find("step").addEventListener("click", () => advance(1));
    find("run").addEventListener("click", () => run(!running));
    find("reset").addEventListener("click", () => {
      run(false);
      restart(chain.at);
    });
    const canvas = find<HTMLCanvasElement>("picture-target");
    const follow = (event: PointerEvent): void => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
      put([Math.floor(x * lattice.k), Math.floor((1 - y) * lattice.k)]);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      follow(event);
    });
    canvas.addEventListener("pointermove", (event) => event.buttons && follow(event));
  }

  listen();
  chooseTarget();
}

Object.assign(globalThis, { saltusExplorer: { TARGETS, SAMPLERS, Lattice, Chain, normalised, shift, totalVariation } });
if (typeof document !== "undefined") start(document);
