/** A job, an object, an event and the state machine of a lamp, for tests. */

import type { SchedulerEvent, SchedulerGoverned, SchedulerJob, SchedulerMachine } from "../../api/types";

export const NOW = Date.parse("2026-07-01T08:00:00Z");

export function after(seconds: number): string {
  return new Date(NOW + seconds * 1000).toISOString();
}

export function job(changes: Partial<SchedulerJob> = {}): SchedulerJob {
  return {
    job_id: "job_000000000001",
    object_type: "memory",
    object_id: "harbour",
    action: "verify",
    run_at: after(30),
    priority: "medium",
    attempt: 0,
    max_attempts: 3,
    idempotency_key: "harbour:verify",
    status: "queued",
    last_error: null,
    created_at: after(-60),
    updated_at: after(-60),
    scheduled_for: after(30),
    worker_id: null,
    lease_token: null,
    lease_expires_at: null,
    delivery_count: 0,
    correlation_id: null,
    audit_event_id: null,
    outcome: null,
    queue: "default",
    payload: null,
    cancel_requested_at: null,
    progress: null,
    outcome_result: null,
    ...changes,
  };
}

export function event(changes: Partial<SchedulerEvent> = {}): SchedulerEvent {
  return {
    id: "aud_000000000001",
    event_type: "state_transition",
    actor: { type: "worker", id: "w-1" },
    object_type: "memory",
    object_id: "harbour",
    before: { status: "candidate" },
    after: { status: "verified", transitioned: true },
    reason: "two sources say the same",
    code: "stated",
    facts: { text: "two sources say the same" },
    evidence_refs: ["note:1"],
    timestamp: after(-10),
    job_id: "job_000000000001",
    correlation_id: null,
    metadata: {},
    ...changes,
  };
}

export function governed(changes: Partial<SchedulerGoverned> = {}): SchedulerGoverned {
  return {
    object_type: "lamp",
    object_id: "hall",
    status: "off",
    version: 1,
    created_at: after(-60),
    updated_at: after(-60),
    epistemic_state: null,
    risk_tier: "low",
    impact_tier: "low",
    evidence_refs: [],
    source_refs: [],
    next_action: null,
    next_action_at: null,
    last_verified_at: null,
    last_accessed_at: null,
    last_reinforced_at: null,
    stale_since: null,
    review_interval: null,
    review_due_at: null,
    expires_at: null,
    half_life: "P30D",
    reinforcement_count: 0,
    impact_weight: 0,
    falsify_if: null,
    unknown_type: null,
    uncertain_since: null,
    uncertainty_ttl: null,
    auto_verify_budget: 2,
    verify_budget_left: 1,
    verifications: 1,
    decision_mode: null,
    closed: null,
    hard_persona_limit: false,
    deception_signals: 0,
    rollback_pending: false,
    ...changes,
  };
}

const place = { trust: 1, uncertain: false, next_action: null, after: null, at: null };
const press = { action: "press", finding: "pressed", gates: [] };

export const LAMP: SchedulerMachine = {
  object_type: "lamp",
  first: "off",
  places: [
    { ...place, place: "on" },
    { ...place, place: "off" },
    { ...place, place: "broken" },
    { ...place, place: "lost" },
  ],
  arrows: [
    { ...press, source: "off", target: "on" },
    { ...press, source: "on", target: "off" },
    { ...press, source: "on", target: "broken", finding: "bang" },
    { ...press, source: "on", target: "broken", finding: "smoke" },
    { ...press, source: "broken", target: "off", finding: "mended" },
  ],
  never: [],
};
