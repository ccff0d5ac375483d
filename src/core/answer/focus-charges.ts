import { microsPerHour } from '../timestamp.ts';
import { formatMicroUsd } from './cost.ts';

/** What one request used and cost. */
export interface ChargedRow {
  /** Since the epoch. */
  readonly createdMicros: bigint;
  readonly userId: string;
  /** The provider key; null where none served. */
  readonly keyId: string | null;
  readonly provider: string;
  readonly model: string;
  readonly residency: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costMicroUsd: bigint;
}

interface Charge {
  readonly row: ChargedRow;
  requests: bigint;
  inputTokens: bigint;
  outputTokens: bigint;
  costMicroUsd: bigint;
}

/** Held of one hour; beyond it what there is goes out, and the hour has several rows of one name, as FOCUS allows. */
const maxHeld = 50_000;

/** `2026-11-20T10:00:00Z`, the form of FOCUS. */
const instant = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

function monthsOf(ms: number): { start: number; end: number } {
  const date = new Date(ms);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
}

/**
 * The columns of FOCUS 1.2 (focus.finops.org, read 2026-11-22): all that are mandatory, those conditional ones that
 * have something to say here, and ours behind `x_`. Whoever pays the vendor is the holder of the key: the user.
 */
function focusRow(hourMs: number, charge: Charge) {
  const { row, requests, inputTokens, outputTokens } = charge;
  const { provider, model } = row;
  const cost = formatMicroUsd(charge.costMicroUsd);
  const tokens = String(inputTokens + outputTokens);
  const month = monthsOf(hourMs);
  return {
    BilledCost: cost,
    BillingAccountId: row.userId,
    BillingAccountName: '',
    BillingCurrency: 'USD',
    BillingPeriodEnd: instant(month.end),
    BillingPeriodStart: instant(month.start),
    ChargeCategory: 'Usage',
    ChargeClass: '',
    ChargeDescription: `Tokens of ${provider}:${model}`,
    ChargeFrequency: 'Usage-Based',
    ChargePeriodEnd: instant(hourMs + 3_600_000),
    ChargePeriodStart: instant(hourMs),
    ConsumedQuantity: tokens,
    ConsumedUnit: 'Tokens',
    ContractedCost: cost,
    EffectiveCost: cost,
    InvoiceIssuerName: provider,
    ListCost: cost,
    PricingCategory: 'Standard',
    PricingQuantity: tokens,
    PricingUnit: 'Tokens',
    ProviderName: provider,
    PublisherName: provider,
    ServiceCategory: 'AI and Machine Learning',
    ServiceName: provider,
    ServiceSubcategory: 'Generative AI',
    SubAccountId: row.keyId ?? '',
    SubAccountName: '',
    x_InputTokens: String(inputTokens),
    x_Model: model,
    x_OutputTokens: String(outputTokens),
    x_Requests: String(requests),
    x_Residency: row.residency,
  };
}

export type FocusRow = Readonly<ReturnType<typeof focusRow>>;

/** One charge for each hour, user, provider key, provider, model and residency; rows come oldest first. */
export class FocusCharges {
  readonly #held = new Map<string, Charge>();
  #hour = 0n;

  /** What is complete now that this row has come. */
  add(row: ChargedRow): readonly FocusRow[] {
    const hour = row.createdMicros / microsPerHour;
    const complete = hour !== this.#hour || this.#held.size >= maxHeld ? this.end() : [];
    this.#hour = hour;
    const { userId, keyId, provider, residency, model } = row;
    const name = `${userId} ${keyId} ${provider} ${residency} ${model}`;
    const sums = { requests: 0n, inputTokens: 0n, outputTokens: 0n, costMicroUsd: 0n };
    const charge = this.#held.get(name) ?? { row, ...sums };
    charge.requests += 1n;
    charge.inputTokens += BigInt(row.inputTokens);
    charge.outputTokens += BigInt(row.outputTokens);
    charge.costMicroUsd += row.costMicroUsd;
    this.#held.set(name, charge);
    return complete;
  }

  /** What is held; there is no more to come. */
  end(): readonly FocusRow[] {
    const hourMs = Number((this.#hour * microsPerHour) / 1000n);
    const charges = [...this.#held.values()].map((charge) => focusRow(hourMs, charge));
    this.#held.clear();
    return charges;
  }
}
