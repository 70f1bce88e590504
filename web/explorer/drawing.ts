// Tables as pictures on a canvas: one cell a state, dark for nothing, bright for much.

import type { Codes } from "./samplers";

const STOPS: readonly [number, number, number][] = [
  [10, 12, 28],
  [58, 20, 104],
  [150, 40, 108],
  [226, 90, 60],
  [252, 190, 60],
  [252, 253, 191],
];

function colour(share: number): [number, number, number] {
  const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const low = Math.min(Math.floor(place), STOPS.length - 2);
  const rest = place - low;
  return [0, 1, 2].map((c) => Math.round(STOPS[low][c] * (1 - rest) + STOPS[low + 1][c] * rest)) as [number, number, number];
}

/** Fill a canvas with a table (site 1 across, site 2 up); `most` is the value of the brightest colour. */
export function paint(canvas: HTMLCanvasElement, table: ArrayLike<number>, k: number, most: number): void {
  canvas.width = canvas.height = 8 * k;
  const context = canvas.getContext("2d")!;
  const small = new ImageData(k, k);
  for (let i = 0; i < k; i++)
    for (let j = 0; j < k; j++) {
      const share = most > 0 ? Math.sqrt(table[i * k + j] / most) : 0; // square roots: small probabilities can be seen
      small.data.set([...colour(share), 255], 4 * ((k - 1 - j) * k + i));
    }
  const aside = document.createElement("canvas");
  aside.width = aside.height = k;
  aside.getContext("2d")!.putImageData(small, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(aside, 0, 0, canvas.width, canvas.height);
}

const middle = (k: number, [i, j]: Codes): [number, number] => [8 * i + 4, 8 * (k - 1 - j) + 4];

/** Where the chain has been: a thin line, newest last. */
export function trail(canvas: HTMLCanvasElement, path: readonly Codes[], k: number): void {
  const context = canvas.getContext("2d")!;
  context.strokeStyle = "rgba(120, 220, 255, .8)";
  context.lineWidth = 1.5;
  context.beginPath();
  path.forEach((codes, n) => (n ? context.lineTo(...middle(k, codes)) : context.moveTo(...middle(k, codes))));
  context.stroke();
}

/** A ring around the state, with a dark edge so that it shows on every colour. */
export function marker(canvas: HTMLCanvasElement, codes: Codes, k: number): void {
  const context = canvas.getContext("2d")!;
  const [x, y] = middle(k, codes);
  for (const [width, style] of [
    [5, "#000"],
    [2.5, "#fff"],
  ] as const) {
    context.beginPath();
    context.arc(x, y, 8, 0, 2 * Math.PI);
    context.lineWidth = width;
    context.strokeStyle = style;
    context.stroke();
  }
}
