// Log-probabilities on a square grid of two sites, with their gradients: those of saltus.targets, and two more.

export type Pair = [number, number];

export interface Target {
  readonly name: string;
  readonly about: string;
  readonly grid: readonly number[]; // the values of each site
  f(s: Pair): number;
  gradient(s: Pair): Pair;
}

const evenly = (first: number, last: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => first + ((last - first) * i) / (count - 1));

const polynomial = (coefficients: readonly number[], t: number): number => coefficients.reduce((sum, c) => sum * t + c, 0);

const derivative = (coefficients: readonly number[]): number[] =>
  coefficients.slice(0, -1).map((c, i) => c * (coefficients.length - 1 - i));

export function logSumExp(x: readonly number[]): number {
  const top = Math.max(...x);
  if (top === -Infinity) return top;
  return top + Math.log(x.reduce((sum, each) => sum + Math.exp(each - top), 0));
}

/** saltus.targets.polynomial_mixture(order, 2): f(s) = log 1/K Σ_k Π_i p_k(s_i), p_k(v) ∝ exp g(v - m_k). */
function polynomialMixture(name: string, about: string, g: readonly number[], last: number): Target {
  const grid = evenly(-1.5, 3, 50);
  const shifts = Array.from({ length: 50 }, (_, k) => (last * k) / 49);
  const offsets = shifts.map((m) => 2 * logSumExp(grid.map((v) => polynomial(g, v - m))) + Math.log(50));
  const slope = derivative(g);
  const terms = (s: Pair): number[] =>
    shifts.map((m, k) => polynomial(g, s[0] - m) + polynomial(g, s[1] - m) - offsets[k]);
  return {
    name,
    about,
    grid,
    f: (s) => logSumExp(terms(s)),
    gradient(s) {
      const each = terms(s);
      const top = logSumExp(each);
      const result: Pair = [0, 0];
      shifts.forEach((m, k) => {
        const weight = Math.exp(each[k] - top);
        result[0] += weight * polynomial(slope, s[0] - m);
        result[1] += weight * polynomial(slope, s[1] - m);
      });
      return result;
    },
  };
}

/** f(s) = -½ sᵀ C⁻¹ s with unit variances and correlation 0.9. */
function gaussian(correlation: number): Target {
  const scale = 1 / (1 - correlation * correlation);
  return {
    name: "gaussian",
    about: "A correlated Gaussian, f(s) = -½ sᵀC⁻¹s: quadratic, so PAVG with Σ = -C⁻¹ accepts every move.",
    grid: evenly(-3, 3, 41),
    f: ([a, b]) => -0.5 * scale * (a * a - 2 * correlation * a * b + b * b),
    gradient: ([a, b]) => [-scale * (a - correlation * b), -scale * (b - correlation * a)],
  };
}

/** f(s) = -4 (|s|² - 3)²/3: a ring, whose gradient vanishes in the middle. */
const ring: Target = {
  name: "ring",
  about: "A ring, f(s) = -4/3 (|s|² - 3)²: far from quadratic, and the gradient says nothing in the middle.",
  grid: evenly(-3, 3, 41),
  f: ([a, b]) => (-4 / 3) * (a * a + b * b - 3) ** 2,
  gradient: ([a, b]) => {
    const factor = (-16 / 3) * (a * a + b * b - 3);
    return [factor * a, factor * b];
  },
};

export const TARGETS: readonly Target[] = [
  polynomialMixture("poly2", "The paper's mixture of 50 quadratic bumps along the diagonal.", [-6, -2, 0], 2),
  polynomialMixture("poly4", "The paper's mixture of 50 quartic bumps along the diagonal.", [-2, -2, 2, -2, 0], 3),
  gaussian(0.9),
  ring,
];
