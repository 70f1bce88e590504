// The proposals and acceptance ratios of saltus on two sites, entry by entry of the grid. Tables are row by row: [i * k + j].

import { logSumExp, type Pair, type Target } from "./targets";

export interface Settings {
  stepSize: number; // ε
  radius: number; // hops
  scale: number; // γ of Σ = γ [[1, ρ], [ρ, 1]]
  correlation: number; // ρ
}

export type Matrix = [Pair, Pair];
export type Codes = [number, number];

/** A target's numbers, computed once: f and its gradient at every state. */
export class Lattice {
  readonly k: number;
  readonly f: Float64Array;
  readonly slopes: [Float64Array, Float64Array];
  readonly probability: Float64Array;

  constructor(readonly target: Target) {
    const k = (this.k = target.grid.length);
    this.f = new Float64Array(k * k);
    this.slopes = [new Float64Array(k * k), new Float64Array(k * k)];
    for (let i = 0; i < k; i++)
      for (let j = 0; j < k; j++) {
        const s: Pair = [target.grid[i], target.grid[j]];
        const g = target.gradient(s);
        this.f[i * k + j] = target.f(s);
        this.slopes[0][i * k + j] = g[0];
        this.slopes[1][i * k + j] = g[1];
      }
    this.probability = normalised(this.f);
  }

  at(codes: Codes): number {
    return codes[0] * this.k + codes[1];
  }

  /** The predicted change of f when site `site` goes from `from` to value v, by the gradient at `from`. */
  predicted(from: Codes, site: 0 | 1, v: number): number {
    const grid = this.target.grid;
    return this.slopes[site][this.at(from)] * (grid[v] - grid[from[site]]);
  }
}

/** exp and normalise; -Infinity is impossible. */
export function normalised(scores: ArrayLike<number>): Float64Array {
  let top = -Infinity;
  for (let n = 0; n < scores.length; n++) top = Math.max(top, scores[n]);
  const result = new Float64Array(scores.length);
  let sum = 0;
  for (let n = 0; n < scores.length; n++) sum += result[n] = Math.exp(scores[n] - top);
  for (let n = 0; n < scores.length; n++) result[n] /= sum;
  return result;
}

/** Σ, already scaled by γ. */
export function sigma({ scale, correlation }: Settings): Matrix {
  return [
    [scale, scale * correlation],
    [scale * correlation, scale],
  ];
}

/** d: the least shift that makes Σ + d I positive semi-definite, plus 2/ε. */
export function shift(settings: Settings): number {
  const { scale, correlation } = settings;
  const eigenvalues = [scale * (1 + correlation), scale * (1 - correlation)];
  return Math.max(0, -Math.min(...eigenvalues)) + 2 / settings.stepSize;
}

/** u for two standard normals: N(0, Σ + d I) of PAVG, by the eigenvectors (1, 1)/√2 and (1, -1)/√2. */
function coloured(settings: Settings, normals: Pair): Pair {
  const d = shift(settings);
  const { scale, correlation } = settings;
  const along = Math.sqrt(Math.max(scale * (1 + correlation) + d, 0)) * normals[0];
  const aside = Math.sqrt(Math.max(scale * (1 - correlation) + d, 0)) * normals[1];
  return [(along + aside) / Math.SQRT2, (along - aside) / Math.SQRT2];
}

export interface Sampler {
  readonly name: string;
  readonly title: string;
  readonly formula: string;
  readonly uses: readonly (keyof Settings)[];
  readonly noisy: boolean;
  noise(settings: Settings, normals: Pair): Pair;
  /** Scores of q(s' | s, u): the proposal is their softmax. */
  scores(lattice: Lattice, from: Codes, settings: Settings, u: Pair): Float64Array;
  /** The same with true changes of f in place of predicted ones. */
  truth(lattice: Lattice, from: Codes, settings: Settings, u: Pair): Float64Array;
  /** log α(s → s') of the Metropolis step, given u. */
  logRatio(lattice: Lattice, from: Codes, to: Codes, settings: Settings, u: Pair): number;
}

const NONE: Pair = [0, 0];

type Score = (i: number, j: number) => number;

function table(k: number, score: Score): Float64Array {
  const result = new Float64Array(k * k);
  for (let i = 0; i < k; i++) for (let j = 0; j < k; j++) result[i * k + j] = score(i, j);
  return result;
}

/** A sum over sites: score_0(i) + score_1(j). */
function factorised(k: number, site: (which: 0 | 1, v: number) => number): Float64Array {
  const rows = Array.from({ length: k }, (_, v) => site(0, v));
  const columns = Array.from({ length: k }, (_, v) => site(1, v));
  return table(k, (i, j) => rows[i] + columns[j]);
}

function normaliser(k: number, site: (which: 0 | 1, v: number) => number): number {
  const each = (which: 0 | 1) => logSumExp(Array.from({ length: k }, (_, v) => site(which, v)));
  return each(0) + each(1);
}

/** One site moves, at most `reach` hops; staying is not in the support. */
function oneSite(lattice: Lattice, from: Codes, reach: number, change: Score): Float64Array {
  return table(lattice.k, (i, j) => {
    const hops = Math.abs(i - from[0]) + Math.abs(j - from[1]);
    const moved = Number(i !== from[0]) + Number(j !== from[1]);
    return moved === 1 && hops <= reach ? 0.5 * change(i, j) : -Infinity;
  });
}

function gwg(name: string, title: string, reach: (lattice: Lattice, settings: Settings) => number, uses: (keyof Settings)[]): Sampler {
  const scores = (lattice: Lattice, from: Codes, settings: Settings) =>
    oneSite(lattice, from, reach(lattice, settings), (i, j) => lattice.predicted(from, 0, i) + lattice.predicted(from, 1, j));
  const total = (lattice: Lattice, from: Codes, settings: Settings) => logSumExp([...scores(lattice, from, settings)]);
  return {
    name,
    title,
    uses,
    noisy: false,
    formula: "q(s′|s) = softmax over one changed site of ½ D(s′)",
    noise: () => NONE,
    scores,
    truth: (lattice, from, settings) =>
      oneSite(lattice, from, reach(lattice, settings), (i, j) => lattice.f[lattice.at([i, j])] - lattice.f[lattice.at(from)]),
    logRatio(lattice, from, to, settings) {
      const site = from[0] !== to[0] ? 0 : 1;
      const back = 0.5 * (lattice.predicted(to, site, from[site]) - lattice.predicted(from, site, to[site]));
      return lattice.f[lattice.at(to)] - lattice.f[lattice.at(from)] + back + total(lattice, from, settings) - total(lattice, to, settings);
    },
  };
}

const within = (v: number, c: number, radius: number): boolean => Math.abs(v - c) <= radius;

const uniform: Sampler = {
  name: "uniform",
  title: "Uniform",
  formula: "every site uniform within `radius` hops",
  uses: ["radius"],
  noisy: false,
  noise: () => NONE,
  scores: (lattice, from, { radius }) => factorised(lattice.k, (site, v) => (within(v, from[site], radius) ? 0 : -Infinity)),
  truth: (lattice, from, { radius }) =>
    table(lattice.k, (i, j) =>
      within(i, from[0], radius) && within(j, from[1], radius) ? lattice.f[lattice.at([i, j])] - lattice.f[lattice.at(from)] : -Infinity,
    ),
  logRatio(lattice, from, to, { radius }) {
    const count = (c: number) => Math.min(c + radius, lattice.k - 1) - Math.max(c - radius, 0) + 1;
    const ways = [0, 1].reduce((sum, site) => sum + Math.log(count(from[site])) - Math.log(count(to[site])), 0);
    return lattice.f[lattice.at(to)] - lattice.f[lattice.at(from)] + ways;
  },
};

/** NCG: all sites at once, half of D, a penalty on the distance. */
function ncgSite(lattice: Lattice, from: Codes, stepSize: number): (site: 0 | 1, v: number) => number {
  const grid = lattice.target.grid;
  return (site, v) => 0.5 * lattice.predicted(from, site, v) - (grid[v] - grid[from[site]]) ** 2 / (2 * stepSize);
}

const ncg: Sampler = {
  name: "ncg",
  title: "NCG",
  formula: "q(s′|s) ∝ Πᵢ exp(½ Dᵢ(s′ᵢ) − (s′ᵢ − sᵢ)²/2ε)",
  uses: ["stepSize"],
  noisy: false,
  noise: () => NONE,
  scores: (lattice, from, { stepSize }) => factorised(lattice.k, ncgSite(lattice, from, stepSize)),
  truth(lattice, from, { stepSize }) {
    const grid = lattice.target.grid;
    return table(lattice.k, (i, j) => {
      const square = (grid[i] - grid[from[0]]) ** 2 + (grid[j] - grid[from[1]]) ** 2;
      return 0.5 * (lattice.f[lattice.at([i, j])] - lattice.f[lattice.at(from)]) - square / (2 * stepSize);
    });
  },
  logRatio(lattice, from, to, { stepSize }) {
    const back = ([0, 1] as const).reduce<number>(
      (sum, site) => sum + 0.5 * (lattice.predicted(to, site, from[site]) - lattice.predicted(from, site, to[site])),
      0,
    );
    const gap = normaliser(lattice.k, ncgSite(lattice, from, stepSize)) - normaliser(lattice.k, ncgSite(lattice, to, stepSize));
    return lattice.f[lattice.at(to)] - lattice.f[lattice.at(from)] + back + gap;
  },
};

/** AVG and PAVG: D plus noise, with a diagonal d; AVG is PAVG with Σ = 0. */
function auxiliary(name: string, title: string, formula: string, own: (settings: Settings) => Settings, uses: (keyof Settings)[]): Sampler {
  // Centred at `from`, with the local model of `seen`: the reverse move sees the same auxiliary variable.
  const site = (lattice: Lattice, from: Codes, seen: Codes, d: number, u: Pair) => {
    const grid = lattice.target.grid;
    return (which: 0 | 1, v: number): number => {
      const delta = grid[v] - grid[from[which]];
      return (lattice.slopes[which][lattice.at(seen)] + u[which]) * delta - 0.5 * d * delta * delta;
    };
  };
  return {
    name,
    title,
    formula,
    uses,
    noisy: true,
    noise: (settings, normals) => coloured(own(settings), normals),
    scores: (lattice, from, settings, u) => factorised(lattice.k, site(lattice, from, from, shift(own(settings)), u)),
    truth(lattice, from, settings, u) {
      const S = sigma(own(settings));
      const d = shift(own(settings));
      const grid = lattice.target.grid;
      return table(lattice.k, (i, j) => {
        const delta: Pair = [grid[i] - grid[from[0]], grid[j] - grid[from[1]]];
        const bend = quadratic(S, delta) + d * (delta[0] ** 2 + delta[1] ** 2);
        return lattice.f[lattice.at([i, j])] - lattice.f[lattice.at(from)] + u[0] * delta[0] + u[1] * delta[1] - 0.5 * bend;
      });
    },
    logRatio(lattice, from, to, settings, u) {
      const S = sigma(own(settings));
      const d = shift(own(settings));
      const grid = lattice.target.grid;
      const delta: Pair = [grid[to[0]] - grid[from[0]], grid[to[1]] - grid[from[1]]];
      const bent: Pair = [S[0][0] * delta[0] + S[0][1] * delta[1], S[1][0] * delta[0] + S[1][1] * delta[1]];
      const predicted = lattice.predicted(from, 0, to[0]) + lattice.predicted(from, 1, to[1]) + 0.5 * quadratic(S, delta);
      const forward = normaliser(lattice.k, site(lattice, from, from, d, u));
      const reverse = normaliser(lattice.k, site(lattice, from, to, d, [u[0] - bent[0], u[1] - bent[1]]));
      return lattice.f[lattice.at(to)] - lattice.f[lattice.at(from)] - predicted + forward - reverse;
    },
  };
}

const quadratic = (S: Matrix, [a, b]: Pair): number => S[0][0] * a * a + 2 * S[0][1] * a * b + S[1][1] * b * b;

export const SAMPLERS: readonly Sampler[] = [
  gwg("gwg", "GWG", (lattice) => lattice.k - 1, []),
  gwg("ordinal-gwg", "Ordinal GWG", (_, { radius }) => radius, ["radius"]),
  uniform,
  ncg,
  auxiliary("avg", "AVG", "q(s′|s,u) ∝ Πᵢ exp(Dᵢ(s′ᵢ) + uᵢΔᵢ − Δᵢ²/ε),  u ~ N(0, 2/ε)", (s) => ({ ...s, scale: 0, correlation: 0 }), ["stepSize"]),
  auxiliary(
    "pavg",
    "PAVG",
    "q(s′|s,u) ∝ Πᵢ exp(Dᵢ(s′ᵢ) + uᵢΔᵢ − ½dΔᵢ²),  u ~ N(0, Σ + d)",
    (s) => s,
    ["stepSize", "scale", "correlation"],
  ),
];

/** min(1, α) of a move to every state that can be proposed; 0 elsewhere. */
export function acceptance(sampler: Sampler, lattice: Lattice, from: Codes, settings: Settings, u: Pair, proposal: ArrayLike<number>): Float64Array {
  const result = new Float64Array(lattice.k ** 2);
  for (let i = 0; i < lattice.k; i++)
    for (let j = 0; j < lattice.k; j++) {
      const at = lattice.at([i, j]);
      if (proposal[at] > 1e-12) result[at] = Math.exp(Math.min(0, sampler.logRatio(lattice, from, [i, j], settings, u)));
    }
  return result;
}
