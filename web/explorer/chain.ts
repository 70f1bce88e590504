// A chain of one sampler, step by step, with random numbers of its own.

import { normalised, type Codes, type Lattice, type Sampler, type Settings } from "./samplers";
import type { Pair } from "./targets";

/** Uniform numbers in (0, 1) from a seed: a 32-bit counter, mixed. */
export function uniforms(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let x = state;
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32 + 2 ** -33;
  };
}

/** Two independent standard normals. */
export function normals(random: () => number): Pair {
  const radius = Math.sqrt(-2 * Math.log(random()));
  const angle = 2 * Math.PI * random();
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
}

/** An index, with the probabilities given. */
export function choose(probabilities: ArrayLike<number>, u: number): number {
  let sum = 0;
  for (let n = 0; n < probabilities.length; n++) {
    sum += probabilities[n];
    if (u < sum) return n;
  }
  return probabilities.length - 1;
}

export class Chain {
  steps = 0;
  accepted = 0;
  visits: Float64Array;
  path: Codes[] = [];
  private readonly random: () => number;

  constructor(
    readonly lattice: Lattice,
    public at: Codes,
    seed: number,
  ) {
    this.random = uniforms(seed);
    this.visits = new Float64Array(lattice.k ** 2);
  }

  /** One Metropolis step; whether the proposal was taken. */
  step(sampler: Sampler, settings: Settings): boolean {
    const u = sampler.noisy ? sampler.noise(settings, normals(this.random)) : ([0, 0] as Pair);
    const proposal = normalised(sampler.scores(this.lattice, this.at, settings, u));
    const index = choose(proposal, this.random());
    const to: Codes = [Math.floor(index / this.lattice.k), index % this.lattice.k];
    const same = to[0] === this.at[0] && to[1] === this.at[1];
    const taken = same || Math.log(this.random()) < sampler.logRatio(this.lattice, this.at, to, settings, u);
    if (taken) this.at = to;
    this.steps += 1;
    this.accepted += Number(taken);
    this.visits[this.lattice.at(this.at)] += 1;
    this.path.push([...this.at]);
    if (this.path.length > 60) this.path.shift();
    return taken;
  }

  /** Half of the summed differences between how often states were visited and how probable they are. */
  distance(): number {
    if (!this.steps) return 1;
    return totalVariation(
      this.visits.map((n) => n / this.steps),
      this.lattice.probability,
    );
  }
}

export function totalVariation(p: ArrayLike<number>, q: ArrayLike<number>): number {
  let sum = 0;
  for (let n = 0; n < p.length; n++) sum += Math.abs(p[n] - q[n]);
  return sum / 2;
}
