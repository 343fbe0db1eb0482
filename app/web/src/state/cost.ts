// What tokens cost, where the host has prices for the models that used them.
import type { PageOptions, Price, RunRow } from "./api.js";

export interface Cost {
  amount: number;
  unpriced: string[]; // models without a price
}

/** The price of a model: of its own name, else of the longest name that it begins with (`gpt-5` for `gpt-5-2026-01`). */
function priceOf(model: string, prices: PageOptions["prices"]): Price | undefined {
  const names = Object.keys(prices).filter((name) => model === name || model.startsWith(`${name}-`));
  const name = names.sort((one, other) => other.length - one.length)[0];
  return name === undefined ? undefined : prices[name];
}

/** What these runs cost; null where nothing is priced. */
export function costOf(runs: readonly Pick<RunRow, "usage">[], { prices }: PageOptions): Cost | null {
  let amount = 0;
  let priced = false;
  const unpriced = new Set<string>();
  for (const each of runs.flatMap(({ usage }) => usage)) {
    const price = priceOf(each.model ?? "", prices);
    if (price === undefined) {
      unpriced.add(each.model ?? "unknown");
      continue;
    }
    priced = true;
    const cached = price.cached === undefined ? 0 : (each.cachedInputTokens ?? 0);
    const input = (each.inputTokens ?? 0) - cached;
    amount += (input * price.input + cached * (price.cached ?? 0) + (each.outputTokens ?? 0) * price.output) / 1e6;
  }
  return priced ? { amount, unpriced: [...unpriced] } : null;
}

/** A cost as people read it: to the cent, and smaller ones to two digits. */
export function money(amount: number, currency: string): string {
  const text = amount >= 0.1 || amount === 0 ? amount.toFixed(2) : amount.toPrecision(2);
  return `${currency}${Number(text) < 1e-6 && amount > 0 ? "<0.000001" : text}`;
}
